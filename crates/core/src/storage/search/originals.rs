//! Copied messages are shown in the session that they come from, and not in a fork of it.

use std::collections::HashMap;

use serde_json::Value;

use super::reading::{ReadMessage, ReadMessages};
use crate::{
    ErrorKind, Result, Scope,
    backend::SessionQuery,
    model::{MessageRef, SessionId, SessionKey},
    search::{Repeat, SearchResult, SessionFilter},
    storage::store::TranscriptSearch,
};

impl TranscriptSearch<'_> {
    /// Moves results whose message is also in the parent of their session to the parent. A fork with more about the
    /// query ranks above its parent, and so does its copy of a message; but people look for the message in the session
    /// where it was written, and the fork has its own messages among the results.
    pub(super) async fn show_originals(
        self,
        results: &mut [SearchResult],
        reading: &ReadMessages,
    ) -> Result<()> {
        let parents = self.parents(results).await?;
        for result in results {
            // A fork of a fork is moved twice.
            for _ in 0..result.also_in.len() {
                let parent = parents.get(&key_of(result));
                let is_parent =
                    |repeat: &Repeat| repeat.user_id == result.user_id && Some(&repeat.session_id) == parent;
                let Some(at) = result.also_in.iter().position(is_parent) else { break };
                move_to_repeat(result, at, reading);
            }
        }
        Ok(())
    }

    /// The parents of the sessions with repeated results.
    async fn parents(self, results: &[SearchResult]) -> Result<HashMap<SessionKey, SessionId>> {
        let repeated = results.iter().filter(|result| !result.also_in.is_empty());
        let keys: Vec<SessionKey> = repeated
            .flat_map(|result| {
                let of_repeat =
                    |repeat: &Repeat| SessionKey::new(repeat.user_id.clone(), repeat.session_id.clone());
                result.also_in.iter().map(of_repeat).chain([key_of(result)])
            })
            .collect();
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let only = SessionFilter::default().with_only(keys);
        let query = SessionQuery::new(Scope::Everyone).with_filter(only);
        let sessions = match self.store.backend.list_sessions(&query).await {
            // The messages that were found are still worth showing.
            Err(error) if error.kind() == ErrorKind::Damaged => Vec::new(),
            sessions => sessions?,
        };
        let with_parent =
            sessions.into_iter().filter_map(|session| Some((session.key(), session.parent_id?)));
        Ok(with_parent.collect())
    }
}

fn key_of(result: &SearchResult) -> SessionKey {
    SessionKey::new(result.user_id.clone(), result.session_id.clone())
}

/// Shows the repeat at `at` as the result, and the result as its repeat. Their texts are the same.
fn move_to_repeat(result: &mut SearchResult, at: usize, reading: &ReadMessages) {
    let key = key_of(result);
    let Some(repeat) = result.also_in.get_mut(at) else { return };
    let parent = SessionKey::new(repeat.user_id.clone(), repeat.session_id.clone());
    let Some(ReadMessage { message, line, .. }) = reading.get(&MessageRef::new(parent, repeat.sequence))
    else {
        return;
    };
    *repeat = Repeat { user_id: key.user_id, session_id: key.session_id, sequence: result.sequence };
    result.session_id = message.session_id.clone();
    result.project = message.project_slug.clone();
    (result.sequence, result.turn, result.role) = (message.sequence, message.turn, message.role);
    (result.ts, result.ts_estimated) = (message.ts, message.ts_source.is_estimated());
    result.ts_source = message.ts_source;
    if let Some(shown) = &mut result.message {
        *shown = Value::Object(line.fields().clone());
    }
}
