//! Ids of documents, and partition keys.
//!
//! An id in Cosmos DB contains no `/`, `\`, `?` or `#`, and has at most 1,023 bytes
//! (<https://learn.microsoft.com/azure/cosmos-db/concepts-limits>). Ids here consist of numbers and a session id, whose
//! bytes other than letters, digits and `._:-` are percent-encoded. So it has at most 765 bytes, and no space or `|`.

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::{ContentType, Digest, SessionId, SessionKey, UserId, VectorText},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_decode_str, utf8_percent_encode};

/// The bytes of session ids that are encoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b':').remove(b'-');

/// The session in ids and keys.
fn encoded(session: &SessionId) -> PercentEncode<'_> {
    utf8_percent_encode(session.as_str(), ENCODED)
}

/// Separates user and session in a partition key. Encoded session ids do not contain it, so the last one in a key is
/// the separator, and no two sessions have the same key.
const SEPARATOR: char = '|';

/// The id of the document that guards the rows of a partition: see `fence`.
pub(crate) const FENCE: &str = "fence";

/// The partition of a session's messages, texts, vectors and events.
pub(crate) fn partition(key: &SessionKey) -> String {
    format!("{}{SEPARATOR}{}", key.user_id, encoded(&key.session_id))
}

/// The session of a partition.
pub(crate) fn session_of(partition: &str) -> Result<SessionKey> {
    let (user, session) = partition.rsplit_once(SEPARATOR).ok_or_else(|| {
        Error::new(ErrorKind::StorageIo, "a document has a partition key of another program")
            .with("key", partition)
    })?;
    let session = percent_decode_str(session).decode_utf8_lossy();
    Ok(SessionKey::new(UserId::new(user)?, SessionId::new(session)?))
}

/// The id of a session.
pub(crate) fn session(session: &SessionId) -> String {
    encoded(session).to_string()
}

/// The id of the data stored beside the fields of a session. Encoded session ids contain no space.
pub(crate) fn files(session: &SessionId) -> String {
    format!("{} files", encoded(session))
}

/// The id of the record of a session's deletion.
pub(crate) fn deleted(session: &SessionId) -> String {
    format!("{} deleted", encoded(session))
}

/// The id of the record that a session left a scope. Encoded session ids contain no space.
pub(crate) fn removal(unique: &str) -> String {
    format!("removal {unique}")
}

pub(crate) fn message(session: &SessionId, sequence: u32) -> String {
    format!("{}_msg_{sequence}", encoded(session))
}

/// Contains the digest, so that pieces of different lines are never joined.
pub(crate) fn piece(session: &SessionId, sequence: u32, line: Digest, number: usize) -> String {
    format!("{}_msg_{sequence}_piece_{line:?}_{number}", encoded(session))
}

pub(crate) fn text(session: &SessionId, sequence: u32, content_type: ContentType, number: usize) -> String {
    format!("{}_msg_{sequence}_text_{content_type}_{number}", encoded(session))
}

pub(crate) fn vector(
    session: &SessionId,
    sequence: u32,
    generation: u32,
    (text, chunk): (VectorText, u32),
) -> String {
    format!("{}_msg_{sequence}_{text}_{chunk}_g{generation}", encoded(session))
}

pub(crate) fn event(session: &SessionId, sequence: u32) -> String {
    format!("{}_evt_{sequence}", encoded(session))
}

pub(crate) fn event_chunk(session: &SessionId, sequence: u32, payload: Digest, number: u32) -> String {
    format!("{}_evt_{sequence}_{payload:?}_{number}", encoded(session))
}

/// The sequence in the id of an [`event_chunk`].
pub(crate) fn sequence_of_chunk(key: &SessionKey, id: &str) -> u32 {
    let session = session(&key.session_id);
    let rest = id.strip_prefix(&session).and_then(|rest| rest.strip_prefix("_evt_"));
    rest.and_then(|rest| rest.split('_').next()?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits;

    fn keys() -> impl Strategy<Value = SessionKey> {
        // Without `/` and `\`, which no id of a session has.
        ("[ -~é/|\\\\_]{1,60}", "[ -.0-\\[\\]-~é]{1,60}").prop_filter_map("ids", |(user, session)| {
            Some(SessionKey::new(UserId::new(user).ok()?, SessionId::new(session).ok()?))
        })
    }

    proptest! {
        #[test]
        fn no_two_sessions_share_a_partition(key in keys()) {
            prop_assert_eq!(session_of(&partition(&key)).unwrap(), key);
        }

        #[test]
        fn ids_are_accepted(key in keys(), sequence: u32, number: u32) {
            let (session, digest) = (&key.session_id, Digest::of(b"line"));
            for id in [
                super::session(session),
                files(session),
                message(session, sequence),
                piece(session, sequence, digest, number as usize),
                text(session, sequence, ContentType::ToolOutput, number as usize),
                vector(session, sequence, number, (ContentType::AssistantThinking.into(), number)),
                event(session, sequence),
                event_chunk(session, sequence, digest, number),
            ] {
                prop_assert!(limits::check_id(&id).is_ok());
            }
        }
    }

    #[test]
    fn the_longest_names_fit() {
        let key =
            SessionKey::new(UserId::new("é".repeat(127)).unwrap(), SessionId::new("é".repeat(127)).unwrap());
        assert!(partition(&key).len() <= limits::PARTITION_BYTES);
        for longest in ["s".repeat(255), "é".repeat(127)] {
            let session = SessionId::new(longest).unwrap();
            limits::check_id(&vector(
                &session,
                u32::MAX,
                u32::MAX,
                (ContentType::ToolOutput.into(), u32::MAX),
            ))
            .unwrap();
            limits::check_id(&piece(&session, u32::MAX, Digest::of(b"line"), usize::MAX)).unwrap();
        }
    }
}
