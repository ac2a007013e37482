//! The titles and short ids of sessions in search results.

use std::collections::{BTreeSet, HashMap};

use amplifier_session_core::{
    Result, Scope, SessionStorage,
    backend::SessionQuery,
    model::{Session, SessionId, SessionKey},
    search::SearchResult,
};

use crate::ids::{ShortIds, address, short};

/// Sessions of results, for their titles, and their short ids.
#[derive(Debug)]
pub struct ResultNames {
    sessions: HashMap<SessionKey, Session>,
    /// Short forms of their ids, unique in the store.
    short_ids: ShortIds,
}

impl ResultNames {
    fn new(sessions: Vec<Session>, short_ids: ShortIds) -> Self {
        Self { sessions: sessions.into_iter().map(|session| (session.key(), session)).collect(), short_ids }
    }

    /// The session of a result, if it can be read.
    #[must_use]
    pub fn session(&self, result: &SearchResult) -> Option<&Session> {
        self.sessions.get(&key_of(result))
    }

    /// The title of the session of a result, if it can be read.
    #[must_use]
    pub fn title(&self, result: &SearchResult) -> Option<&str> {
        self.session(result).map(Session::title)
    }

    /// A session, if it can be read.
    pub(crate) fn session_of(&self, key: &SessionKey) -> Option<&Session> {
        self.sessions.get(key)
    }

    /// The title of a session, if it can be read.
    #[must_use]
    pub fn title_of(&self, key: &SessionKey) -> Option<&str> {
        self.sessions.get(key).map(Session::title)
    }

    /// The short id of a session.
    #[must_use]
    pub fn short_id_of<'a>(&'a self, id: &'a SessionId) -> &'a str {
        short(&self.short_ids, id)
    }

    /// The short id of the session.
    #[must_use]
    pub fn short_id<'a>(&'a self, result: &'a SearchResult) -> &'a str {
        short(&self.short_ids, &result.session_id)
    }

    /// The address of the message, for `show`.
    #[must_use]
    pub fn address(&self, result: &SearchResult) -> String {
        address(self.short_id(result), result.sequence)
    }
}

/// The session of a result.
pub(crate) fn key_of(result: &SearchResult) -> SessionKey {
    SessionKey::new(result.user_id.clone(), result.session_id.clone())
}

/// The titles and short ids of the sessions in the results.
///
/// # Errors
///
/// Errors of the store.
pub async fn names<'a>(
    storage: &SessionStorage,
    scope: &Scope,
    results: impl IntoIterator<Item = &'a SearchResult>,
) -> Result<ResultNames> {
    names_of(storage, scope, results.into_iter().map(key_of).collect()).await
}

/// The titles and short ids of sessions.
///
/// # Errors
///
/// Errors of the store.
#[crate::compiled_here]
pub async fn names_of(
    storage: &SessionStorage,
    scope: &Scope,
    keys: BTreeSet<SessionKey>,
) -> Result<ResultNames> {
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
