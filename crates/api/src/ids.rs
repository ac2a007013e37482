//! Short forms of session ids.

use std::collections::BTreeMap;

use amplifier_session_core::model::{Event, SessionId};

/// The short form of each id, in the order of ids: answers that are the same have the same bytes.
pub type ShortIds = BTreeMap<SessionId, String>;

/// The short form of `id`, which the library accepts in place of the id.
#[must_use]
pub fn short<'a>(short_ids: &'a ShortIds, id: &'a SessionId) -> &'a str {
    short_ids.get(id).map_or(id.as_str(), String::as_str)
}

/// The address of a message in the session with the short id `session`.
#[must_use]
pub fn address(session: &str, sequence: u32) -> String {
    format!("{session}#{sequence}")
}

/// The address of another message in the session of a message.
pub(crate) fn address_beside(address_of_message: &str, sequence: u32) -> String {
    let session = address_of_message.rsplit_once('#').map_or(address_of_message, |(session, _)| session);
    address(session, sequence)
}

/// The address of an event, with its session's short id. It differs from the address of a message.
#[must_use]
pub fn event_address(short_ids: &ShortIds, event: &Event) -> String {
    address_of_event(short(short_ids, &event.session_id), event.sequence)
}

/// The address of an event in the session with the short id `session`.
pub(crate) fn address_of_event(session: &str, sequence: u32) -> String {
    format!("{session}_evt_{sequence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_session_have_addresses_beside_each_other() {
        assert_eq!(address_beside("3a7c1e90#14", 15), "3a7c1e90#15");
        assert_eq!(address_beside("a#b#2", 3), "a#b#3");
        assert_eq!(address_of_event("3a7c1e90", 14), "3a7c1e90_evt_14");
    }
}
