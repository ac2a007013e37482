//! Vectors.

use amplifier_session_core::{
    Result, Scope,
    backend::{MessageVectors, MessagesToEmbed, PendingQuery, SequenceRange, VectorCounts, Vectors},
    model::{ContentType, Message, MessageRef, SessionKey, VectorRecord, VectorText},
    search::MissingVectors,
};
use async_trait::async_trait;

use super::SqlBackend;
use crate::{
    backend::{DerivedIndex, Lookups, write},
    read, turns,
};

#[async_trait]
impl<D: DerivedIndex> Vectors for SqlBackend<D> {
    async fn messages_pending_vectors(&self, query: &PendingQuery) -> Result<Vec<Message>> {
        let query = query.clone();
        self.read_snapshot(move |reader| read::messages::pending(reader, &query)).await
    }

    async fn write_vectors(
        &self,
        key: &SessionKey,
        generation: u32,
        of_messages: Vec<MessageVectors>,
    ) -> Result<usize> {
        let key = key.clone();
        let bytes = of_messages.iter().map(MessageVectors::vector_bytes).sum();
        let stored =
            self.run(move |database| write::vectors(database, &key, generation, &of_messages)).await?;
        self.0.wrote(bytes).await?;
        Ok(stored)
    }

    async fn mark_pending(&self, key: &SessionKey, which: MessagesToEmbed) -> Result<u64> {
        let key = key.clone();
        self.run(move |database| write::mark_pending(database, &key, &which)).await
    }

    async fn complete_generation(&self, generation: u32) -> Result<bool> {
        self.run(move |database| write::complete_generation(database, generation)).await
    }

    async fn prune_vectors(&self, limit: usize) -> Result<usize> {
        self.run(move |database| write::prune_vectors(database, limit)).await
    }

    async fn count_vectors(&self, scope: &Scope) -> Result<VectorCounts> {
        let scope = scope.clone();
        self.read_snapshot(move |reader| read::vectors::counts(reader, &scope)).await
    }

    async fn missing_vectors(&self, scope: &Scope) -> Result<MissingVectors> {
        let scope = scope.clone();
        self.read_snapshot(move |reader| read::vectors::missing(reader, &scope)).await
    }

    async fn vectors_of(
        &self,
        generation: u32,
        texts: &[(MessageRef, VectorText)],
    ) -> Result<Vec<(MessageRef, VectorRecord)>> {
        let (mut of_messages, mut of_turns): (Vec<(MessageRef, ContentType)>, _) = (Vec::new(), Vec::new());
        for (message, text) in texts {
            match text {
                VectorText::Content(content_type) => of_messages.push((message.clone(), *content_type)),
                VectorText::Turn => of_turns.push(message.clone()),
            }
        }
        self.read(move |reader| {
            let mut found = reader.vectors_of(generation, &of_messages)?;
            found.extend(turns::vectors_of(reader, generation, &of_turns)?);
            Ok(found)
        })
        .await
    }

    async fn vector_texts(
        &self,
        generation: u32,
        key: &SessionKey,
        range: SequenceRange,
    ) -> Result<Vec<(u32, Vec<VectorText>)>> {
        let key = key.clone();
        self.read(move |reader| read::vectors::texts(reader, generation, &key, range)).await
    }
}
