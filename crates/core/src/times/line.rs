//! The parts of a transcript line from which its time is derived.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::{
    content::{MessageLine, has_own_content, is_continuation, line_digest},
    model::{Digest, MessageState, Role, TimeSource, Timestamp},
};

/// The hash of a tool call id, which limits the memory for it.
pub(crate) type CallId = Digest;

/// The hash of a person's text, for the same reason.
pub(crate) type TextId = u64;

/// The basis for the time of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineTime {
    /// Its own time.
    pub(crate) own: Option<Timestamp>,
    pub(crate) part: Part,
    /// The stored time, or the time to store unless a better one is found.
    pub(crate) stored: (Timestamp, TimeSource),
    /// The modification time of its file when it was first seen.
    pub(crate) seen: Timestamp,
}

/// The role of a message in the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// A person's text, or a message without words.
    Prompt(Option<TextId>),
    /// A response of the model, with these tool calls.
    Answer(Box<[CallId]>),
    /// The results of these tool calls.
    Results(Box<[CallId]>),
    /// A summary with which a conversation continues: the messages before it are gone from the transcript.
    Continuation,
    /// Anything else.
    Other,
}

impl LineTime {
    /// The time that it had from an event.
    pub(super) fn of_event_before(&self) -> Option<Timestamp> {
        (self.stored.1 == TimeSource::Event).then_some(self.stored.0)
    }

    /// The basis for a stored message whose line is not needed: it states its time, or there are no events.
    pub(crate) fn without_line(state: &MessageState) -> Self {
        Self { own: None, part: Part::Other, stored: (state.ts, state.ts_source), seen: state.ts }
            .with_stored((state.ts, state.ts_source))
    }

    /// The basis for a line that is already stored, with this time.
    pub(crate) fn with_stored(self, stored: (Timestamp, TimeSource)) -> Self {
        // A stated time need not be in the line: it may come from another store or an archive.
        let own = self.own.or((stored.1 == TimeSource::Stated).then_some(stored.0));
        let seen = if stored.1 == TimeSource::File { stored.0 } else { self.seen };
        Self { own, seen, stored, ..self }
    }

    pub(crate) fn of(line: &MessageLine, seen: Timestamp) -> Self {
        let own = stated_time(line.fields()).ok().flatten();
        let stored = own.map_or((seen, TimeSource::File), |own| (own, TimeSource::Stated));
        Self { own, part: Part::of(line.fields(), line.role()), stored, seen }
    }
}

impl Part {
    fn of(line: &Map<String, Value>, role: Role) -> Self {
        match role {
            Role::Assistant => Self::Answer(calls(line)),
            Role::Tool => Self::Results(results(line)),
            Role::User if is_continuation(line) => Self::Continuation,
            // Hosts submit prompts that no person typed, too.
            Role::User if has_own_content(line) => Self::Prompt(line_digest(line)),
            Role::User => {
                Some(results(line)).filter(|ids| !ids.is_empty()).map_or(Self::Other, Self::Results)
            }
            Role::System | Role::Developer => Self::Other,
        }
    }
}

/// The time that a line states: `metadata.timestamp`, else `timestamp`, else `ts`.
///
/// # Errors
///
/// The name of the field, if a field is not empty and none can be read as a time.
pub(crate) fn stated_time(line: &Map<String, Value>) -> Result<Option<Timestamp>, &'static str> {
    let in_metadata = line.get("metadata").and_then(|metadata| metadata.get("timestamp"));
    let fields =
        [("metadata.timestamp", in_metadata), ("timestamp", line.get("timestamp")), ("ts", line.get("ts"))];
    let given =
        || fields.iter().filter_map(|(name, value)| Some((*name, (*value).filter(|v| !v.is_null())?)));
    match given().find_map(|(_, value)| Timestamp::from_json(value)) {
        Some(ts) => Ok(Some(ts)),
        None => given().next().map_or(Ok(None), |(name, _)| Err(name)),
    }
}

/// The tool calls of a response, in any of the formats in use.
fn calls(line: &Map<String, Value>) -> Box<[CallId]> {
    let blocks = members(line.get("content"));
    let in_blocks = blocks.iter().filter(|block| {
        matches!(block.get("type").and_then(Value::as_str), Some("tool_call" | "tool_use" | "function_call"))
    });
    let beside = members(line.get("tool_calls")).iter();
    let ids = in_blocks.chain(beside).filter_map(|call| id(call, &["id", "tool_call_id", "call_id"]));
    // A message may make any number of calls.
    let mut seen = HashSet::new();
    ids.filter(|id| seen.insert(*id)).collect()
}

/// The tool calls to which results belong.
fn results(line: &Map<String, Value>) -> Box<[CallId]> {
    const NAMES: [&str; 3] = ["tool_call_id", "tool_use_id", "call_id"];
    let own = NAMES.iter().find_map(|name| text_id(line.get(*name)?));
    let blocks = members(line.get("content")).iter();
    let results = blocks.filter(|block| block.get("type").and_then(Value::as_str) == Some("tool_result"));
    own.into_iter().chain(results.filter_map(|block| id(block, &NAMES))).collect()
}

fn members(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn id(object: &Value, names: &[&str]) -> Option<CallId> {
    names.iter().find_map(|name| text_id(object.get(*name)?))
}

fn text_id(value: &Value) -> Option<CallId> {
    value.as_str().filter(|id| !id.is_empty()).map(|id| Digest::of(id.as_bytes()))
}
