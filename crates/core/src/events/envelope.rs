//! The three envelopes of event lines.
//!
//! | envelope | written by |
//! | --- | --- |
//! | `{ts, lvl, event, session_id, turn, duration_ms, status, error, …, data}` | the session logger |
//! | `{event, timestamp, data}` | hooks |
//! | `{ts, type, session_id, data}` | context intelligence |
//!
//! Only the needed fields are parsed: a payload of megabytes is skipped.

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};

use crate::{Error, ErrorField, Result, known_json, model::RawJson};

/// The top-level fields that are read.
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
    "purpose",
    "origin_module",
    "session_id",
    "parent_session_id",
    "request_id",
    "response_id",
];

/// The fields of `data` that are read.
const DATA: &[&str] = &[
    "id",
    "session_id",
    "parent_session_id",
    "parent_id",
    "request_id",
    "response_id",
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
    "purpose",
    "origin_module",
];

/// The fields of `data.result` that are read.
const RESULT: &[&str] = &["error", "success"];

/// The fields of `data` with the provider's response, whose `id` is read.
const RESPONSES: [&str; 2] = ["response", "raw"];

/// The fields of `data` that may be large, and that are only read in part.
const LARGE: &[&str] = &["result", "response", "raw"];

/// The needed fields of an envelope and its `data`.
pub(super) struct Envelope {
    pub(super) top: Map<String, Value>,
    pub(super) data: Map<String, Value>,
    /// The needed fields of `data.result`, the output of a tool.
    pub(super) result: Map<String, Value>,
    /// The output of a tool, if `result` says that it failed.
    pub(super) failed_output: Option<Value>,
    /// The `id` of the provider's response in `data`.
    pub(super) response: Option<Value>,
}

impl Envelope {
    /// The envelope of a line, and the size of its `data` in bytes.
    pub(super) fn read(line: &RawJson) -> Result<(Self, u64)> {
        // The line is only readable by the tolerant parser, or it is invalid JSON.
        split(line.as_bytes()).or_else(|_| split_repaired(line))
    }

    /// The field at the top level or else in `data`, unless it is null.
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

/// The needed fields and the size of `data`.
fn split(line: &[u8]) -> Result<(Envelope, u64)> {
    let broken = |error: serde_json::Error| {
        Error::validation(ErrorField::Line, format!("is not valid JSON: {error}")).with_source(error)
    };
    let mut reader = serde_json::Deserializer::from_slice(line);
    let (top, data) = Needed(TOP, &["data"]).deserialize(&mut reader).map_err(broken)?;
    reader.end().map_err(broken)?;
    let data = named(&data, "data");
    let size = data.map_or(0, |data| data.get().len() as u64);
    let (data, unparsed) = within(data, Needed(DATA, LARGE)).map_err(broken)?;
    let (result, output) = within(named(&unparsed, "result"), Needed(RESULT, &["output"])).map_err(broken)?;
    let output = named(&output, "output").filter(|_| result.get("success") == Some(&Value::Bool(false)));
    let failed_output = output.and_then(|output| serde_json::from_str(output.get()).ok());
    let id = |name| within(named(&unparsed, name), Needed(&["id"], &[])).ok()?.0.remove("id");
    let response = RESPONSES.into_iter().find_map(id);
    Ok((Envelope { top, data, result, failed_output, response }, size))
}

/// [`split`] for a line that needs the tolerant parser. The bytes that it leaves out count as part of `data`.
fn split_repaired(line: &RawJson) -> Result<(Envelope, u64)> {
    let repaired = known_json(&line.parse_object()?);
    let left_out = line.as_bytes().len().saturating_sub(repaired.len()) as u64;
    let (envelope, size) = split(repaired.as_bytes())?;
    Ok((envelope, if size == 0 { 0 } else { size + left_out }))
}

/// The needed members of an unparsed object; nothing for other values.
fn within<'de>(value: Option<&'de RawValue>, needed: Needed) -> serde_json::Result<Members<'de>> {
    match value.map(RawValue::get) {
        Some(text) if text.starts_with('{') => {
            needed.deserialize(&mut serde_json::Deserializer::from_str(text))
        }
        _ => Ok((Map::new(), Vec::new())),
    }
}

/// The unparsed member with this name; the last one, if there are several.
fn named<'de>(unparsed: &[(String, &'de RawValue)], name: &str) -> Option<&'de RawValue> {
    unparsed.iter().rev().find(|(known, _)| known == name).map(|(_, value)| *value)
}

/// Parses the needed members of an object, and returns the members with the second names unparsed.
struct Needed(&'static [&'static str], &'static [&'static str]);

type Members<'de> = (Map<String, Value>, Vec<(String, &'de RawValue)>);

impl<'de> DeserializeSeed<'de> for Needed {
    type Value = Members<'de>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Needed {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let (mut members, mut unparsed) = (Map::new(), Vec::new());
        while let Some(key) = object.next_key::<std::borrow::Cow<'de, str>>()? {
            if self.1.contains(&key.as_ref()) {
                unparsed.push((key.into_owned(), object.next_value::<&RawValue>()?));
            } else if self.0.contains(&key.as_ref()) {
                members.insert(key.into_owned(), object.next_value()?);
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok((members, unparsed))
    }
}
