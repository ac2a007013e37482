//! A message, and the pieces of a line that is too large for one document.

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::{
        Digest, HostId, Message, ProjectSlug, RawJson, Role, SessionId, TimeSource, Timestamp, UserId,
        VectorState, time_fields,
    },
};
use serde::{Deserialize, Serialize};

use super::{Bytes, Document, kind};
use crate::ids;

/// The maximum size, as JSON, of a line that is stored in its message's document.
const INLINE_BYTES: usize = 1_200_000;

/// The maximum size of a piece. Base64 adds a third.
const PIECE_BYTES: usize = 1_200_000;

/// The fields of a message, as they are stored.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Message")]
struct StoredMessage {
    user_id: UserId,
    session_id: SessionId,
    host_id: HostId,
    project_slug: ProjectSlug,
    sequence: u32,
    role: Role,
    turn: Option<u32>,
    ts: Timestamp,
    #[serde(flatten, with = "time_fields")]
    ts_source: TimeSource,
    synced_at: Timestamp,
    vectors: VectorState,
    digest: Digest,
    #[serde(skip)]
    raw: RawJson,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MessageFields {
    pub(crate) user_id_session_id: String,
    /// Without its line.
    #[serde(flatten, with = "StoredMessage")]
    pub(crate) message: Message,
    /// The line, if it is not in pieces.
    raw: Option<Bytes>,
    /// The number of pieces of the line.
    pub(crate) pieces: usize,
    /// The generations that have vectors of the message, or failed to make them.
    pub(crate) generations: Vec<GenerationState>,
    /// Their numbers, for queries.
    pub(crate) made: Vec<u32>,
}

pub(crate) type MessageDocument = Document<MessageFields>;

/// Vectors of one generation of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GenerationState {
    pub(crate) number: u32,
    /// The number of vectors of texts.
    pub(crate) vectors: u32,
    /// The number of vectors of turns: 1 or 0.
    #[serde(default)]
    pub(crate) turns: u32,
    /// Why a text has no vector.
    pub(crate) failure: Option<String>,
}

impl MessageDocument {
    /// The document of a message, and the pieces of its line if the line is too large.
    pub(crate) fn new(message: &Message) -> (Self, Vec<PieceDocument>) {
        let line = message.raw.as_bytes();
        let raw = Bytes::of(line);
        let is_large = serde_json::to_string(&raw).map_or(true, |json| json.len() > INLINE_BYTES);
        let parts = if is_large { line } else { &[] }.chunks(PIECE_BYTES).enumerate();
        let pieces: Vec<_> = parts.map(|(number, part)| PieceDocument::new(message, number, part)).collect();
        let fields = MessageFields {
            user_id_session_id: ids::partition(&message.message_ref().session),
            message: Message { raw: RawJson::default(), ..message.clone() },
            raw: (!is_large).then_some(raw),
            pieces: pieces.len(),
            generations: Vec::new(),
            made: Vec::new(),
        };
        (Self::of(kind::MESSAGE, ids::message(&message.session_id, message.sequence), fields), pieces)
    }

    pub(crate) fn with_vectors(mut self, state: VectorState) -> Self {
        self.message.vectors = state;
        self
    }

    pub(crate) fn set_generation(&mut self, state: GenerationState) {
        self.forget_generations(|number| number == state.number);
        self.made.push(state.number);
        self.generations.push(state);
    }

    pub(crate) fn forget_generations(&mut self, which: impl Fn(u32) -> bool) {
        self.generations.retain(|state| !which(state.number));
        self.made.retain(|number| !which(*number));
    }

    pub(crate) fn has_failed(&self, generation: u32) -> bool {
        self.generations.iter().any(|state| state.number == generation && state.failure.is_some())
    }

    /// The message. Its line is joined from `pieces` if it is not in the document.
    ///
    /// # Errors
    ///
    /// `Damaged` if the line is not the one that was stored.
    pub(crate) fn into_message(self, pieces: Vec<PieceDocument>) -> Result<Message> {
        let parts = self.fields.raw.into_iter().chain(pieces.into_iter().map(|piece| piece.fields.raw));
        let line: Vec<Vec<u8>> = parts.map(Bytes::into_bytes).collect::<Result<_>>()?;
        let (line, message) = (line.concat(), self.fields.message);
        if Digest::of(&line) != message.digest {
            return Err(Error::new(
                ErrorKind::Damaged,
                "the stored line of a message is not what was written",
            )
            .with("user", &message.user_id)
            .with("session", &message.session_id)
            .with("sequence", message.sequence));
        }
        Ok(Message { raw: RawJson::new(line), ..message })
    }
}

/// A piece of a large line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PieceFields {
    user_id_session_id: String,
    sequence: u32,
    /// The digest of the whole line.
    digest: Digest,
    number: usize,
    raw: Bytes,
}

pub(crate) type PieceDocument = Document<PieceFields>;

impl PieceDocument {
    fn new(message: &Message, number: usize, part: &[u8]) -> Self {
        let fields = PieceFields {
            user_id_session_id: ids::partition(&message.message_ref().session),
            sequence: message.sequence,
            digest: message.digest,
            number,
            raw: Bytes::binary(part),
        };
        Self::of(
            kind::PIECE,
            ids::piece(&message.session_id, message.sequence, message.digest, number),
            fields,
        )
    }
}
