//! Tool calls in the transcripts of sessions without events.

use crate::{
    Result,
    backend::SequenceRange,
    content::called_tools,
    model::{Message, Role, SessionKey, Timestamp},
    storage::SessionStorage,
};

/// Number of messages read at a time.
const PAGE: usize = 1_000;

impl SessionStorage {
    /// Calls `each` with the tool of each call in the session's messages of the period, from message `start` on.
    pub(super) async fn each_called_tool(
        &self,
        key: &SessionKey,
        start: u32,
        in_period: impl Fn(Timestamp) -> bool,
        mut each: impl FnMut(&str),
    ) -> Result<()> {
        let mut range = SequenceRange { start, limit: PAGE };
        loop {
            // Messages that can't be read have no known calls.
            let page: Vec<Message> = self.readable_page(key, range, &mut Vec::new()).await?;
            let Some(last) = page.last() else { return Ok(()) };
            range.start = last.sequence.saturating_add(1);
            let answers = page.iter().filter(|message| message.role == Role::Assistant);
            for message in answers.filter(|message| in_period(message.ts)) {
                let line = message.raw.parse_object().unwrap_or_default();
                called_tools(&line).iter().for_each(|call| each(call.name));
            }
        }
    }
}
