//! A vector with what it is filtered by: there are no joins.

use amplifier_session_core::{
    backend::MessageVectors,
    model::{ContentType, Place, ProjectSlug, Role, SessionId, SessionKey, Timestamp, UserId, VectorRecord},
};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeSeq as _};

use super::{MessageDocument, kind};
use crate::ids;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct VectorDocument {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) user_id_session_id: String,
    /// The id of its message. What earlier versions wrote does not have it, nor the other two that may be absent.
    #[serde(default)]
    parent_id: String,
    /// That of its session.
    #[serde(default)]
    pub(crate) project_slug: Option<ProjectSlug>,
    #[serde(default)]
    embedding_model: Option<String>,
    pub(crate) user_id: UserId,
    pub(crate) session_id: SessionId,
    pub(crate) sequence: u32,
    pub(crate) role: Role,
    pub(crate) ts: Timestamp,
    pub(crate) generation: u32,
    pub(crate) content_type: ContentType,
    pub(crate) chunk_index: u32,
    pub(crate) total_chunks: u32,
    pub(crate) span_start: u32,
    pub(crate) span_end: u32,
    pub(crate) token_count: u32,
    pub(crate) created_at: Timestamp,
    #[serde(serialize_with = "short_numbers")]
    pub(crate) vector: Vec<f32>,
    #[serde(rename = "_etag", default, skip_serializing)]
    pub(crate) etag: String,
}

/// Writes each number as the shortest text that is read back as the same `f32`: a third of its length as `f64`.
fn short_numbers<S: Serializer>(vector: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
    let mut numbers = serializer.serialize_seq(Some(vector.len()))?;
    for number in vector {
        let short: f64 = number.to_string().parse().unwrap_or_else(|_| f64::from(*number));
        numbers.serialize_element(&short)?;
    }
    numbers.end()
}

impl VectorDocument {
    pub(crate) fn place(&self) -> Place {
        Place::new(SessionKey::new(self.user_id.clone(), self.session_id.clone()), self.sequence)
    }

    pub(crate) fn into_record(self) -> VectorRecord {
        VectorRecord {
            content_type: self.content_type,
            chunk_index: self.chunk_index,
            total_chunks: self.total_chunks,
            span_start: self.span_start,
            span_end: self.span_end,
            token_count: self.token_count,
            vector: self.vector,
        }
    }

    /// The documents of the vectors of a message, which `model` made.
    pub(crate) fn all_of(
        message: &MessageDocument,
        generation: u32,
        model: &str,
        vectors: &MessageVectors,
    ) -> Vec<Self> {
        let documents = vectors.records.iter().map(|record| Self {
            id: ids::vector(
                &message.session_id,
                message.sequence,
                generation,
                (record.content_type, record.chunk_index),
            ),
            kind: kind::VECTOR.to_owned(),
            user_id_session_id: message.user_id_session_id.clone(),
            parent_id: message.id.clone(),
            project_slug: Some(message.project_slug.clone()),
            embedding_model: Some(model.to_owned()),
            user_id: message.user_id.clone(),
            session_id: message.session_id.clone(),
            sequence: message.sequence,
            role: message.role,
            ts: message.ts,
            generation,
            content_type: record.content_type,
            chunk_index: record.chunk_index,
            total_chunks: record.total_chunks,
            span_start: record.span_start,
            span_end: record.span_end,
            token_count: record.token_count,
            created_at: vectors.created_at,
            vector: record.vector.clone(),
            etag: String::new(),
        });
        documents.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_come_back_as_they_were() {
        #[derive(Serialize)]
        struct Only(#[serde(serialize_with = "short_numbers")] Vec<f32>);
        let vector = vec![0.1, -1.0 / 3.0, 1e-30, f32::MIN_POSITIVE, 0.0];
        let json = serde_json::to_string(&serde_json::to_value(Only(vector.clone())).unwrap()).unwrap();
        assert!(json.starts_with("[0.1,-0.33333334,"), "{json}");
        assert_eq!(serde_json::from_str::<Vec<f32>>(&json).unwrap(), vector);
    }
}
