//! The files that a session read and changed.

use super::{damage::Readable, session_rows::SessionRows, store::RowReading};
use crate::{
    Result, Scope,
    content::{FileUses, UsedFile},
    model::SessionId,
};

impl RowReading<'_> {
    /// The files that the tool calls of a session changed, and then those that they read, each in order of the first
    /// message. [`ToolCall::files`](crate::content::ToolCall::files) says which calls count. Paths in the session's
    /// working folder are relative to it. Messages that can't be read are left out.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`; errors of the backend.
    pub async fn used_files(self, scope: &Scope, session_id: &SessionId) -> Result<Readable<UsedFile>> {
        let session = self.store.existing_session(scope, session_id).await?;
        let key = session.key();
        let mut uses = FileUses::new(session.working_dir);
        let mut messages = SessionRows::new(self.store, &key).messages(0);
        while let Some(page) = messages.next().await? {
            page.iter().for_each(|message| uses.add(message.sequence, &message.line()));
        }
        Ok(Readable { rows: uses.finish(), damaged: messages.damaged })
    }
}
