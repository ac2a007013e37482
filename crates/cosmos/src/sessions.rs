//! Sessions: reading and listing. Writing, deleting and renaming are in `write` and `rename`.

use std::future::ready;

use amplifier_session_core::{
    Result, Scope,
    backend::{
        Deletion, RowCounts, SessionChange, SessionCursor, SessionDeletion, SessionName, SessionQuery,
        Sessions, StoredSession, StoredSyncState, Version,
    },
    model::{Session, SessionId, SessionKey, Timestamp, UserId},
    search::SessionFilter,
};
use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Deserialize;
use serde_json::json;

use crate::{
    containers::order,
    documents::{SessionDocument, kind},
    ids,
    messages::CountedMessage,
    meta,
    query::Select,
    rename, scope,
    store::CosmosBackend,
    write,
};

/// The sync state of a session.
#[derive(Debug, Deserialize)]
struct SessionSyncState {
    session_id: SessionId,
    #[serde(flatten)]
    state: StoredSyncState,
}

#[async_trait]
impl Sessions for CosmosBackend {
    async fn get_session(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        match self.0.session(key).await? {
            Some(document) if document.committed => document.into_stored(self.0.files(key).await?).map(Some),
            _ => Ok(None),
        }
    }

    async fn list_sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        let mut select = scope::select(&query.scope, &query.filter)
            .with_some("STARTSWITH(c.session_id, @)", query.id_prefix.as_ref())
            .with_some("c.updated >= @", query.since)
            .with_some("c.updated < @", query.until)
            .with_some("c.created < @", query.created_until)
            .with_some("c.parent_id = @", query.parent.as_ref());
        if let Some(keys) = &query.keys {
            let ids: Vec<&SessionId> = keys.iter().map(|key| &key.session_id).collect();
            select = select.with("ARRAY_CONTAINS(@, c.session_id)", ids);
        }
        if let Some(SessionCursor { updated, key }) = &query.after {
            select = select.with_all(
                "(c.updated < @0 OR (c.updated = @0 AND (c.user_id > @1 OR (c.user_id = @1 AND c.session_id > @2))))",
                [json!(updated), json!(key.user_id), json!(key.session_id)],
            );
        }
        let query_text = select.ordered(order::SESSIONS).documents().for_about(query.limit);
        let found = self.0.sessions.query::<SessionDocument>(query_text).await?;
        let sessions = found.map_ok(|document| document.fields.session);
        sessions.try_filter(|session| ready(query.admits(session))).take(query.limit).try_collect().await
    }

    async fn session_names(&self, scope: &Scope) -> Result<Vec<SessionName>> {
        let select = scope::select(scope, &SessionFilter::default());
        self.0.sessions.all(select.fields("c.session_id, c.parent_id")).await
    }

    async fn session_rows(&self, key: &SessionKey) -> Result<RowCounts> {
        let partition = ids::partition(key);
        let current = meta::generations(&self.0).await?.current_number();
        let mut rows = RowCounts::default();
        let messages = Select::rows(kind::MESSAGE, &partition).fields(CountedMessage::FIELDS);
        for message in self.0.messages.all::<CountedMessage>(messages).await? {
            rows.messages.add(message.sequence, message.ts);
            rows.pending_vectors += u64::from(message.vectors.is_pending());
            rows.synced_at = rows.synced_at.max(Some(message.synced_at));
            for of in message.generations.iter().filter(|of| of.number == current) {
                rows.vectors += u64::from(of.vectors);
                rows.turn_vectors += u64::from(of.turns);
            }
        }
        let events = Select::rows(kind::EVENT, &partition).fields("VALUE [c.sequence, c.ts]");
        for (sequence, ts) in self.0.events.all::<(u32, Timestamp)>(events).await? {
            rows.events.add(sequence, ts);
        }
        Ok(rows)
    }

    async fn sync_states(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<(SessionId, StoredSyncState)>> {
        let select = Select::rows(kind::FILES, user.as_str())
            .and("IS_DEFINED(c.sync_state)")
            .with_some("c.session_id > @", after)
            .ordered(order::SESSION_ID);
        let query = select.fields("c.session_id, c.sync_state, c.settled, c.rewound").for_about(limit);
        let states = self.0.sessions.query::<SessionSyncState>(query).await?.take(limit);
        states.map_ok(|found| (found.session_id, found.state)).try_collect().await
    }

    async fn write(&self, changes: Vec<SessionChange>) -> Vec<Result<Version>> {
        stream::iter(changes).then(|change| write::write(&self.0, change)).collect().await
    }

    async fn delete_sessions(&self, sessions: &[SessionDeletion]) -> Deletion {
        let deleted = stream::iter(sessions).then(|session| write::delete(&self.0, session));
        Deletion::complete(deleted.collect().await)
    }

    async fn deleted_sessions(&self, user: &UserId) -> Result<Vec<SessionId>> {
        let deletions = self.0.deletions(user).await?.into_iter();
        let mut deleted: Vec<SessionId> = deletions.map(|of| of.fields.session_id).collect();
        if !deleted.is_empty() {
            let select = Select::rows(kind::SESSION, user.as_str()).and("c.committed = true");
            let select = select.with("ARRAY_CONTAINS(@, c.session_id)", &deleted);
            let created_again: Vec<String> = self.0.sessions.all(select.fields("VALUE c.session_id")).await?;
            deleted.retain(|id| !created_again.iter().any(|again| again == id.as_str()));
        }
        Ok(deleted)
    }

    async fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64> {
        rename::rename(&self.0, from, to).await
    }
}
