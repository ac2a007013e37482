//! Vectors.

use amplifier_session_core::{
    Result, Scope,
    backend::{MessageVectors, MessagesToEmbed, PendingQuery, SequenceRange, VectorCounts, Vectors},
    model::{ContentType, ContentTypes, Message, MessageRef, SessionKey, VectorRecord},
};
use async_trait::async_trait;

use super::SqlBackend;
use crate::{
    backend::{DerivedIndex, Lookups, write},
    read,
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

    async fn vectors_of(
        &self,
        generation: u32,
        texts: &[(MessageRef, ContentType)],
    ) -> Result<Vec<(MessageRef, VectorRecord)>> {
        let texts = texts.to_vec();
        self.read(move |reader| reader.vectors_of(generation, &texts)).await
    }

    async fn vector_types(
        &self,
        generation: u32,
        key: &SessionKey,
        range: SequenceRange,
    ) -> Result<Vec<(u32, ContentTypes)>> {
        let key = key.clone();
        self.read(move |reader| read::vectors::types(reader, generation, &key, range)).await
    }
}
