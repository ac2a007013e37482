//! Reading sessions.

use std::collections::HashMap;

use amplifier_session_core::{
    Result, Scope,
    backend::{SessionName, SessionQuery, StoredSession},
    model::{Session, SessionId, SessionKey, UserId},
    search::SessionFilter,
};
use serde::Deserialize;

use crate::{
    client::{Within, page_of},
    documents::{DeletedDocument, FilesDocument, SessionDocument},
    ids, lease, queries,
    store::Store,
};

pub(crate) async fn get(store: &Store, key: &SessionKey) -> Result<Option<StoredSession>> {
    match lease::read(store, key).await? {
        Some(document) if document.committed => {
            let files = files(store, key).await?;
            document.into_stored(files).map(Some)
        }
        _ => Ok(None),
    }
}

/// What is kept beside the fields of a session.
pub(crate) async fn files(store: &Store, key: &SessionKey) -> Result<Option<FilesDocument>> {
    store.sessions.read(key.user_id.as_str(), &ids::files(&key.session_id)).await
}

pub(crate) async fn list(store: &Store, query: &SessionQuery) -> Result<Vec<Session>> {
    let within = within_of(&query.scope);
    let sql = queries::sessions(query).in_pages_of(page_of(query.limit));
    let mut pages = store.sessions.query::<SessionDocument>(within, sql).await?;
    let mut sessions = Vec::new();
    while sessions.len() < query.limit {
        let Some(page) = pages.next().await? else { break };
        let page = page.into_iter().map(|document| document.session);
        sessions.extend(page.filter(|session| query.admits(session)));
    }
    sessions.truncate(query.limit);
    Ok(sessions)
}

/// The sessions that a read looks at, as they are now: what they are shared with and labelled with is kept nowhere else.
pub(crate) async fn within(
    store: &Store,
    scope: &Scope,
    filter: &SessionFilter,
) -> Result<HashMap<String, Session>> {
    let query = queries::scope(scope, filter);
    let documents: Vec<SessionDocument> = store.sessions.all(within_of(scope), query).await?;
    let sessions = documents.into_iter().map(|document| document.session);
    let admitted = sessions.filter(|session| scope.allows(session) && filter.admits(session));
    Ok(admitted.map(|session| (ids::partition(&session.key()), session)).collect())
}

fn within_of(scope: &Scope) -> Within<'_> {
    match scope {
        Scope::User(user) => Within::Partition(user.as_str()),
        _ => Within::All,
    }
}

#[derive(Debug, Deserialize)]
struct NameDocument {
    session_id: SessionId,
    #[serde(default)]
    parent_id: Option<SessionId>,
}

/// The ids of the sessions of `scope`.
pub(crate) async fn names(store: &Store, scope: &Scope) -> Result<Vec<SessionName>> {
    let names: Vec<NameDocument> = store.sessions.all(within_of(scope), queries::names(scope)).await?;
    Ok(names.into_iter().map(|name| SessionName::new(name.session_id, name.parent_id)).collect())
}

#[derive(Debug, Deserialize)]
struct SyncState {
    session_id: SessionId,
    sync_state: String,
}

pub(crate) async fn sync_states(
    store: &Store,
    user: &UserId,
    after: Option<&SessionId>,
    limit: usize,
) -> Result<Vec<(SessionId, String)>> {
    let within = Within::Partition(user.as_str());
    let sql = queries::sync_states(after).in_pages_of(page_of(limit));
    let mut pages = store.sessions.query::<SyncState>(within, sql).await?;
    let mut states = Vec::new();
    while states.len() < limit {
        let Some(page) = pages.next().await? else { break };
        states.extend(page.into_iter().map(|state| (state.session_id, state.sync_state)));
    }
    states.truncate(limit);
    Ok(states)
}

/// What is remembered of deleted sessions of a user, also of those that have come again.
pub(crate) async fn deletions(store: &Store, user: &UserId) -> Result<Vec<DeletedDocument>> {
    store.sessions.all(Within::Partition(user.as_str()), queries::deletions()).await
}

#[derive(Debug, Deserialize)]
struct Present {
    id: String,
    committed: bool,
}

/// The deleted sessions of a user that have not come again.
pub(crate) async fn deleted(store: &Store, user: &UserId) -> Result<Vec<SessionId>> {
    let mut ids: Vec<SessionId> =
        deletions(store, user).await?.into_iter().map(|deleted| deleted.session_id).collect();
    if !ids.is_empty() {
        let wanted: Vec<String> = ids.iter().map(SessionId::to_string).collect();
        let present: Vec<Present> =
            store.sessions.all(Within::Partition(user.as_str()), queries::of_ids(&wanted)).await?;
        ids.retain(|id| !present.iter().any(|found| found.committed && found.id == id.as_str()));
    }
    Ok(ids)
}
