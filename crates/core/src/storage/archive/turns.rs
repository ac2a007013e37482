//! Embeddings and summaries of turns in an archive: with the message that begins the turn.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use super::{MessageRecord, invalid};
use crate::{
    Result,
    model::{EmbeddingSpace, Message, SessionKey, Timestamp, TurnEmbedding, TurnSummary},
    storage::{ArchiveTransfer, StoredVectors, line_masker::LineMasker, turns::PROVIDERS},
};

/// The summary of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedSummary {
    /// The summary.
    pub text: String,
    /// Whether the line itself states it. Otherwise, a person set it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stated: bool,
    /// When it was set.
    pub set_at: Timestamp,
}

impl From<&TurnSummary> for ArchivedSummary {
    fn from(of: &TurnSummary) -> Self {
        Self { text: of.text.clone(), is_stated: of.is_stated, set_at: of.set_at }
    }
}

impl ArchivedSummary {
    pub(super) fn into_summary(self, message: &Message, masker: &LineMasker) -> Result<TurnSummary> {
        Ok(TurnSummary {
            session: message.message_ref().session,
            user_sequence: message.sequence,
            digest: message.digest,
            text: masker.mask_text(Some(self.text))?.unwrap_or_default(),
            is_stated: self.is_stated,
            set_at: self.set_at,
        })
    }
}

/// The embedding of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchivedTurn {
    /// The sequence of the assistant's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assistant_sequence: Option<u32>,
    /// The provider that made it.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The text that was embedded.
    pub content_used: String,
    /// Its SHA-256, in hexadecimal digits.
    pub content_hash: String,
    /// Whether the text has a summary in place of the answer.
    pub used_turn_summary: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// The numbers as 32-bit floats, little-endian, in Base64.
    pub vector: String,
}

impl From<TurnEmbedding> for ArchivedTurn {
    fn from(of: TurnEmbedding) -> Self {
        let vector = STANDARD.encode(of.vector_bytes());
        Self {
            assistant_sequence: of.assistant_sequence,
            provider: of.provider,
            model: of.model,
            content_used: of.content_used,
            content_hash: of.content_hash,
            used_turn_summary: of.used_turn_summary,
            created_at: of.created_at,
            vector,
        }
    }
}

impl ArchivedTurn {
    /// The embedding of the turn that `message` begins. It must be of this space.
    pub(super) fn into_embedding(self, message: &Message, space: &EmbeddingSpace) -> Result<TurnEmbedding> {
        let wrong = |what: &str| invalid(format!("an embedding of a turn {what}"));
        if self.content_hash != TurnEmbedding::hash(&self.content_used) {
            return Err(wrong("has a hash that does not match its text"));
        }
        if self.model != space.model || !PROVIDERS.contains(&self.provider.as_str()) {
            return Err(wrong("is of an unknown model"));
        }
        let bytes = STANDARD.decode(self.vector).map_err(|_| wrong("is not Base64"))?;
        let embedding = TurnEmbedding {
            id: String::new(),
            user_sequence: message.sequence,
            assistant_sequence: self.assistant_sequence,
            provider: self.provider,
            model: self.model,
            dimensions: space.dimensions,
            content_used: self.content_used,
            content_hash: self.content_hash,
            used_turn_summary: self.used_turn_summary,
            vector: TurnEmbedding::read_vector(&bytes).map_err(|_| wrong("has the wrong length"))?,
            created_at: self.created_at,
        };
        embedding.validate().map_err(|error| wrong(&error.to_string()))?;
        Ok(embedding)
    }
}

/// The turns of a session that are imported, written after its rows.
#[derive(Debug, Default)]
pub(super) struct ReadTurns {
    pub(super) summaries: Vec<TurnSummary>,
    pub(super) embeddings: Vec<TurnEmbedding>,
}

impl ArchiveTransfer<'_> {
    /// Adds the embeddings of turns to the records of the messages that begin them. Returns their number.
    pub(super) async fn add_turns(
        self,
        key: &SessionKey,
        space: &EmbeddingSpace,
        records: &mut BTreeMap<u32, &mut MessageRecord>,
    ) -> Result<u64> {
        let Some(last) = records.keys().next_back().copied() else { return Ok(0) };
        let mut count = 0;
        for provider in PROVIDERS {
            let mut start = records.keys().next().copied().unwrap_or_default();
            while start <= last {
                let page =
                    StoredVectors::new(self.store).turns_from(key, provider, &space.model, start).await?;
                let Some(end) = page.last() else { break };
                start = end.user_sequence.saturating_add(1);
                for embedding in page.into_iter().filter(|of| of.dimensions == space.dimensions) {
                    if let Some(record) = records.get_mut(&embedding.user_sequence) {
                        record.turn_embeddings.push(embedding.into());
                        count += 1;
                    }
                }
            }
        }
        Ok(count)
    }
}
