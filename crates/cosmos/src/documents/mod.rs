//! The documents as they are stored, by kind.

mod event;
mod message;
mod session;
mod superseded;
mod text;
mod turn;
mod vector;

use std::{
    borrow::Cow,
    ops::{Deref, DerefMut},
};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::{Message, MessageRef, Role, SessionId, SessionKey, Timestamp, UserId},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids;

pub(crate) use event::{ChunkDocument, EVENT_FIELDS, EventDocument, PayloadDocument, chunks_of};
pub(crate) use message::{GenerationState, MessageDocument, PieceDocument};
pub(crate) use session::{
    DeletedDocument, FilesDocument, KnownRows, RemovalDocument, RenamedFrom, RowsState, SessionDocument,
    TextTotals, new_version,
};
pub(crate) use superseded::{PIECE_FIELDS, SupersededDocument};
pub(crate) use text::{TextDocument, texts_of};
pub(crate) use turn::SummaryDocument;
pub(crate) use vector::{VectorDocument, vectors_of};

/// Values of `type`.
pub(crate) mod kind {
    pub(crate) const SCHEMA: &str = "schema";
    pub(crate) const SESSION: &str = "session";
    pub(crate) const FILES: &str = "session_files";
    pub(crate) const DELETED: &str = "deleted_session";
    pub(crate) const REMOVAL: &str = "session_removal";
    pub(crate) const MESSAGE: &str = "transcript_message";
    pub(crate) const PIECE: &str = "transcript_piece";
    pub(crate) const TEXT: &str = "transcript_text";
    pub(crate) const VECTOR: &str = "transcript_vector";
    pub(crate) const EVENT: &str = "event";
    pub(crate) const CHUNK: &str = "event_chunk";
    pub(crate) const SUPERSEDED: &str = "superseded_lines";
    pub(crate) const TURN: &str = "message_embedding";
    pub(crate) const SUMMARY: &str = "turn_summary";
    pub(crate) const FENCE: &str = "fence";
}

/// The fields that every document has, besides the fields of its kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Document<T> {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: Cow<'static, str>,
    #[serde(flatten)]
    pub(crate) fields: T,
    /// Changes with every write of the document. Empty in a new document.
    #[serde(rename = "_etag", default, skip_serializing)]
    pub(crate) etag: String,
}

/// The fields of a document of any kind, without those that Cosmos DB adds.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Map<String, Value>")]
pub(crate) struct RawFields(Map<String, Value>);

pub(crate) type RawDocument = Document<RawFields>;

impl From<Map<String, Value>> for RawFields {
    fn from(mut fields: Map<String, Value>) -> Self {
        fields.retain(|name, _| !name.starts_with('_'));
        Self(fields)
    }
}

impl RawFields {
    /// Replaces a field, if the document has it.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        if let Some(field) = self.0.get_mut(name) {
            *field = value.into();
        }
    }

    pub(crate) fn sequence(&self) -> Option<u32> {
        self.0.get("sequence")?.as_u64()?.try_into().ok()
    }
}

impl<T> Document<T> {
    pub(crate) fn of(kind: &'static str, id: String, fields: T) -> Self {
        Self { id, kind: Cow::Borrowed(kind), fields, etag: String::new() }
    }
}

impl<T> Deref for Document<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.fields
    }
}

impl<T> DerefMut for Document<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.fields
    }
}

/// The message to which a text or a vector belongs, with the fields that searches filter by, because there are no
/// joins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OfMessage {
    pub(crate) user_id_session_id: String,
    pub(crate) user_id: UserId,
    session_id: SessionId,
    pub(crate) sequence: u32,
    pub(crate) role: Role,
    pub(crate) ts: Timestamp,
}

impl From<&Message> for OfMessage {
    fn from(message: &Message) -> Self {
        Self {
            user_id_session_id: ids::partition(&message.message_ref().session),
            user_id: message.user_id.clone(),
            session_id: message.session_id.clone(),
            sequence: message.sequence,
            role: message.role,
            ts: message.ts,
        }
    }
}

impl OfMessage {
    pub(crate) fn message_ref(&self) -> MessageRef {
        MessageRef::new(SessionKey::new(self.user_id.clone(), self.session_id.clone()), self.sequence)
    }
}

/// Bytes that are mostly text: a string, or base64 if they are not valid UTF-8.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Bytes {
    Text(String),
    Base64 { base64: String },
}

impl Bytes {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        std::str::from_utf8(bytes).map_or_else(|_| Self::binary(bytes), |text| Self::Text(text.to_owned()))
    }

    /// Always base64, so that the length as JSON is known in advance.
    pub(crate) fn binary(bytes: &[u8]) -> Self {
        Self::Base64 { base64: BASE64_STANDARD.encode(bytes) }
    }

    pub(crate) fn into_bytes(self) -> Result<Vec<u8>> {
        match self {
            Self::Text(text) => Ok(text.into_bytes()),
            Self::Base64 { base64 } => BASE64_STANDARD.decode(base64).map_err(|source| {
                Error::new(ErrorKind::StorageIo, "a document contains invalid base64").with_source(source)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_whether_they_are_text_or_not() {
        for bytes in [&b"plain \xc3\xa9"[..], b"broken \xe9", b""] {
            let json = serde_json::to_string(&Bytes::of(bytes)).unwrap();
            let back: Bytes = serde_json::from_str(&json).unwrap();
            assert_eq!(back.into_bytes().unwrap(), bytes, "{json}");
        }
    }
}
