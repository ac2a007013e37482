//! What a transcript line says that its time follows from.

use serde_json::{Map, Value};

use crate::{
    content::{is_continuation, is_real, prompt_digest},
    model::{Digest, MessageState, Role, TimeSource, Timestamp},
};

/// The id of a tool call, hashed: all that is kept of it, so that memory does not grow with what is logged.
pub(crate) type CallId = Digest;

/// What a person says, hashed, for the same reason.
pub(crate) type TextId = u64;

/// What the time of one message follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineTime {
    /// Its own time.
    pub(crate) own: Option<Timestamp>,
    pub(crate) part: Part,
    /// The time that is stored with it, or will be unless another is found.
    pub(crate) stored: (Timestamp, TimeSource),
    /// The time of its file when it was first seen.
    pub(crate) seen: Timestamp,
}

/// What a message does in the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// A person says this, or something without words.
    Prompt(Option<TextId>),
    /// The model answers, and calls these tools.
    Answer(Box<[CallId]>),
    /// These calls are answered.
    Results(Box<[CallId]>),
    /// A summary that the conversation goes on from: what was before it is gone from the transcript.
    Continuation,
    /// Anything else.
    Other,
}

impl LineTime {
    /// The time that an event of its tool calls gave it before: such events do not change, but a store that an earlier version
    /// wrote may not know their ids.
    pub(super) fn by_id_before(&self) -> Option<Timestamp> {
        let has_calls = matches!(&self.part, Part::Answer(calls) | Part::Results(calls) if !calls.is_empty());
        self.of_event_before().filter(|_| has_calls)
    }

    /// The time that an event gave it before.
    pub(super) fn of_event_before(&self) -> Option<Timestamp> {
        (self.stored.1 == TimeSource::Event).then_some(self.stored.0)
    }

    /// The same of a stored message whose line matters to nothing: it states its time, or there are no events.
    pub(crate) fn without_line(state: &MessageState) -> Self {
        Self { own: None, part: Part::Other, stored: (state.ts, state.ts_source), seen: state.ts }
            .with_stored((state.ts, state.ts_source))
    }

    /// The same of a line that is stored already, with this time.
    pub(crate) fn with_stored(self, stored: (Timestamp, TimeSource)) -> Self {
        // What is stated need not stand in the line: it may come from another store, or from an archive.
        let own = self.own.or((stored.1 == TimeSource::Stated).then_some(stored.0));
        let seen = if stored.1 == TimeSource::File { stored.0 } else { self.seen };
        Self { own, seen, stored, ..self }
    }

    pub(crate) fn of(line: &Map<String, Value>, role: Role, seen: Timestamp) -> Self {
        let own = stated_time(line).ok().flatten();
        let stored = own.map_or((seen, TimeSource::File), |own| (own, TimeSource::Stated));
        Self { own, part: Part::of(line, role), stored, seen }
    }
}

impl Part {
    fn of(line: &Map<String, Value>, role: Role) -> Self {
        match role {
            Role::Assistant => Self::Answer(calls(line)),
            Role::Tool => Self::Results(results(line)),
            Role::User if is_continuation(line) => Self::Continuation,
            Role::User if is_real(line) => Self::Prompt(line.get("content").and_then(prompt_digest)),
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
/// The name of the field, when it holds something and none of them can be read as a time.
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

/// The calls that an answer makes, in any of the shapes in use.
fn calls(line: &Map<String, Value>) -> Box<[CallId]> {
    let blocks = members(line.get("content"));
    let in_blocks = blocks.iter().filter(|block| {
        matches!(block.get("type").and_then(Value::as_str), Some("tool_call" | "tool_use" | "function_call"))
    });
    let beside = members(line.get("tool_calls")).iter();
    let mut ids = Vec::new();
    for id in in_blocks.chain(beside).filter_map(|call| id(call, &["id", "tool_call_id", "call_id"])) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids.into()
}

/// The calls that are answered.
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
