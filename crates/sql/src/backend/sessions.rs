//! Sessions.

use std::collections::BTreeSet;

use amplifier_session_core::{
    ErrorKind, Result, Scope,
    backend::{
        Deletion, RowCounts, SessionChange, SessionDeletion, SessionName, SessionQuery, Sessions,
        StoredSession, StoredSyncState, Version,
    },
    model::{Session, SessionId, SessionKey, UserId},
};
use async_trait::async_trait;

use super::SqlBackend;
use crate::{
    Reader,
    backend::{DerivedIndex, write},
    is_disk_full, read,
};

impl<D: DerivedIndex> SqlBackend<D> {
    /// Removes the rows of a session; returns whether it existed. If the disk is full, makes room and tries again in small
    /// steps.
    async fn delete(&self, session: &SessionDeletion) -> Result<bool> {
        let delete = |mut session: SessionDeletion, is_tight| {
            self.run(move |database| {
                let deleted = write::delete_session(database, &mut session, is_tight);
                Ok((deleted, session))
            })
        };
        match delete(session.clone(), false).await? {
            (Err(error), rest) if is_disk_full(&error) => {
                self.0.make_room().await;
                delete(rest, true).await?.0
            }
            (deleted, _) => deleted,
        }
    }
}

#[async_trait]
impl<D: DerivedIndex> Sessions for SqlBackend<D> {
    async fn get_session(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        let key = key.clone();
        self.read(move |reader| read::sessions::get(reader, &key)).await
    }

    async fn list_sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        let query = query.clone();
        self.read(move |reader| read::sessions::list(reader, &query)).await
    }

    async fn session_names(&self, scope: &Scope) -> Result<Vec<SessionName>> {
        let scope = scope.clone();
        self.read(move |reader| read::sessions::names(reader, &scope)).await
    }

    async fn session_rows(&self, key: &SessionKey) -> Result<RowCounts> {
        let key = key.clone();
        self.read_snapshot(move |reader| read::sessions::stored_rows(reader, &key)).await
    }

    async fn sync_states(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<(SessionId, StoredSyncState)>> {
        let (user, after) = (user.clone(), after.cloned());
        self.read(move |reader| read::sessions::read_sync_states(reader, &user, after.as_ref(), limit)).await
    }

    async fn write(&self, changes: Vec<SessionChange>) -> Vec<Result<Version>> {
        let (bytes, count) = (changes.iter().map(SessionChange::message_bytes).sum(), changes.len());
        let users: BTreeSet<UserId> = changes.iter().map(|change| change.session.user_id.clone()).collect();
        let written = self.run(move |database| Ok(write::sessions(database, &changes))).await;
        self.wake_readers(&users);
        match self.0.wrote(bytes).await.and(written) {
            Ok(versions) => versions,
            Err(error) => vec![Err(error); count],
        }
    }

    async fn delete_sessions(&self, sessions: &[SessionDeletion]) -> Deletion {
        let mut deleted: Vec<Result<bool>> = Vec::with_capacity(sessions.len());
        for session in sessions {
            let next = match deleted.last() {
                // The others would wait just as long for the other writer.
                Some(Err(busy)) if busy.is_retryable() && busy.kind() != ErrorKind::Conflict => {
                    Err(busy.clone())
                }
                _ => self.delete(session).await,
            };
            deleted.push(next);
        }
        self.wake_readers(sessions.iter().map(|session| &session.key.user_id));
        Deletion { deleted, remains: self.0.erase().await }
    }

    async fn deleted_sessions(&self, user: &UserId) -> Result<Vec<SessionId>> {
        let deleted = read::sessions::deleted(user);
        self.read(move |reader| reader.rows(&deleted)).await
    }

    async fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64> {
        let (old, new) = (from.clone(), to.clone());
        let renamed = self.run(move |database| write::rename_user(database, &old, &new)).await;
        self.wake_readers([from, to]);
        renamed
    }
}
