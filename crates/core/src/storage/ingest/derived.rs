//! The fields that come from a line and the lines before it. An ingest writes a row if one of them differs from the
//! stored row; a verification derives them from the stored line, and reports the difference instead.

use serde_json::{Map, Value};

use crate::{
    content::TurnCounter,
    events::parse_event_line,
    model::{Digest, Event, Message, MessageState, RawJson, Role, SessionId},
};

/// The compared fields of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage) struct ComparedMessage {
    pub(in crate::storage) digest: Digest,
    pub(in crate::storage) turn: Option<u32>,
}

impl ComparedMessage {
    /// The fields that a line with this digest has after the lines that `turns` has counted.
    pub(in crate::storage) fn of_line(
        digest: Digest,
        line: &Map<String, Value>,
        role: Role,
        turns: &mut TurnCounter,
    ) -> Self {
        Self { digest, turn: turns.turn_of(line, role) }
    }
}

impl From<&MessageState> for ComparedMessage {
    fn from(stored: &MessageState) -> Self {
        Self { digest: stored.digest, turn: stored.turn }
    }
}

impl From<&Message> for ComparedMessage {
    fn from(stored: &Message) -> Self {
        Self { digest: stored.digest, turn: stored.turn }
    }
}

/// The id of an event with this line, if the line is known.
pub(in crate::storage) fn event_id_of_line(
    line: Option<&RawJson>,
    session: &SessionId,
    sequence: u32,
) -> String {
    let fields = line.and_then(|line| parse_event_line(line).ok());
    event_id(fields.and_then(|fields| fields.event_id), session, sequence)
}

/// The id of an event whose line states this id. An id in a line must not look like a derived one, because another event
/// could have that id.
pub(super) fn event_id(stated: Option<String>, session: &SessionId, sequence: u32) -> String {
    let is_acceptable = |id: &String| {
        !id.is_empty() && id.len() <= 255 && !looks_derived(id) && !id.chars().any(char::is_control)
    };
    stated.filter(is_acceptable).unwrap_or_else(|| Event::derived_id(session, sequence))
}

/// Whether an id has the form of [`Event::derived_id`].
pub(in crate::storage) fn looks_derived(id: &str) -> bool {
    id.rsplit_once("_evt_").is_some_and(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}
