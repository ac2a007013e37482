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

use super::summary::summary;
use crate::{
    Error, Result,
    model::{Level, RawJson, Timestamp},
};

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

/// What an event line says, without the place it is stored under.
#[derive(Debug, Clone, PartialEq)]
pub struct EventFields {
    /// The id that the line gives.
    pub event_id: Option<String>,
    /// What happened; dots of older writers are colons here (`llm.request` is `llm:request`).
    pub event_type: String,
    /// When it happened.
    pub ts: Option<Timestamp>,
    /// Conversation turn, from 1.
    pub turn: Option<u32>,
    /// How serious it is.
    pub level: Level,
    /// The tool it is about.
    pub tool_name: Option<String>,
    /// The kind of error it reports.
    pub error_type: Option<String>,
    /// The model it is about.
    pub model: Option<String>,
    /// The provider it is about.
    pub provider: Option<String>,
    /// Fields that are safe to show and to query.
    pub summary: Map<String, Value>,
    /// Size of the `data` field as it stands in the line, in bytes.
    pub data_size_bytes: u64,
    /// What the line says that can't be read: its time, its turn.
    pub doubt: Option<String>,
}

impl EventFields {
    /// The tool call that it is about.
    #[must_use]
    pub fn tool_call_id(&self) -> Option<&str> {
        self.summary.get("tool_call_id").and_then(Value::as_str)
    }

    /// A digest of the prompt that it submits.
    #[must_use]
    pub fn prompt_digest(&self) -> Option<u64> {
        self.summary.get("prompt_digest").and_then(Value::as_u64)
    }
}

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

/// Reads the fields of one event line.
///
/// # Errors
///
/// `Validation` when the line is no JSON object or names no event.
pub fn parse_event_line(line: &RawJson) -> Result<EventFields> {
    let (envelope, data_size_bytes) = match split(line.as_bytes()) {
        Ok(parts) => parts,
        // What only a tolerant parser reads, or JSON that is broken: the slow way tells which.
        Err(_) => split_repaired(line)?,
    };
    let name = ["event", "type", "event_type"].iter().find_map(|name| envelope.top.get(*name)?.as_str());
    let event_type = match name.map(str::trim) {
        Some(name) if !name.is_empty() => normalised_type(name),
        _ => return Err(Error::validation("event", "is missing")),
    };
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Ok(EventFields {
        event_id: owned(["event_id", "id"].iter().find_map(|name| envelope.top.get(*name)?.as_str())),
        ts: ["ts", "timestamp"].iter().find_map(|name| Timestamp::from_json(envelope.get(name)?)),
        turn: ["turn", "turn_id"].iter().find_map(|name| turn(envelope.get(name)?)),
        level: ["lvl", "level"]
            .iter()
            .find_map(|name| Level::parse(envelope.top.get(*name)?.as_str()?))
            .unwrap_or_default(),
        tool_name: owned(envelope.text("tool_name").or_else(|| envelope.text("tool"))),
        error_type: owned(error_type(&envelope)),
        model: owned(envelope.text("model")),
        provider: owned(envelope.text("provider")),
        summary: summary(&envelope, &event_type),
        doubt: doubt(&envelope),
        data_size_bytes,
        event_type,
    })
}

fn doubt(envelope: &Envelope) -> Option<String> {
    let times = || ["ts", "timestamp"].iter().filter_map(|name| Some((name, envelope.get(name)?)));
    let is_read = times().any(|(_, value)| Timestamp::from_json(value).is_some());
    let ts =
        times().next().filter(|_| !is_read).map(|(name, _)| format!("the time in {name:?} can't be read"));
    // Other writers put ids of turns there.
    let is_zero = envelope.get("turn").is_some_and(|turn| turn.as_u64() == Some(0));
    let turn = is_zero.then(|| "turn 0 is not a number from 1 up".to_owned());
    let doubts: Vec<String> = ts.into_iter().chain(turn).collect();
    (!doubts.is_empty()).then(|| doubts.join("; "))
}

/// An event type as it is stored: with colons where it has dots alone.
pub(crate) fn normalised_type(name: &str) -> String {
    if name.contains(':') { name.to_owned() } else { name.replace('.', ":") }
}

fn turn(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|turn| u32::try_from(turn).ok()).filter(|turn| *turn >= 1)
}

