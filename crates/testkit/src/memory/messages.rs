//! Messages.

use amplifier_session_core::{
    Result, Scope,
    backend::{MessageCount, Messages, SequenceRange},
    model::{Message, MessageRef, MessageState, SessionKey},
    search::SearchFilter,
};
use async_trait::async_trait;

use super::{
    MemoryBackend, page,
    rows::{MessageRow, in_range},
};

#[async_trait]
impl Messages for MemoryBackend {
    async fn message_states(&self, key: &SessionKey) -> Result<Vec<MessageState>> {
        let state = |MessageRow { message, .. }: &MessageRow| MessageState {
            digest: message.digest,
            turn: message.turn,
            ts: message.ts,
            ts_source: message.ts_source,
        };
        let rows = self.rows();
        Ok(rows.sessions.get(key).into_iter().flat_map(|of| of.messages.values()).map(state).collect())
    }

    async fn read_messages(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Message>> {
        let rows = self.rows();
        let session = rows.sessions.get(key).into_iter();
        let page = session.flat_map(|of| in_range(&of.messages, page(range)));
        Ok(page.map(|row| row.message.clone()).collect())
    }

    async fn messages_at(&self, message_refs: &[MessageRef]) -> Result<Vec<Message>> {
        let rows = self.rows();
        Ok(message_refs
            .iter()
            .filter_map(|message_ref| Some(rows.message(message_ref)?.message.clone()))
            .collect())
    }

    async fn count_messages(&self, scope: &Scope, filter: &SearchFilter) -> Result<Vec<MessageCount>> {
        let rows = self.rows();
        Ok(MessageCount::of(rows.messages(scope, filter).map(|row| (row.message.ts, row.message.role))))
    }
}
