//! Messages: reading and counting. They are written with their session.

use async_trait::async_trait;

use super::{MessageCount, SequenceRange};
use crate::{
    Result,
    model::{Message, MessageRef, MessageState, SessionKey},
    scope::Scope,
    search::SearchFilter,
};

/// Reads messages.
#[async_trait]
pub trait Messages: Send + Sync {
    /// Digest, turn and time of every message of a session, in order of sequence.
    async fn message_states(&self, key: &SessionKey) -> Result<Vec<MessageState>>;

    /// A page of a session's messages, in order of sequence.
    async fn read_messages(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Message>>;

    /// These messages, in any order. Leaves out those that do not exist.
    async fn messages_at(&self, message_refs: &[MessageRef]) -> Result<Vec<Message>>;

    /// Counts the messages that `scope` and `filter` admit by quarter of an hour and role, in any order.
    async fn count_messages(&self, scope: &Scope, filter: &SearchFilter) -> Result<Vec<MessageCount>>;
}
