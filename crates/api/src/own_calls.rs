//! Leaves out what a search finds only because the same agent has just searched.

use std::collections::HashSet;

use amplifier_session_core::{
    Scope,
    content::own_calls,
    model::{MessageRef, Timestamp},
    search::{SearchResult, SearchResults},
};

use crate::{Api, ApiError, names::key_of};

/// Calls of this age count: older ones are part of what happened.
const SECONDS: i64 = 120;
/// A result is at most this many messages after its call, if several calls run at once.
const BETWEEN: u32 = 12;

impl Api<'_> {
    /// Removes the messages that have just read sessions. Returns their number.
    pub(crate) async fn leave_out_own_calls(
        &self,
        scope: &Scope,
        found: &mut SearchResults,
    ) -> Result<usize, ApiError> {
        let since = self.now.timestamp().as_microsecond().saturating_sub(SECONDS * 1_000_000);
        let is_recent = |ts: Timestamp| ts.as_micros() >= since;
        let mut own = HashSet::new();
        for result in found.results.iter().chain(&found.nearest).filter(|result| is_recent(result.ts)) {
            if self.is_own_call(scope, result).await? {
                own.insert(place(result));
            }
        }
        let before = found.results.len();
        found.results.retain(|result| !own.contains(&place(result)));
        found.nearest.take_if(|nearest| own.contains(&place(nearest)));
        Ok(before - found.results.len())
    }

    async fn is_own_call(&self, scope: &Scope, result: &SearchResult) -> Result<bool, ApiError> {
        let (session, sequence) = (&result.session_id, result.sequence);
        let around = self.storage.reading().get_message_context(scope, session, sequence, BETWEEN, 0).await?;
        let lines: Vec<_> = around.messages.iter().map(|message| message.line()).collect();
        let is_it = around.messages.last().is_some_and(|last| last.sequence == sequence);
        Ok(is_it && own_calls(&lines).last() == Some(&true))
    }
}

fn place(result: &SearchResult) -> MessageRef {
    MessageRef::new(key_of(result), result.sequence)
}
