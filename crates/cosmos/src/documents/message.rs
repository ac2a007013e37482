//! A message, and the pieces of a line that is too large for one document.

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::{
        HostId, Message, ProjectSlug, RawJson, Role, SessionId, SessionKey, TimeSource, Timestamp, UserId,
        VectorState,
    },
};
use serde::{Deserialize, Serialize};

use super::{Bytes, digest_of_hex, hex, kind};
use crate::ids;

/// The most bytes, as JSON, of a line that stands in its message's document.
const INLINE_BYTES: usize = 1_200_000;

/// The most bytes of a piece: as base64 it takes a third more.
const PIECE_BYTES: usize = 1_200_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MessageDocument {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) user_id_session_id: String,
    pub(crate) user_id: UserId,
    pub(crate) session_id: SessionId,
    pub(crate) host_id: HostId,
    pub(crate) project_slug: ProjectSlug,
    pub(crate) sequence: u32,
    pub(crate) role: Role,
    pub(crate) turn: Option<u32>,
    pub(crate) ts: Timestamp,
    pub(crate) ts_estimated: bool,
    /// Documents of earlier versions do not say.
    #[serde(default)]
    pub(crate) ts_source: Option<TimeSource>,
    pub(crate) synced_at: Timestamp,
    /// The code of its [`VectorState`].
    pub(crate) vectors: u8,
    /// The generations that vectors of it were made of.
    pub(crate) generations: Vec<GenerationState>,
    /// Their numbers, for queries.
    pub(crate) made: Vec<u32>,
    pub(crate) digest: String,
    /// The line, if it is not in pieces.
    pub(crate) raw: Option<Bytes>,
    /// In how many pieces the line is.
    pub(crate) pieces: usize,
    #[serde(rename = "_etag", default, skip_serializing)]
    pub(crate) etag: String,
}

/// Vectors of one generation of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GenerationState {
    pub(crate) number: u32,
    /// How many there are.
    pub(crate) vectors: u32,
    /// Why there are fewer than there might be.
    pub(crate) failure: Option<String>,
}

impl MessageDocument {
    pub(crate) fn new(message: &Message, partition: &str) -> Self {
        let raw = Bytes::of(message.raw.as_bytes());
        let is_large = serde_json::to_string(&raw).map_or(usize::MAX, |json| json.len()) > INLINE_BYTES;
        Self {
            id: ids::message(&message.session_id, message.sequence),
            kind: kind::MESSAGE.to_owned(),
            user_id_session_id: partition.to_owned(),
            user_id: message.user_id.clone(),
            session_id: message.session_id.clone(),
            host_id: message.host_id.clone(),
            project_slug: message.project_slug.clone(),
            sequence: message.sequence,
            role: message.role,
            turn: message.turn,
            ts: message.ts,
            ts_estimated: message.ts_estimated(),
            ts_source: Some(message.ts_source),
            synced_at: message.synced_at,
            vectors: message.vectors.code(),
            generations: Vec::new(),
            made: Vec::new(),
            digest: hex(message.digest),
            raw: (!is_large).then_some(raw),
            pieces: if is_large { message.raw.as_bytes().chunks(PIECE_BYTES).len() } else { 0 },
            etag: String::new(),
        }
    }

    /// Notes what was made of a generation.
    pub(crate) fn set_generation(&mut self, state: GenerationState) {
        self.forget_generations(|number| number == state.number);
        self.made.push(state.number);
        self.generations.push(state);
    }

    pub(crate) fn forget_generations(&mut self, which: impl Fn(u32) -> bool) {
        self.generations.retain(|state| !which(state.number));
        self.made.retain(|number| !which(*number));
    }

    pub(crate) fn failure(&self, generation: u32) -> Option<&str> {
        self.generations.iter().find(|state| state.number == generation)?.failure.as_deref()
    }

    /// The message, with `pieces` of its line where it is not here.
    pub(crate) fn into_message(self, pieces: impl IntoIterator<Item = PieceDocument>) -> Result<Message> {
        let raw = match self.raw {
            Some(raw) => raw.into_bytes()?,
            None => {
                let pieces = pieces.into_iter().map(|piece| piece.raw.into_bytes());
                pieces.collect::<Result<Vec<_>>>()?.concat()
            }
        };
        Ok(Message {
            digest: digest_of_hex(&self.digest)?,
            vectors: vector_state(self.vectors)?,
            user_id: self.user_id,
            host_id: self.host_id,
            project_slug: self.project_slug,
            session_id: self.session_id,
            sequence: self.sequence,
            role: self.role,
            turn: self.turn,
            ts: self.ts,
            ts_source: self.ts_source.unwrap_or(TimeSource::of_estimated(self.ts_estimated)),
            synced_at: self.synced_at,
            raw: RawJson::new(raw),
        })
    }
}

pub(crate) fn vector_state(code: u8) -> Result<VectorState> {
    VectorState::from_code(code).ok_or_else(|| {
        Error::new(ErrorKind::StorageIo, "a message has a state of vectors that is not known")
            .with("state", code)
    })
}

/// A piece of a large line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PieceDocument {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) user_id_session_id: String,
    pub(crate) sequence: u32,
    /// That of the line.
    pub(crate) digest: String,
    pub(crate) number: usize,
    pub(crate) raw: Bytes,
}

/// The pieces of a message's line; none when it stands in its document.
pub(crate) fn pieces_of(message: &Message, document: &MessageDocument) -> Vec<PieceDocument> {
    if document.raw.is_some() {
        return Vec::new();
    }
    let key = SessionKey::new(message.user_id.clone(), message.session_id.clone());
    let parts = message.raw.as_bytes().chunks(PIECE_BYTES).enumerate();
    parts
        .map(|(number, part)| PieceDocument {
            id: ids::piece(&message.session_id, message.sequence, &document.digest, number),
            digest: document.digest.clone(),
            kind: kind::PIECE.to_owned(),
            user_id_session_id: ids::partition(&key),
            sequence: message.sequence,
            number,
            raw: Bytes::binary(part),
        })
        .collect()
}
