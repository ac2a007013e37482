//! Summaries and vectors of turns in an archive: with the message that begins the turn.

use serde::{Deserialize, Serialize};

use super::{
    invalid,
    vectors::{decoded, encoded},
};
use crate::{
    Result,
    model::{EmbeddedTurn, EmbeddingSpace, Message, MessageRef, Timestamp, TurnSummary, VectorRecord},
    storage::{line_masker::LineMasker, turn_texts::PROVIDERS},
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

/// The vector of a turn.
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
    /// Whether the turn has changed since, so that the vector is pending.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_pending: bool,
    /// The numbers as 32-bit floats, little-endian, in Base64.
    pub vector: String,
}

impl ArchivedTurn {
    /// The vector of a turn by this model; `None` if it is that of another text.
    pub(super) fn of(record: VectorRecord, model: &str, is_pending: bool) -> Option<Self> {
        let turn = record.turn?;
        Some(Self {
            assistant_sequence: turn.assistant_sequence,
            provider: turn.provider,
            model: model.to_owned(),
            content_used: turn.content_used,
            content_hash: turn.content_hash,
            used_turn_summary: turn.used_turn_summary,
            created_at: turn.created_at,
            is_pending,
            vector: encoded(&record.vector),
        })
    }

    /// The vector of the turn that `message` begins. It must be of this space.
    pub(super) fn into_record(self, message: &Message, space: &EmbeddingSpace) -> Result<VectorRecord> {
        if self.model != space.model || !PROVIDERS.contains(&self.provider.as_str()) {
            return Err(invalid("an embedding of a turn is of an unknown model"));
        }
        let MessageRef { session, sequence } = message.message_ref();
        let turn = EmbeddedTurn {
            id: EmbeddedTurn::new_id(&session, sequence, &self.provider, &self.model, self.created_at),
            assistant_sequence: self.assistant_sequence,
            provider: self.provider,
            content_used: self.content_used,
            content_hash: self.content_hash,
            used_turn_summary: self.used_turn_summary,
            created_at: self.created_at,
        };
        let record = VectorRecord::of_turn(turn, decoded(&self.vector)?);
        record.validate(space).map_err(|error| invalid(format!("an embedding of a turn: {error}")))?;
        Ok(record)
    }
}
