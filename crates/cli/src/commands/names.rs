//! The titles and short ids of sessions in search results.

use std::collections::BTreeSet;

use amplifier_session_storage::{
    Scope, SessionStorage, backend::SessionQuery, model::SessionKey, search::SearchResult,
};

use crate::{failure::Failure, render::search::Names};

/// The titles and short ids of the sessions in the results.
pub(crate) async fn names<'a>(
    storage: &SessionStorage,
    scope: &Scope,
    results: impl IntoIterator<Item = &'a SearchResult>,
) -> Result<Names, Failure> {
    let results: Vec<&SearchResult> = results.into_iter().collect();
    let keys: BTreeSet<SessionKey> = results
        .iter()
        .map(|result| SessionKey::new(result.user_id.clone(), result.session_id.clone()))
        .collect();
    let mut sessions = Vec::new();
    if !keys.is_empty() {
        let limit = keys.len();
        // Listing skips a session that can't be read.
        let query = SessionQuery::new(scope.clone()).with_keys(keys).with_limit(limit);
        sessions = storage.search_sessions(&query).await?;
    }
    let ids = results.iter().map(|result| &result.session_id);
    Ok(Names::new(sessions, storage.short_ids(scope, ids).await?))
}
