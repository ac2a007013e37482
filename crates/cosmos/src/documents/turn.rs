//! Embeddings and summaries of turns.

use amplifier_session_core::{
    Result,
    model::{Digest, MessageRef, SessionId, SessionKey, Timestamp, TurnEmbedding, TurnSummary, UserId},
};
use serde::{Deserialize, Serialize};

use super::{Bytes, Document, kind};
use crate::ids;

/// The fields that a query selects to read embeddings without texts and vectors.
pub(crate) const TURN_FIELDS: &str = "c.id, c.type, c.user_id_session_id, c.user_id, c.session_id, c.embedding_id, \
    c.user_sequence, c.assistant_sequence, c.user_message_id, c.assistant_message_id, c.provider, c.model, c.dim, \
    c.content_hash, c.used_turn_summary, c.created_at";

/// It has no `sequence`, so changes of rows do not remove it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TurnFields {
    pub(crate) user_id_session_id: String,
    user_id: UserId,
    session_id: SessionId,
    embedding_id: String,
    pub(crate) user_sequence: u32,
    pub(crate) assistant_sequence: Option<u32>,
    user_message_id: String,
    assistant_message_id: Option<String>,
    provider: String,
    model: String,
    dim: usize,
    content_hash: String,
    used_turn_summary: bool,
    created_at: Timestamp,
    #[serde(default)]
    content_used: String,
    /// Little-endian 32-bit floats. `None` if the query does not select it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vector: Option<Bytes>,
}

/// An embedding of a turn. The id is derived from the fields that make it unique.
pub(crate) type TurnDocument = Document<TurnFields>;

impl TurnDocument {
    pub(crate) fn new(key: &SessionKey, of: &TurnEmbedding) -> Self {
        let unique = Digest::of(format!("{}\0{}", of.provider, of.model).as_bytes());
        let fields = TurnFields {
            user_id_session_id: ids::partition(key),
            user_id: key.user_id.clone(),
            session_id: key.session_id.clone(),
            embedding_id: of.id.clone(),
            user_sequence: of.user_sequence,
            assistant_sequence: of.assistant_sequence,
            user_message_id: of.user_message_id(key),
            assistant_message_id: of.assistant_message_id(key),
            provider: of.provider.clone(),
            model: of.model.clone(),
            dim: of.dimensions,
            content_hash: of.content_hash.clone(),
            used_turn_summary: of.used_turn_summary,
            created_at: of.created_at,
            content_used: of.content_used.clone(),
            vector: Some(Bytes::binary(&of.vector_bytes())),
        };
        Self::of(kind::TURN, format!("turn-{}-{unique:?}", of.user_sequence), fields)
    }

    pub(crate) fn message_ref(&self) -> MessageRef {
        let session = SessionKey::new(self.user_id.clone(), self.session_id.clone());
        MessageRef::new(session, self.user_sequence)
    }

    pub(crate) fn into_embedding(self) -> Result<TurnEmbedding> {
        let TurnFields { embedding_id, user_sequence, assistant_sequence, provider, model, dim, .. } =
            self.fields.clone();
        let bytes = self.fields.vector.map_or_else(|| Ok(Vec::new()), Bytes::into_bytes)?;
        Ok(TurnEmbedding {
            id: embedding_id,
            user_sequence,
            assistant_sequence,
            provider,
            model,
            dimensions: dim,
            content_used: self.fields.content_used,
            content_hash: self.fields.content_hash,
            used_turn_summary: self.fields.used_turn_summary,
            vector: TurnEmbedding::read_vector(&bytes)?,
            created_at: self.fields.created_at,
        })
    }
}

/// It has no `sequence`, so changes of rows do not remove it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SummaryFields {
    pub(crate) user_id_session_id: String,
    user_id: UserId,
    session_id: SessionId,
    pub(crate) user_sequence: u32,
    pub(crate) digest: Digest,
    turn_summary: String,
    is_stated: bool,
    set_at: Timestamp,
}

/// A summary of a turn.
pub(crate) type SummaryDocument = Document<SummaryFields>;

impl SummaryDocument {
    pub(crate) fn new(of: &TurnSummary) -> Self {
        let fields = SummaryFields {
            user_id_session_id: ids::partition(&of.session),
            user_id: of.session.user_id.clone(),
            session_id: of.session.session_id.clone(),
            user_sequence: of.user_sequence,
            digest: of.digest,
            turn_summary: of.text.clone(),
            is_stated: of.is_stated,
            set_at: of.set_at,
        };
        Self::of(kind::SUMMARY, format!("summary-{}", of.user_sequence), fields)
    }

    pub(crate) fn into_summary(self) -> TurnSummary {
        let SummaryFields {
            user_id, session_id, user_sequence, digest, turn_summary, is_stated, set_at, ..
        } = self.fields;
        TurnSummary {
            session: SessionKey::new(user_id, session_id),
            user_sequence,
            digest,
            text: turn_summary,
            is_stated,
            set_at,
        }
    }
}
