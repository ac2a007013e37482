//! The documents, as they are stored.

mod event;
mod message;
mod session;
mod text;
mod vector;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

use amplifier_session_core::{Error, ErrorKind, Result, model::Digest};

pub(crate) use event::{
    ChunkDocument, EventDocument, FIELDS as EVENT_FIELDS, PayloadDocument, chunks_of, payload,
};
pub(crate) use message::{GenerationState, MessageDocument, PieceDocument, pieces_of, vector_state};
pub(crate) use session::{DeletedDocument, FilesDocument, RenamedFrom, Rows, SessionDocument, new_version};
pub(crate) use text::{TextDocument, texts_of};
pub(crate) use vector::VectorDocument;

/// Values of `type`, which says what a document is.
pub(crate) mod kind {
    pub(crate) const SESSION: &str = "session";
    pub(crate) const FILES: &str = "session_files";
    pub(crate) const DELETED: &str = "deleted_session";
    pub(crate) const MESSAGE: &str = "transcript_message";
    pub(crate) const PIECE: &str = "transcript_piece";
    pub(crate) const TEXT: &str = "transcript_text";
    pub(crate) const VECTOR: &str = "transcript_vector";
    pub(crate) const EVENT: &str = "event";
    pub(crate) const CHUNK: &str = "event_chunk";
    pub(crate) const FENCE: &str = "fence";
}

/// Bytes that are mostly text: a string, or base64 where they are not valid UTF-8.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Bytes {
    Text(String),
    Base64 { base64: String },
}

impl Bytes {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::binary(bytes),
        }
    }

    /// Bytes of which it is known that they are no text.
    pub(crate) fn binary(bytes: &[u8]) -> Self {
        Self::Base64 { base64: BASE64_STANDARD.encode(bytes) }
    }

    pub(crate) fn into_bytes(self) -> Result<Vec<u8>> {
        match self {
            Self::Text(text) => Ok(text.into_bytes()),
            Self::Base64 { base64 } => BASE64_STANDARD.decode(base64).map_err(|source| {
                Error::new(ErrorKind::StorageIo, "a document holds broken base64").with_source(source)
            }),
        }
    }
}

pub(crate) fn hex(digest: Digest) -> String {
    format!("{:032x}", u128::from_be_bytes(digest.0))
}

pub(crate) fn digest_of_hex(text: &str) -> Result<Digest> {
    let broken = || Error::new(ErrorKind::StorageIo, "a document holds a broken digest").with("digest", text);
    let number = u128::from_str_radix(text, 16).map_err(|_| broken())?;
    if text.len() == 32 { Ok(Digest(number.to_be_bytes())) } else { Err(broken()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_whether_they_are_text_or_not() {
        for bytes in [&b"plain \xc3\xa9"[..], b"broken \xe9", b""] {
            let json = serde_json::to_string(&Bytes::of(bytes)).unwrap();
            let back: Bytes = serde_json::from_str(&json).unwrap();
            assert_eq!(back.into_bytes().unwrap(), bytes, "{json}");
        }
    }

    #[test]
    fn digests_come_back() {
        let digest = Digest::of(b"line");
        assert_eq!(digest_of_hex(&hex(digest)).unwrap(), digest);
        assert!(digest_of_hex("12").is_err() && digest_of_hex("").is_err());
    }
}