fn error_type(envelope: &Envelope) -> Option<&str> {
    let nested = || envelope.get("error")?.get("type")?.as_str();
    let of_result = || envelope.result.get("error")?.get("type")?.as_str().filter(|name| !name.is_empty());
    envelope.text("error_type").or_else(nested).or_else(of_result)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str) -> EventFields {
        parse_event_line(&RawJson::from(line)).unwrap()
    }

    #[test]
    fn the_loggers_envelope_with_promoted_fields() {
        let event = fields(
            r#"{"ts":"2026-01-05T10:00:00+02:00","lvl":"WARNING","event":"llm.response","session_id":"s","turn":3,
            "duration_ms":1234,"status":"ok","data":{"provider":"anthropic","model":"m1","messages":[{"content":"x"}],
            "usage":{"input_tokens":10,"output":5,"cost":0.25},"tool_calls":[{"name":"bash"},{"function":{"name":"grep"}}]}}"#,
        );
        assert_eq!(event.event_type, "llm:response");
        assert_eq!(event.ts, Some(Timestamp::parse("2026-01-05T08:00:00Z").unwrap()));
        assert_eq!((event.level, event.turn), (Level::Warn, Some(3)));
        assert_eq!((event.model.as_deref(), event.provider.as_deref()), (Some("m1"), Some("anthropic")));
        let expected = serde_json::json!({"model":"m1","provider":"anthropic","duration_ms":1234,"status":"ok",
            "has_error":false,"has_tool_calls":true,"tool_names":["bash","grep"],
            "usage":{"input_tokens":10,"output_tokens":5,"cost":0.25}});
        assert_eq!(Value::Object(event.summary), expected);
    }

    #[test]
    fn the_hooks_envelope() {
        let event = fields(
            r#"{"event":"tool:post","timestamp":"2026-01-05T08:00:00Z","data":{"tool":"bash","error":{"type":"Timeout","message":"m"}}}"#,
        );
        assert_eq!(event.tool_name.as_deref(), Some("bash"));
        assert_eq!(event.error_type.as_deref(), Some("Timeout"));
        assert_eq!(event.summary["has_error"], true);
        assert_eq!(
            event.data_size_bytes,
            r#"{"tool":"bash","error":{"type":"Timeout","message":"m"}}"#.len() as u64
        );
    }

    #[test]
    fn what_a_tool_returns_says_how_it_failed() {
        let of = |result: &str| fields(&format!(r#"{{"event":"tool:post","data":{{"result":{result}}}}}"#));
        let event = of(
            r#"{"success":false,"error":{"type":"CommandFailed","message":"tapir exploded"},"output":"x"}"#,
        );
        assert_eq!(event.error_type.as_deref(), Some("CommandFailed"));
        assert_eq!(event.summary["error"], "tapir exploded");
        let event = of(r#"{"success":false,"error":null,"output":"siren sang"}"#);
        assert_eq!((event.error_type.as_deref(), &event.summary["error"]), (None, &"siren sang".into()));
        let event = of(&format!(
            r#"{{"success":false,"output":{{"returncode":1,"stderr":"{}"}}}}"#,
            "no ".repeat(1_000)
        ));
        assert_eq!(event.summary["error"].as_str().map(|text| text.chars().count()), Some(1_001));
        assert_eq!(of(r#"{"success":true,"output":"siren sang"}"#).summary.get("error"), None);
        assert_eq!(of(r#"{"output":"siren sang"}"#).summary.get("error"), None);
    }

    #[test]
    fn the_context_intelligence_envelope() {
        let event = fields(
            r#"{"ts":"2026-01-05T08:00:00Z","type":"llm:response","data":{"model":"m","usage":{"input":1,"output":2}}}"#,
        );
        assert_eq!(event.event_type, "llm:response");
        assert_eq!(event.level, Level::Info);
        assert_eq!(event.summary["usage"], serde_json::json!({"input_tokens":1,"output_tokens":2}));
    }

    #[test]
    fn odd_values_are_left_out_not_refused() {
        let event = fields(r#"{"event":"x","ts":{},"turn":-1,"lvl":7,"data":[1],"model":null,"event":"y"}"#);
        assert_eq!((event.event_type.as_str(), event.ts, event.turn), ("y", None, None));
        assert_eq!(fields(r#"{"event":"x","data":{"text":"\ud800"}}"#).event_type, "x");
        assert_eq!(fields(r#"{"event":"x"}"#).data_size_bytes, 0);
        let fields_of = |odd: &str| {
            fields(&format!(r#"{{"event":"x","duration_ms":{odd},"data":{{"model":"m","usage":{odd}}}}}"#))
        };
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        for odd in ["NaN", "-Infinity", "1e999", &deep] {
            let fields = fields_of(odd);
            assert_eq!((fields.event_type.as_str(), fields.model.as_deref()), ("x", Some("m")), "{odd:.9}");
            assert!(fields.data_size_bytes as usize >= odd.len(), "{odd:.9}");
        }
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for line in
            ["", "[]", "{\"event\":\"x\"", "{\"event\":\"x\"} {}", "{\"data\":{}}", "{\"event\":\" \"}"]
        {
            assert!(parse_event_line(&RawJson::from(line)).is_err(), "{line:?}");
        }
    }
}
