//! A vector of a text or a turn, with the fields that searches filter by.

use amplifier_session_core::{
    backend::MessageVectors,
    model::{ProjectSlug, Timestamp, VectorRecord, VectorText},
};
use serde::{Deserialize, Serialize};

use super::{Document, MessageDocument, OfMessage, kind};
use crate::ids;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct VectorFields {
    #[serde(flatten)]
    pub(crate) of: OfMessage,
    /// The id of the message. Absent in documents of earlier versions, which may also lack the other two.
    #[serde(default)]
    parent_id: String,
    #[serde(default)]
    project_slug: Option<ProjectSlug>,
    #[serde(default)]
    embedding_model: Option<String>,
    generation: u32,
    created_at: Timestamp,
    #[serde(flatten)]
    pub(crate) record: VectorRecord,
}

pub(crate) type VectorDocument = Document<VectorFields>;

/// The documents of the vectors of a message, which `model` made.
pub(crate) fn vectors_of(
    parent: &MessageDocument,
    generation: u32,
    model: &str,
    vectors: &MessageVectors,
) -> Vec<VectorDocument> {
    let message = &parent.message;
    let documents = vectors.records().iter().map(|record| {
        let text = (record.text, record.chunk_index);
        let kind = if record.text == VectorText::Turn { kind::TURN } else { kind::VECTOR };
        let fields = VectorFields {
            of: message.into(),
            parent_id: parent.id.clone(),
            project_slug: Some(message.project_slug.clone()),
            embedding_model: Some(model.to_owned()),
            generation,
            created_at: vectors.created_at,
            record: record.clone(),
        };
        let id = ids::vector(&message.session_id, message.sequence, generation, text);
        VectorDocument::of(kind, id, fields)
    });
    documents.collect()
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::model::ContentType;

    use super::*;

    #[test]
    fn numbers_are_short_and_survive() {
        let vector = vec![0.1, -1.0 / 3.0, 1e-30, f32::MIN_POSITIVE, 0.0];
        let content_type = ContentType::UserQuery;
        let record = VectorRecord {
            text: content_type.into(),
            chunk_index: 0,
            total_chunks: 1,
            span_start: 0,
            span_end: 1,
            token_count: 1,
            vector,
            turn: None,
        };
        let json = serde_json::to_string(&record).unwrap();
        assert!(json.contains("[0.1,-0.33333334,"), "{json}");
        assert_eq!(serde_json::from_str::<VectorRecord>(&json).unwrap(), record);
    }
}
