//! Short forms of session ids.

use std::collections::HashMap;

use amplifier_session_storage::model::{Event, SessionId};

/// The least characters of a short id.
const SHORTEST: usize = 8;

/// The length, in characters, at which the beginnings of `ids` differ from each other; 8 at least.
pub(crate) fn short_length<'a>(ids: impl IntoIterator<Item = &'a SessionId>) -> usize {
    let mut ids: Vec<&str> = ids.into_iter().map(SessionId::as_str).collect();
    ids.sort_unstable();
    ids.dedup();
    let common = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let longest = ids.iter().zip(ids.iter().skip(1)).map(|(a, b)| common(a, b) + 1).max();
    longest.unwrap_or(0).max(SHORTEST)
}

/// The first `length` characters of `id`; the library takes them for the whole.
pub(crate) fn short(id: &SessionId, length: usize) -> &str {
    // Ids are ASCII.
    id.as_str().get(..length).unwrap_or(id.as_str())
}

/// The address of a message in the session that goes by `session`.
pub(crate) fn address(session: &str, sequence: u32) -> String {
    format!("{session}#{sequence}")
}

/// The address of an event, whose session goes by what is in `short_ids`: not to be mistaken for that of a message.
pub(crate) fn event_address(short_ids: &HashMap<SessionId, String>, event: &Event) -> String {
    let session = short_ids.get(&event.session_id).map_or(event.session_id.as_str(), String::as_str);
    format!("{session}_evt_{}", event.sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened(ids: &[&str]) -> Vec<String> {
        let ids: Vec<SessionId> = ids.iter().map(|id| SessionId::new(id).unwrap()).collect();
        let length = short_length(&ids);
        ids.iter().map(|id| short(id, length).to_owned()).collect()
    }

    #[test]
    fn eight_characters_unless_more_are_needed() {
        assert_eq!(
            shortened(&["3a7c1e90-1f4b", "5b8d2f10-77aa", "3a7c1e90-1f4b"]),
            ["3a7c1e90", "5b8d2f10", "3a7c1e90"]
        );
        assert_eq!(
            shortened(&["conv-26-session_1", "conv-26-session_12"]),
            ["conv-26-session_1", "conv-26-session_12"]
        );
        assert_eq!(shortened(&["abcdefghij-1", "abcdefghix-2"]), ["abcdefghij", "abcdefghix"]);
        assert_eq!(shortened(&["a"]), ["a"]);
        assert!(shortened(&[]).is_empty());
    }
}
