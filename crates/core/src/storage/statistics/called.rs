//! Tool calls in the transcripts of sessions without events.

use crate::{
    Result,
    model::{Role, SessionKey, Timestamp},
    storage::{session_rows::SessionRows, store::StoreStatistics},
};

impl StoreStatistics<'_> {
    /// Calls `each` with the tool of each call in the session's messages of the period, from message `start` on.
    pub(super) async fn each_called_tool(
        self,
        key: &SessionKey,
        start: u32,
        in_period: impl Fn(Timestamp) -> bool,
        mut each: impl FnMut(&str),
    ) -> Result<()> {
        // Messages that can't be read have no known calls.
        let mut messages = SessionRows::new(self.store, key).messages(start);
        while let Some(page) = messages.next().await? {
            let answers = page.iter().filter(|message| message.role == Role::Assistant);
            for message in answers.filter(|message| in_period(message.ts)) {
                message.line().called_tools().iter().for_each(|call| each(call.name));
            }
        }
        Ok(())
    }
}
