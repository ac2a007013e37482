//! The stored summaries of turns, and those that lines state.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::stated_summary;
use crate::{
    Result,
    backend::{StorageBackend, StorageBackendExt, SummaryQuery},
    content::is_real,
    model::{Message, MessageRef, Role, SessionKey, TurnSummary},
    search::SessionFilter,
    storage::store::StoreContext,
};

/// The summary that the line of a message states.
pub(in crate::storage) fn stated_by(message: &Message, line: &Map<String, Value>) -> Option<TurnSummary> {
    let text = stated_summary(line)?;
    let begins_turn = message.role == Role::User && is_real(line);
    begins_turn.then(|| TurnSummary {
        session: message.message_ref().session,
        user_sequence: message.sequence,
        digest: message.digest,
        text,
        is_stated: true,
        set_at: message.synced_at,
    })
}

/// Stores summaries that lines of a session state, for searches by words. Summaries that a user set for the same lines
/// stay.
pub(in crate::storage) async fn keep_stated(
    backend: &dyn StorageBackend,
    key: &SessionKey,
    mut stated: Vec<TurnSummary>,
) -> Result<()> {
    if stated.is_empty() {
        return Ok(());
    }
    let held = summaries_from(backend, key, 0).await?;
    stated.retain(|of| held.get(&of.user_sequence).is_none_or(|held| held.digest != of.digest));
    backend.write_summaries(key, stated).await.map(drop)
}

/// The stored summaries of a session from the message `start` on, by user message.
pub(in crate::storage) async fn summaries_from(
    backend: &dyn StorageBackend,
    key: &SessionKey,
    start: u32,
) -> Result<BTreeMap<u32, TurnSummary>> {
    let filter = SessionFilter::default().with_session(key.session_id.clone());
    let after = start.checked_sub(1).map(|before| MessageRef::new(key.clone(), before));
    let mut query = SummaryQuery::new(key.user_id.clone()).with_filter(filter).with_after(after);
    let mut summaries = BTreeMap::new();
    loop {
        let page = backend.list_summaries(&query).await?;
        let Some(last) = page.last() else { return Ok(summaries) };
        query.after = Some(last.message_ref());
        summaries.extend(page.into_iter().map(|of| (of.user_sequence, of)));
    }
}

impl StoreContext {
    /// The stored summaries of a session, by user message.
    pub(in crate::storage) async fn summaries_of(
        &self,
        key: &SessionKey,
    ) -> Result<BTreeMap<u32, TurnSummary>> {
        summaries_from(&*self.backend, key, 0).await
    }
}
