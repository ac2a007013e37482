//! Reads the stored summaries of turns.

use std::collections::BTreeMap;

use super::StoreContext;
use crate::{
    Result,
    backend::SummaryQuery,
    model::{MessageRef, SessionKey, TurnSummary},
    search::SessionFilter,
};

impl StoreContext {
    /// The stored summaries of a session, by user message.
    pub(super) async fn summaries_of(&self, key: &SessionKey) -> Result<BTreeMap<u32, TurnSummary>> {
        self.summaries_from(key, 0).await
    }

    pub(super) async fn summaries_from(
        &self,
        key: &SessionKey,
        start: u32,
    ) -> Result<BTreeMap<u32, TurnSummary>> {
        let filter = SessionFilter::default().with_session(key.session_id.clone());
        let after = start.checked_sub(1).map(|before| MessageRef::new(key.clone(), before));
        let mut query = SummaryQuery::new(key.user_id.clone()).with_filter(filter).with_after(after);
        let mut summaries = BTreeMap::new();
        loop {
            let page = self.backend.list_summaries(&query).await?;
            let Some(last) = page.last() else { return Ok(summaries) };
            query.after = Some(last.message_ref());
            summaries.extend(page.into_iter().map(|of| (of.user_sequence, of)));
        }
    }
}
