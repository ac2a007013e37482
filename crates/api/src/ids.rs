//! Short forms of session ids.

use std::collections::HashMap;

use amplifier_session_core::model::{Event, SessionId};

/// The short form of each id.
pub type ShortIds = HashMap<SessionId, String>;

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

/// The address of an event, with its session's short id. It differs from the address of a message.
#[must_use]
pub fn event_address(short_ids: &ShortIds, event: &Event) -> String {
    let session = short(short_ids, &event.session_id);
    format!("{session}_evt_{}", event.sequence)
}
