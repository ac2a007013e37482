//! Messages.

use amplifier_session_core::{
    Result, Scope,
    backend::{MessageCount, Messages, SequenceRange},
    model::{Message, MessageRef, MessageState, SessionKey},
    search::SearchFilter,
};
use async_trait::async_trait;

use super::SqlBackend;
use crate::{
    Reader,
    backend::{DerivedIndex, Lookups},
    read,
};

#[async_trait]
impl<D: DerivedIndex> Messages for SqlBackend<D> {
    async fn message_states(&self, key: &SessionKey) -> Result<Vec<MessageState>> {
        let states = read::messages::states(key);
        self.read(move |reader| reader.rows(&states)).await
    }

    async fn read_messages(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Message>> {
        let messages = read::messages::of_session_from(key, range);
        self.read(move |reader| read::messages::page(reader, &messages)).await
    }

    async fn messages_at(&self, message_refs: &[MessageRef]) -> Result<Vec<Message>> {
        let message_refs = message_refs.to_vec();
        self.read(move |reader| reader.messages_at(&message_refs)).await
    }

    async fn count_messages(&self, scope: &Scope, filter: &SearchFilter) -> Result<Vec<MessageCount>> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read(move |reader| read::messages::counts(reader, &scope, &filter)).await
    }
}
