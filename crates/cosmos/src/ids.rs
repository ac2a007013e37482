//! Names of documents and of their partitions.
//!
//! An id of Cosmos DB holds no `/`, `\`, `?` or `#` and at most 1,023 bytes
//! (<https://learn.microsoft.com/azure/cosmos-db/concepts-limits>). Ids here are made of a session id, which holds only
//! letters, digits and `._:-`, and of numbers; what people name freely never comes into one.

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::{ContentType, SessionId, SessionKey, UserId},
};

/// What stands between the parts of a joined key. Session ids don't hold it, so that the last one in a key parts the
/// two: no other pair has the same key.
const JOINT: char = '|';

/// The id of the document that fences a partition: see `fence`.
pub(crate) const FENCE: &str = "fence";

/// The partition of a session's messages, vectors and events.
pub(crate) fn partition(key: &SessionKey) -> String {
    format!("{}{JOINT}{}", key.user_id, key.session_id)
}

/// The session of a partition.
pub(crate) fn session_of(partition: &str) -> Result<SessionKey> {
    let (user, session) = partition.rsplit_once(JOINT).ok_or_else(|| {
        Error::new(ErrorKind::StorageIo, "a document has a partition key of somebody else")
            .with("key", partition)
    })?;
    Ok(SessionKey::new(UserId::new(user)?, SessionId::new(session)?))
}

/// The id of what is kept beside the fields of a session. Session ids hold no blank.
pub(crate) fn files(session: &SessionId) -> String {
    format!("{session} files")
}

/// The id of what tells that a session was deleted.
pub(crate) fn deleted(session: &SessionId) -> String {
    format!("{session} deleted")
}

pub(crate) fn message(session: &SessionId, sequence: u32) -> String {
    format!("{session}_msg_{sequence}")
}

/// Pieces of another line have other ids, so that none is joined with those of this one.
pub(crate) fn piece(session: &SessionId, sequence: u32, digest: &str, number: usize) -> String {
    format!("{session}_msg_{sequence}_piece_{digest}_{number}")
}

pub(crate) fn text(session: &SessionId, sequence: u32, content_type: ContentType, number: usize) -> String {
    format!("{session}_msg_{sequence}_text_{content_type}_{number}")
}

pub(crate) fn vector(
    session: &SessionId,
    sequence: u32,
    generation: u32,
    (content_type, chunk): (ContentType, u32),
) -> String {
    format!("{session}_msg_{sequence}_{content_type}_{chunk}_g{generation}")
}

pub(crate) fn event(session: &SessionId, sequence: u32) -> String {
    format!("{session}_evt_{sequence}")
}

pub(crate) fn event_chunk(session: &SessionId, sequence: u32, digest: &str, number: u32) -> String {
    format!("{session}_evt_{sequence}_{digest}_{number}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits;

    fn keys() -> impl Strategy<Value = SessionKey> {
        ("[ -~é/|\\\\_]{1,60}", "[A-Za-z0-9._:-]{1,60}").prop_filter_map("ids", |(user, session)| {
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
            let session = &key.session_id;
            for id in [
                files(session),
                message(session, sequence),
                piece(session, sequence, "0123456789abcdef", number as usize),
                text(session, sequence, ContentType::ToolOutput, number as usize),
                vector(session, sequence, number, (ContentType::AssistantThinking, number)),
                event(session, sequence),
                event_chunk(session, sequence, "0123456789abcdef0123456789abcdef", number),
            ] {
                prop_assert!(limits::check_id(&id).is_ok());
            }
        }
    }

    #[test]
    fn the_longest_names_fit() {
        let key =
            SessionKey::new(UserId::new("é".repeat(127)).unwrap(), SessionId::new("s".repeat(255)).unwrap());
        limits::check_partition(&partition(&key)).unwrap();
        limits::check_id(&vector(&key.session_id, u32::MAX, u32::MAX, (ContentType::ToolOutput, u32::MAX)))
            .unwrap();
    }
}
