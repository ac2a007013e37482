//! Vectors in an archive.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use super::{ArchivedTurn, MessageRecord, invalid};
use crate::{
    Result,
    backend::{MessageVectors, StorageBackendExt},
    content::ExtractedText,
    model::{
        ContentType, Digest, EmbeddingSpace, Message, MessageRef, SessionKey, VectorRecord, VectorState,
        VectorText,
    },
    storage::store::ArchiveTransfer,
};

/// The number of messages whose vectors are read at a time.
const MESSAGES: usize = 50;

/// A vector of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchivedVector {
    /// The content type of the text.
    pub content_type: ContentType,
    /// The index among the chunks of the text, from 0.
    pub chunk_index: u32,
    /// The number of chunks of the text.
    pub total_chunks: u32,
    /// The first character of the chunk.
    pub span_start: u32,
    /// One past its last character.
    pub span_end: u32,
    /// Its length in tokens.
    pub token_count: u32,
    /// The numbers as 32-bit floats, little-endian, in Base64.
    pub vector: String,
}

impl From<VectorRecord> for ArchivedVector {
    fn from(record: VectorRecord) -> Self {
        let VectorRecord {
            text, chunk_index, total_chunks, span_start, span_end, token_count, vector, ..
        } = record;
        let (content_type, vector) = (text.content_type(), encoded(&vector));
        Self { content_type, chunk_index, total_chunks, span_start, span_end, token_count, vector }
    }
}

impl ArchivedVector {
    /// The vector, if it belongs to this space and to one of these texts.
    fn into_record(self, space: &EmbeddingSpace, texts: &[ExtractedText]) -> Result<VectorRecord> {
        let Self { content_type, chunk_index, total_chunks, span_start, span_end, token_count, vector } =
            self;
        let record = VectorRecord {
            text: content_type.into(),
            chunk_index,
            total_chunks,
            span_start,
            span_end,
            token_count,
            vector: decoded(&vector)?,
            turn: None,
        };
        record.validate(space).map_err(|error| invalid(format!("a vector of the message: {error}")))?;
        let length: f32 = record.vector.iter().map(|number| number * number).sum();
        if (length - 1.0).abs() > 0.01 {
            return Err(invalid("a vector of the message does not have length 1"));
        }
        let text = texts.iter().find(|text| text.content_type == content_type);
        if text.is_none_or(|text| (span_end as usize) > text.text.chars().count()) {
            return Err(invalid("a vector belongs to a text that the message does not have"));
        }
        Ok(record)
    }
}

/// Numbers as 32-bit floats, little-endian, in Base64.
pub(super) fn encoded(vector: &[f32]) -> String {
    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    STANDARD.encode(bytes)
}

/// The numbers that [`encoded`] wrote.
pub(super) fn decoded(vector: &str) -> Result<Vec<f32>> {
    let bytes = STANDARD.decode(vector).map_err(|_| invalid("a vector of the message is not Base64"))?;
    let (numbers, []) = bytes.as_chunks::<4>() else {
        return Err(invalid("a vector of the message has the wrong length"));
    };
    Ok(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
}

/// The vectors of a store that are exported.
#[derive(Debug)]
pub(super) struct ExportedVectors {
    pub(super) space: EmbeddingSpace,
    /// Whether vectors of turns are exported too.
    pub(super) with_turns: bool,
    generation: u32,
    /// Why messages of the session have no vectors.
    failures: BTreeMap<u32, String>,
}

impl ArchiveTransfer<'_> {
    /// The vectors of a session to export; `None` if the store has no vectors.
    pub(super) async fn vectors_to_export(self, key: &SessionKey) -> Result<Option<ExportedVectors>> {
        let Some(current) = self.store.generations().await?.current else { return Ok(None) };
        let failures = self.store.backend.vector_failures(current.number, key).await?.into_iter().collect();
        Ok(Some(ExportedVectors {
            space: current.space,
            with_turns: true,
            generation: current.number,
            failures,
        }))
    }

    /// Adds the vectors of messages to their records. Pending ones are left out, because they will be made again.
    /// Returns the number of vectors of texts and of turns.
    pub(super) async fn add_vectors(
        self,
        exported: &mut ExportedVectors,
        messages: &[(MessageRef, VectorState)],
        records: &mut [MessageRecord],
    ) -> Result<(u64, u64)> {
        let (mut count, mut turns) = (0, 0);
        for (messages, records) in messages.chunks(MESSAGES).zip(records.chunks_mut(MESSAGES)) {
            let stored = messages.iter().filter(|(_, state)| state.has_stored());
            let is_wanted = |text: &VectorText| *text != VectorText::Turn || exported.with_turns;
            let texts: Vec<_> = stored
                .flat_map(|(message, _)| {
                    let texts = VectorText::ALL.into_iter().filter(is_wanted);
                    texts.map(|text| (message.clone(), text))
                })
                .collect();
            let mut vectors: BTreeMap<u32, Vec<VectorRecord>> = BTreeMap::new();
            for (message, record) in self.store.backend.vectors_of(exported.generation, &texts).await? {
                vectors.entry(message.sequence).or_default().push(record);
            }
            for ((message, state), record) in messages.iter().zip(records) {
                let mut of_message = vectors.remove(&message.sequence).unwrap_or_default();
                of_message.sort_by_key(|record| (record.text, record.chunk_index));
                // The vector of the turn sorts after those of the texts.
                let of_texts = of_message.iter().filter(|record| record.text != VectorText::Turn).count();
                let is_pending = *state == VectorState::TurnPending;
                let of_turn = of_message.split_off(of_texts).into_iter();
                record.turn_embeddings = of_turn
                    .filter_map(|of| ArchivedTurn::of(of, &exported.space.model, is_pending))
                    .collect();
                turns += record.turn_embeddings.len() as u64;
                count += of_texts as u64;
                record.vectors = of_message.into_iter().map(ArchivedVector::from).collect();
                let failure = exported.failures.remove(&message.sequence);
                record.vector_failure = failure.filter(|_| state.has_stored());
            }
        }
        Ok((count, turns))
    }
}

/// The vectors of an imported message; `None` if the archive has neither vectors nor a reason for their absence.
pub(super) fn of_message(
    message: &Message,
    texts: &[ExtractedText],
    space: &EmbeddingSpace,
    vectors: Vec<ArchivedVector>,
    failure: Option<String>,
) -> Result<Option<MessageVectors>> {
    if message.vectors != VectorState::Pending || (vectors.is_empty() && failure.is_none()) {
        return Ok(None);
    }
    let records: Vec<VectorRecord> =
        vectors.into_iter().map(|vector| vector.into_record(space, texts)).collect::<Result<_>>()?;
    let digest = Digest::of(message.raw.as_bytes());
    let made = MessageVectors::new(message.sequence, digest, message.synced_at, records);
    Ok(Some(MessageVectors { failure, ..made }))
}
