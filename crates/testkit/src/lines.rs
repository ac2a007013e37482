//! Builders of lines of transcripts and event logs.
//!
//! ```
//! use amplifier_session_testkit::lines;
//!
//! let line = lines::user("Hello").at("2026-01-05T08:00:00Z").raw();
//! assert_eq!(
//!     line.to_text(),
//!     r#"{"role":"user","content":"Hello","metadata":{"timestamp":"2026-01-05T08:00:00Z"}}"#
//! );
//! ```

use amplifier_session_core::model::RawJson;
use serde_json::{Map, Value, json};

/// A line under construction.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    fields: Map<String, Value>,
    time: TimeField,
}

/// The field of a line that has the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeField {
    /// `metadata.timestamp`.
    InMetadata,
    /// `ts`.
    Ts,
    /// `timestamp`.
    Timestamp,
}

/// A user message.
pub fn user(text: &str) -> Line {
    message("user", json!(text))
}

/// An assistant message.
pub fn assistant(text: &str) -> Line {
    message("assistant", json!(text))
}

/// An assistant message with a thinking block and a text block.
pub fn thinking(thought: &str, text: &str) -> Line {
    message("assistant", json!([{"type": "thinking", "thinking": thought}, {"type": "text", "text": text}]))
}

/// A tool call of the assistant, without text.
pub fn tool_call(tool: &str, arguments: Value) -> Line {
    message("assistant", json!([{"type": "tool_call", "id": "call_1", "name": tool, "input": arguments}]))
}

/// A tool result as a message.
pub fn tool(text: &str) -> Line {
    message("tool", json!(text)).with("tool_call_id", json!("call_1"))
}

/// A tool result in the format of Anthropic: a block of a user message.
pub fn tool_result(text: &str) -> Line {
    message("user", json!([{"type": "tool_result", "tool_use_id": "call_1", "content": text}]))
}

/// A system message.
pub fn system(text: &str) -> Line {
    message("system", json!(text))
}

/// A message of any role and content.
pub fn message(role: &str, content: Value) -> Line {
    Line { fields: object(json!({"role": role, "content": content})), time: TimeField::InMetadata }
}

/// An event in the envelope of the session logger: `{ts, lvl, event, data}`.
pub fn logger_event(event: &str) -> Line {
    Line {
        fields: object(json!({"ts": EPOCH, "lvl": "INFO", "event": event, "data": {}})),
        time: TimeField::Ts,
    }
}

/// An event in the envelope of hooks: `{event, timestamp, data}`.
pub fn hook_event(event: &str) -> Line {
    Line {
        fields: object(json!({"event": event, "timestamp": EPOCH, "data": {}})),
        time: TimeField::Timestamp,
    }
}

/// An event in the envelope of context intelligence: `{ts, type, data}`.
pub fn context_event(event: &str) -> Line {
    Line { fields: object(json!({"ts": EPOCH, "type": event, "data": {}})), time: TimeField::Ts }
}

const EPOCH: &str = "2026-01-05T08:00:00Z";

impl Line {
    /// Sets the time (ISO 8601), in the field for this kind of line.
    #[must_use]
    pub fn at(self, time: impl ToString) -> Self {
        let time = time.to_string();
        match self.time {
            TimeField::InMetadata => self.with("metadata", json!({"timestamp": time})),
            TimeField::Ts => self.with("ts", json!(time)),
            TimeField::Timestamp => self.with("timestamp", json!(time)),
        }
    }

    /// Sets any field.
    #[must_use]
    pub fn with(mut self, field: &str, value: Value) -> Self {
        self.fields.insert(field.to_owned(), value);
        self
    }

    /// Sets the `data` of an event.
    #[must_use]
    pub fn data(self, data: Value) -> Self {
        self.with("data", data)
    }

    /// The line, without its line ending.
    pub fn raw(self) -> RawJson {
        RawJson::new(Value::Object(self.fields).to_string())
    }
}

impl From<Line> for RawJson {
    fn from(line: Line) -> Self {
        line.raw()
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
