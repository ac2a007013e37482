//! Verification: documents that belong to nothing. The service maintains its own indexes.

use std::collections::{BTreeMap, HashSet};

use amplifier_session_core::{
    Result,
    backend::{IndexCheck, Integrity, StrayRows},
    model::{SessionId, SessionKey, UserId},
};
use async_trait::async_trait;

use crate::{
    batch::Operation,
    documents::{PayloadDocument, kind},
    ids,
    query::Select,
    store::{CosmosBackend, Store},
};

#[async_trait]
impl Integrity for CosmosBackend {
    async fn stray_rows(&self, user: &UserId, session: Option<&SessionId>) -> Result<Vec<StrayRows>> {
        let Some(session) = session else { return Ok(Vec::new()) };
        let key = SessionKey::new(user.clone(), session.clone());
        let (vectors, chunks) =
            tokio::try_join!(vectors_without_message(&self.0, &key), chunks_without_event(&self.0, &key))?;
        let vectors = by_sequence(&vectors).map(|(sequence, rows)| StrayRows::Vectors { sequence, rows });
        let chunks = by_sequence(&chunks).map(|(sequence, rows)| StrayRows::Chunks { sequence, rows });
        Ok(vectors.chain(chunks).collect())
    }

    async fn remove_stray_rows(&self, key: &SessionKey) -> Result<u64> {
        let partition = ids::partition(key);
        let mut removed = 0;
        let stray = [
            (&self.0.messages, vectors_without_message(&self.0, key).await?),
            (&self.0.chunks, chunks_without_event(&self.0, key).await?),
        ];
        for (container, stray) in stray {
            removed += stray.len() as u64;
            let deletions: Vec<Operation> = stray.into_iter().map(|(_, id)| Operation::delete(id)).collect();
            if !deletions.is_empty() {
                // Rejected if another process deleted one at the same time. The next call finds the others.
                container.write_many(&partition, deletions).await?;
            }
        }
        Ok(removed)
    }

    async fn check_index(&self) -> Result<IndexCheck> {
        Ok(IndexCheck::default())
    }
}

/// The number of rows of each sequence.
fn by_sequence(rows: &[(u32, String)]) -> impl Iterator<Item = (u32, u64)> {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for (sequence, _) in rows {
        *counts.entry(*sequence).or_default() += 1;
    }
    counts.into_iter()
}

/// The sequences and ids of vectors of a session whose message does not exist.
async fn vectors_without_message(store: &Store, key: &SessionKey) -> Result<Vec<(u32, String)>> {
    let rows = |kind| Select::rows(kind, &ids::partition(key));
    let vectors = Select::vectors(&ids::partition(key)).fields("VALUE [c.sequence, c.id]");
    let mut vectors: Vec<(u32, String)> = store.rows(&store.messages, key, vectors).await?;
    if !vectors.is_empty() {
        let messages = rows(kind::MESSAGE).fields("VALUE c.sequence");
        let messages: HashSet<u32> = store.rows(&store.messages, key, messages).await?.into_iter().collect();
        vectors.retain(|(sequence, _)| !messages.contains(sequence));
    }
    Ok(vectors)
}

/// The sequences and ids of chunks of a session that no event's payload names.
async fn chunks_without_event(store: &Store, key: &SessionKey) -> Result<Vec<(u32, String)>> {
    let partition = ids::partition(key);
    let chunks = Select::rows(kind::CHUNK, &partition).fields("VALUE c.id");
    let mut chunks: Vec<String> = store.rows(&store.chunks, key, chunks).await?;
    if !chunks.is_empty() {
        let events = Select::rows(kind::EVENT, &partition).with("c.is_chunked = @", true);
        let payloads = store.rows(&store.events, key, events.fields("VALUE c.payload")).await?;
        let named = payloads.into_iter().flat_map(|payload: PayloadDocument| match payload {
            PayloadDocument::Chunks { ids } => ids,
            _ => Vec::new(),
        });
        let named: HashSet<String> = named.collect();
        chunks.retain(|id| !named.contains(id));
    }
    Ok(chunks.into_iter().map(|id| (ids::sequence_of_chunk(key, &id), id)).collect())
}
