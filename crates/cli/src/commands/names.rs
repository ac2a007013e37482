//! The titles and short ids of sessions in search results.

use std::collections::BTreeSet;

use amplifier_session_storage::{
    Scope, SessionStorage,
    backend::SessionQuery,
    model::{SessionId, SessionKey},
    search::SearchResult,
};

use crate::{failure::Failure, render::result::ResultNames};

/// The titles and short ids of the sessions in the results.
pub(crate) async fn names<'a>(
    storage: &SessionStorage,
    scope: &Scope,
    results: impl IntoIterator<Item = &'a SearchResult>,
) -> Result<ResultNames, Failure> {
    let keys = results
        .into_iter()
        .map(|result| SessionKey::new(result.user_id.clone(), result.session_id.clone()))
        .collect();
    names_of(storage, scope, keys).await
}

/// The titles and short ids of sessions.
pub(crate) async fn names_of(
    storage: &SessionStorage,
    scope: &Scope,
    keys: BTreeSet<SessionKey>,
) -> Result<ResultNames, Failure> {
    let ids: Vec<SessionId> = keys.iter().map(|key| key.session_id.clone()).collect();
    let mut sessions = Vec::new();
    if !keys.is_empty() {
        let limit = keys.len();
        // Listing skips a session that can't be read.
        let query = SessionQuery::new(scope.clone()).with_keys(keys).with_limit(limit);
        sessions = storage.sessions().search_sessions(&query).await?;
    }
    Ok(ResultNames::new(sessions, storage.sessions().short_ids(scope, &ids).await?))
}
