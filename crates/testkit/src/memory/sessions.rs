//! Sessions.

use std::cmp::Reverse;

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope,
    backend::{
        self, Deletion, SessionChange, SessionCursor, SessionDeletion, SessionName, SessionQuery, Sessions,
        StoredSession, StoredSyncState, Version,
    },
    model::{Session, SessionId, SessionKey, UserId, VectorText},
};
use async_trait::async_trait;

use super::{MemoryBackend, PAGE_SIZE, rows::SessionRows};

#[async_trait]
impl Sessions for MemoryBackend {
    async fn get_session(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        Ok(self.rows().stored(key).cloned())
    }

    async fn list_sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        let rank = |cursor: SessionCursor| (Reverse(cursor.updated), cursor.key);
        // Without `after`, all sessions are listed, because `None` is less than any rank.
        let after = query.after.clone().map(rank);
        let rows = self.rows();
        let stored = rows.sessions.values().filter_map(|session| session.stored.as_ref());
        let mut sessions: Vec<&Session> = stored.map(|stored| &stored.session).collect();
        sessions.retain(|session| query.admits(session) && after < Some(rank((*session).into())));
        sessions.sort_by_key(|session| rank((*session).into()));
        Ok(sessions.into_iter().take(query.limit).cloned().collect())
    }

    async fn session_names(&self, scope: &Scope) -> Result<Vec<SessionName>> {
        let sessions = self.list_sessions(&SessionQuery::new(scope.clone()).with_limit(usize::MAX)).await?;
        let name = |session: Session| SessionName::new(session.session_id, session.parent_id);
        Ok(sessions.into_iter().map(name).collect())
    }

    async fn session_rows(&self, key: &SessionKey) -> Result<backend::RowCounts> {
        let rows = self.rows();
        let current = rows.generations().current_number();
        let mut counts = backend::RowCounts::default();
        let Some(session) = rows.sessions.get(key) else { return Ok(counts) };
        for row in session.messages.values() {
            counts.messages.add(row.message.sequence, row.message.ts);
            let (turns, texts): (Vec<_>, Vec<_>) =
                row.records(current).iter().partition(|of| of.text == VectorText::Turn);
            counts.vectors += texts.len() as u64;
            counts.turn_vectors += turns.len() as u64;
            counts.pending_vectors += u64::from(row.message.vectors.is_pending());
            counts.synced_at = counts.synced_at.max(Some(row.message.synced_at));
        }
        session.events().for_each(|event| counts.events.add(event.sequence, event.ts));
        Ok(counts)
    }

    async fn sync_states(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<(SessionId, StoredSyncState)>> {
        let rows = self.rows();
        let stored = rows.of_user(user).filter_map(|session| session.stored.as_ref());
        let states = stored.filter_map(|of| Some((of.session.session_id.clone(), of.sync_state.clone()?)));
        let page = states.filter(|(session, _)| after < Some(session));
        Ok(page.take(limit.min(PAGE_SIZE)).collect())
    }

    async fn write(&self, changes: Vec<SessionChange>) -> Vec<Result<Version>> {
        let mut written = Vec::new();
        for change in changes {
            written.push(self.write_change(change).await);
        }
        written
    }

    async fn delete_sessions(&self, sessions: &[SessionDeletion]) -> Deletion {
        let mut deleted = Vec::with_capacity(sessions.len());
        for session in sessions {
            deleted.push(self.delete(session).await);
        }
        Deletion::complete(deleted)
    }

    async fn deleted_sessions(&self, user: &UserId) -> Result<Vec<SessionId>> {
        let rows = self.rows();
        let deleted = rows.deleted.iter().filter(|key| key.user_id == *user && rows.stored(key).is_none());
        Ok(deleted.map(|key| key.session_id.clone()).collect())
    }

    async fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64> {
        let rows = &mut *self.rows();
        let of = |user: &UserId, id: &SessionId| SessionKey::new(user.clone(), id.clone());
        let ids: Vec<SessionId> = rows.ids(from).collect();
        let events = rows.of_user(from).flat_map(SessionRows::events).map(|event| &event.event_id);
        if !rows.find_events(to, events).is_empty() || ids.iter().any(|id| rows.stored(&of(to, id)).is_some())
        {
            let message = format!("{from} and {to} have a session or an event with the same id");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        for id in &ids {
            if let Some(mut session) = rows.sessions.remove(&of(from, id)) {
                let before = session.stored.as_ref().map(|stored| stored.session.clone());
                rows.log.add(of(from, id), before);
                rows.log.add(of(to, id), None);
                session.reassign_to(to);
                rows.sessions.insert(of(to, id), session);
            }
        }
        let deleted = std::mem::take(&mut rows.deleted).into_iter();
        rows.deleted =
            deleted.map(|key| if key.user_id == *from { of(to, &key.session_id) } else { key }).collect();
        self.shared.signal.send([from, to]);
        Ok(ids.len() as u64)
    }
}
