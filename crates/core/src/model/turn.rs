//! Turns: their embeddings and their summaries.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::{Digest, SessionKey, Timestamp};
use crate::{Error, ErrorKind, KnownPart, Result};

/// The vector of one turn: the user's question, and the last answer of the assistant or a summary of the turn.
///
/// A store has at most one for each user message, provider and model.
#[derive(Clone, PartialEq)]
pub struct TurnEmbedding {
    /// A UUID: see [`TurnEmbedding::new_id`].
    pub id: String,
    /// The sequence of the user's message, which the embedding belongs to.
    pub user_sequence: u32,
    /// The sequence of the assistant's message. `None` if the turn has a summary and no answer.
    pub assistant_sequence: Option<u32>,
    /// The kind of provider: `local` if the model ran on this machine, `service` otherwise.
    pub provider: String,
    /// The embedding model.
    pub model: String,
    /// The length of the vector.
    pub dimensions: usize,
    /// The text that was embedded. Empty if not requested.
    pub content_used: String,
    /// The SHA-256 of this text, in hexadecimal digits.
    pub content_hash: String,
    /// Whether the text has a summary in place of the assistant's answer.
    pub used_turn_summary: bool,
    /// The vector, of unit length. Empty if not requested.
    pub vector: Vec<f32>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl TurnEmbedding {
    /// A UUID of version 8 for the embedding of a user message. It also depends on the time, because after a user is
    /// renamed, another user may have the same session.
    #[must_use]
    pub fn new_id(
        session: &SessionKey,
        user_sequence: u32,
        provider: &str,
        model: &str,
        created_at: Timestamp,
    ) -> String {
        let SessionKey { user_id, session_id } = session;
        let name = format!(
            "{user_id}\0{session_id}\0{user_sequence}\0{provider}\0{model}\0{}",
            created_at.as_micros()
        );
        let mut bytes = Digest::of(name.as_bytes()).0;
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let digits = format!("{:?}", Digest(bytes));
        let group = |start: usize, end: usize| digits.part(start..end);
        [group(0, 8), group(8, 12), group(12, 16), group(16, 20), group(20, 32)].join("-")
    }

    /// The same embedding with a new id, for another store.
    #[must_use]
    pub fn with_new_id(mut self, session: &SessionKey, now: Timestamp) -> Self {
        self.id = Self::new_id(session, self.user_sequence, &self.provider, &self.model, now);
        self
    }

    /// The SHA-256 of a text, in hexadecimal digits.
    #[must_use]
    pub fn hash(content: &str) -> String {
        Sha256::digest(content.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Checks the vector.
    ///
    /// # Errors
    ///
    /// `Validation` (`vector`) if its length is not `dimensions`, or a number in it is not finite.
    pub fn validate(&self) -> Result<()> {
        let (found, expected) = (self.vector.len(), self.dimensions);
        if found != expected {
            let message = format!("has {found} dimensions instead of {expected}");
            return Err(Error::validation("vector", message));
        }
        if !self.vector.iter().all(|x| x.is_finite()) {
            return Err(Error::validation("vector", "contains a number that is not finite"));
        }
        Ok(())
    }

    /// The id of the user's message.
    #[must_use]
    pub fn user_message_id(&self, session: &SessionKey) -> String {
        message_id(session, self.user_sequence)
    }

    /// The id of the assistant's message.
    #[must_use]
    pub fn assistant_message_id(&self, session: &SessionKey) -> Option<String> {
        self.assistant_sequence.map(|sequence| message_id(session, sequence))
    }

    /// The vector as little-endian 32-bit floats.
    #[must_use]
    pub fn vector_bytes(&self) -> Vec<u8> {
        self.vector.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    /// Reads a vector from the bytes of [`Self::vector_bytes`].
    ///
    /// # Errors
    ///
    /// `Damaged` if their number is wrong.
    pub fn read_vector(bytes: &[u8]) -> Result<Vec<f32>> {
        let (floats, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(Error::new(ErrorKind::Damaged, "the vector of a turn can't be read"));
        }
        Ok(floats.iter().map(|float| f32::from_le_bytes(*float)).collect())
    }
}

impl fmt::Debug for TurnEmbedding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user_sequence, assistant_sequence, provider, model, dimensions, content_hash, .. } = self;
        write!(
            f,
            "TurnEmbedding({user_sequence}, {assistant_sequence:?}: {provider} {model}, {dimensions} dimensions, \
             {content_hash})"
        )
    }
}

/// The id of a message of a session.
fn message_id(session: &SessionKey, sequence: u32) -> String {
    format!("{}_msg_{sequence}", session.session_id)
}

/// A summary of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnSummary {
    /// The session.
    pub session: SessionKey,
    /// The sequence of the user's message.
    pub user_sequence: u32,
    /// The digest of that message's line: the summary is about this line.
    pub digest: Digest,
    /// The summary.
    pub text: String,
    /// Whether the line itself states it, as `turn_summary` in its metadata. Otherwise, a user set it.
    pub is_stated: bool,
    /// When it was set.
    pub set_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{SessionId, UserId};

    #[test]
    fn ids_are_uuids_and_hashes_are_sha_256() {
        let session = SessionKey::new(UserId::new("ana").unwrap(), SessionId::new("s").unwrap());
        let id = |user, at| TurnEmbedding::new_id(&session, user, "local", "m", Timestamp::from_micros(at));
        assert!(SessionId::new(id(0, 1)).unwrap().is_uuid(), "{}", id(0, 1));
        assert_eq!(id(0, 1), id(0, 1));
        assert!(id(0, 1) != id(1, 1) && id(0, 1) != id(0, 2));
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(TurnEmbedding::hash("abc"), abc);
    }

    #[test]
    fn vectors_survive_as_bytes() {
        let bytes: Vec<u8> = [0.5_f32, -1.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(TurnEmbedding::read_vector(&bytes).unwrap(), [0.5, -1.0]);
        assert!(TurnEmbedding::read_vector(&bytes[1..]).is_err());
    }
}
