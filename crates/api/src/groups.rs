//! Results grouped by session.

use std::collections::HashMap;

use amplifier_session_core::{
    Result, Scope, SessionStorage,
    search::{SearchOptions, SearchResult, SearchResults},
};

use crate::names::key_of;

/// The number of messages of a session that are shown.
pub const HITS: usize = 3;
/// The number of messages to request per session: if the first number yields too few sessions, the second one is used.
const MESSAGES_A_SESSION: [usize; 2] = [5, 20];
/// The most messages that a search returns.
const MOST: usize = 1_000;

/// Searches for messages of at least `options.limit` sessions, if the best messages come from that many.
///
/// # Errors
///
/// As [`amplifier_session_core::storage::TranscriptSearch::search_transcripts`].
pub(crate) async fn find(
    storage: &SessionStorage,
    scope: &Scope,
    options: &SearchOptions,
) -> Result<SearchResults> {
    let sessions = options.limit;
    let [few, many] = MESSAGES_A_SESSION.map(|messages| sessions.saturating_mul(messages).min(MOST));
    let found = storage.search().search_transcripts(scope, &options.clone().with_limit(few)).await?;
    if found.results.len() < few || few == many || by_session(&found.results).len() >= sessions {
        return Ok(found);
    }
    storage.search().search_transcripts(scope, &options.clone().with_limit(many)).await
}

/// The ranks of the results of each session, best first. Sessions are in the order of their best results.
pub(crate) fn by_session(results: &[SearchResult]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut places = HashMap::new();
    for (rank, result) in results.iter().enumerate() {
        let place = *places.entry(key_of(result)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(rank),
            None => groups.push(vec![rank]),
        }
    }
    groups
}
