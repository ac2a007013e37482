//! The three envelopes that event lines come in.
//!
//! | envelope | written by |
//! | --- | --- |
//! | `{ts, lvl, event, session_id, turn, duration_ms, status, error, …, data}` | the session logger |
//! | `{event, timestamp, data}` | hooks |
//! | `{ts, type, session_id, data}` | context intelligence |
//!
//! Only the fields that are wanted are read: a payload of megabytes is skipped over, not built up.

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};

use crate::{Error, Result, model::RawJson};

/// Fields at the top of an envelope that are read.
const TOP: &[&str] = &[
    "event",
    "type",
    "event_type",
    "ts",
    "timestamp",
    "lvl",
    "level",
    "turn",
    "event_id",
    "id",
    "duration_ms",
    "duration",
    "duration_s",
    "duration_seconds",
    "status",
    "error",
    "error_type",
    "error_message",
    "model",
    "provider",
    "tool_name",
    "tool_call_id",
    "prompt",
];

/// Fields of `data` that are read.
const DATA: &[&str] = &[
    "turn",
    "turn_id",
    "timestamp",
    "tool_name",
    "tool",
    "tool_names",
    "tool_calls",
    "tool_call_id",
    "tool_use_id",
    "call_id",
    "has_tool_calls",
    "error",
    "error_type",
    "model",
    "provider",
    "error_message",
    "exception",
    "duration_ms",
    "duration",
    "duration_s",
    "duration_seconds",
    "status",
    "stop_reason",
    "usage",
    "cost",
    "cost_usd",
    "total_cost",
    "total_cost_usd",
    "block_index",
    "prompt",
];

/// Fields of `result` in `data` that are read.
const RESULT: &[&str] = &["error", "success"];

/// The wanted fields of an envelope and of its `data`.
pub(super) struct Envelope {
    pub(super) top: Map<String, Value>,
    pub(super) data: Map<String, Value>,
    /// Of `data.result`, which holds all that a tool returned.
    pub(super) result: Map<String, Value>,
    /// What a tool returned, where `result` says that it failed.
    pub(super) failed_output: Option<Value>,
}

impl Envelope {
    /// The envelope of a line, and the size of its `data` in bytes.
    pub(super) fn read(line: &RawJson) -> Result<(Self, u64)> {
        // What only a tolerant parser reads, or JSON that is broken: the slow way tells which.
        split(line.as_bytes()).or_else(|_| split_repaired(line))
    }

    /// The first of `names` that holds something, at the top or else in `data`.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        [&self.top, &self.data]
            .into_iter()
            .filter_map(|fields| fields.get(name))
            .find(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }
}

/// The wanted fields and the size of `data`.
fn split(line: &[u8]) -> Result<(Envelope, u64)> {
    let broken = |error: serde_json::Error| {
        Error::validation("line", format!("is not valid JSON: {error}")).with_source(error)
    };
    let mut reader = serde_json::Deserializer::from_slice(line);
    let (top, data) = Wanted(TOP, "data").deserialize(&mut reader).map_err(broken)?;
    reader.end().map_err(broken)?;
    let size = data.map_or(0, |data| data.get().len() as u64);
    let (data, result) = within(data, Wanted(DATA, "result")).map_err(broken)?;
    let (result, output) = within(result, Wanted(RESULT, "output")).map_err(broken)?;
    let output = output.filter(|_| result.get("success") == Some(&Value::Bool(false)));
    let failed_output = output.and_then(|output| serde_json::from_str(output.get()).ok());
    Ok((Envelope { top, data, result, failed_output }, size))
}

/// As [`split`], of a line as the tolerant parser reads it. What that leaves out counts as a part of `data`.
fn split_repaired(line: &RawJson) -> Result<(Envelope, u64)> {
    let repaired = serde_json::to_vec(&line.parse_object()?).unwrap_or_default();
    let left_out = line.as_bytes().len().saturating_sub(repaired.len()) as u64;
    let (envelope, size) = split(&repaired)?;
    Ok((envelope, if size == 0 { 0 } else { size + left_out }))
}

/// The wanted members of an object that was left as it stands; nothing of another value.
fn within<'de>(value: Option<&'de RawValue>, wanted: Wanted) -> serde_json::Result<Members<'de>> {
    match value.map(RawValue::get) {
        Some(text) if text.starts_with('{') => {
            wanted.deserialize(&mut serde_json::Deserializer::from_str(text))
        }
        _ => Ok((Map::new(), None)),
    }
}

/// Reads the wanted members of an object, and the one of the second name as it stands.
struct Wanted(&'static [&'static str], &'static str);

type Members<'de> = (Map<String, Value>, Option<&'de RawValue>);

impl<'de> DeserializeSeed<'de> for Wanted {
    type Value = Members<'de>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Wanted {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let (mut members, mut as_it_stands) = (Map::new(), None);
        while let Some(key) = object.next_key::<std::borrow::Cow<'de, str>>()? {
            if key == self.1 {
                as_it_stands = Some(object.next_value::<&RawValue>()?);
            } else if self.0.contains(&key.as_ref()) {
                members.insert(key.into_owned(), object.next_value()?);
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok((members, as_it_stands))
    }
}
