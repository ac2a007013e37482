//! The fields of an event line.

use serde_json::{Map, Value};

use super::{envelope::Envelope, summary::summary};
use crate::{
    Error, ErrorField, Result,
    backend::SESSION_ID,
    model::{Level, RawJson, SessionId, Timestamp, normalised_type},
};

/// The fields of an event line.
#[derive(Debug, Clone, PartialEq)]
pub struct EventFields {
    /// The id in the line.
    pub event_id: Option<String>,
    /// The type, with colons instead of the dots of older writers (`llm.request` is `llm:request`).
    pub event_type: String,
    /// When it happened.
    pub ts: Option<Timestamp>,
    /// The conversation turn, from 1.
    pub turn: Option<u32>,
    /// The level.
    pub level: Level,
    /// The tool it is about.
    pub tool_name: Option<String>,
    /// The kind of error it reports.
    pub error_type: Option<String>,
    /// The model it is about.
    pub model: Option<String>,
    /// The provider it is about.
    pub provider: Option<String>,
    /// Fields that are safe to show and query.
    pub summary: Map<String, Value>,
    /// The size of the `data` field in the line, in bytes.
    pub data_size_bytes: u64,
    /// A warning if the time or the turn can't be read.
    pub warning: Option<String>,
    /// The session that the line names.
    pub session_id: Option<String>,
    /// The parent of that session, if the line names it.
    pub parent_session_id: Option<String>,
}

impl EventFields {
    /// The tool call that it is about.
    #[must_use]
    pub fn tool_call_id(&self) -> Option<&str> {
        self.summary.get("tool_call_id").and_then(Value::as_str)
    }

    /// A digest of the submitted prompt.
    #[must_use]
    pub fn prompt_digest(&self) -> Option<u64> {
        self.summary.get("prompt_digest").and_then(Value::as_u64)
    }

    /// The fields of an event in the log of `session`: the summary names the session that the line is of, if it is
    /// another one.
    #[must_use]
    pub fn in_log_of(mut self, session: &SessionId) -> Self {
        let other = self.session_id.as_deref().filter(|id| *id != session.as_str());
        if let Some(other) = other.filter(|id| SessionId::new(*id).is_ok()) {
            self.summary.insert(SESSION_ID.to_owned(), Value::from(other));
        }
        self
    }
}

/// Parses the fields of an event line.
///
/// # Errors
///
/// `Validation` if the line is not a JSON object or has no event type.
pub fn parse_event_line(line: &RawJson) -> Result<EventFields> {
    let (envelope, data_size_bytes) = Envelope::read(line)?;
    let name = ["event", "type", "event_type"].iter().find_map(|name| envelope.top.get(*name)?.as_str());
    let event_type = match name.map(str::trim) {
        Some(name) if !name.is_empty() => normalised_type(name),
        _ => return Err(Error::validation(ErrorField::Event, "is missing")),
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
        session_id: owned(envelope.text("session_id")),
        parent_session_id: owned(parent(&envelope, &event_type)),
        warning: warning(&envelope),
        data_size_bytes,
        event_type,
    })
}

/// The parent that a line names. All lines of a log may have a `parent_id`; that of a message or a span is not a session.
fn parent<'a>(envelope: &'a Envelope, event_type: &str) -> Option<&'a str> {
    let begins = matches!(event_type, "session:start" | "session:fork");
    let other = || envelope.data.get("parent_id")?.as_str().filter(|id| begins && !id.is_empty());
    envelope.text("parent_session_id").or_else(other)
}

fn warning(envelope: &Envelope) -> Option<String> {
    let times = || ["ts", "timestamp"].iter().filter_map(|name| Some((name, envelope.get(name)?)));
    let is_read = times().any(|(_, value)| Timestamp::from_json(value).is_some());
    let ts =
        times().next().filter(|_| !is_read).map(|(name, _)| format!("the time in {name:?} can't be read"));
    // Other writers use this field for ids of turns.
    let is_zero = envelope.get("turn").is_some_and(|turn| turn.as_u64() == Some(0));
    let turn = is_zero.then(|| "turn 0 is invalid: turns are numbered from 1".to_owned());
    let doubts: Vec<String> = ts.into_iter().chain(turn).collect();
    (!doubts.is_empty()).then(|| doubts.join("; "))
}

fn turn(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|turn| u32::try_from(turn).ok()).filter(|turn| *turn >= 1)
}

fn error_type(envelope: &Envelope) -> Option<&str> {
    let nested = || envelope.get("error")?.get("type")?.as_str();
    let of_result = || envelope.result.get("error")?.get("type")?.as_str().filter(|name| !name.is_empty());
    envelope.text("error_type").or_else(nested).or_else(of_result)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(line: &str) -> EventFields {
        parse_event_line(&RawJson::from(line)).unwrap()
    }

    #[test]
    fn the_logger_envelope_with_promoted_fields() {
        let event = fields(
            r#"{"ts":"2026-01-05T10:00:00+02:00","lvl":"WARNING","event":"llm.response","session_id":"s","turn":3,
            "duration_ms":1234,"status":"ok","data":{"provider":"anthropic","model":"m1","messages":[{"content":"x"}],
            "usage":{"input_tokens":10,"output":5,"cost":0.25},"tool_calls":[{"name":"bash"},{"function":{"name":"grep"}}]}}"#,
        );
        assert_eq!(event.event_type, "llm:response");
        assert_eq!(event.ts, Some(Timestamp::parse("2026-01-05T08:00:00Z").unwrap()));
        assert_eq!((event.level, event.turn), (Level::Warn, Some(3)));
        assert_eq!((event.model.as_deref(), event.provider.as_deref()), (Some("m1"), Some("anthropic")));
        let expected = json!({"model":"m1","provider":"anthropic","duration_ms":1234,"status":"ok",
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
    fn the_error_of_a_tool_is_in_its_result() {
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
        assert_eq!(event.summary["usage"], json!({"input_tokens":1,"output_tokens":2}));
    }

    #[test]
    fn a_line_of_another_session_names_it() {
        let own = SessionId::new("s").unwrap();
        let of = |line: &str| fields(line).in_log_of(&own).summary.get("session_id").cloned();
        assert_eq!(of(r#"{"event":"x","session_id":"s","data":{"session_id":"t"}}"#), None);
        assert_eq!(of(r#"{"event":"x","data":{"session_id":"t"}}"#), Some(json!("t")));
        assert_eq!(of(r#"{"event":"x","session_id":"a/b"}"#), None);
        let parent = |line: &str| fields(line).parent_session_id;
        assert_eq!(parent(r#"{"event":"x","data":{"parent_session_id":"p"}}"#).as_deref(), Some("p"));
        assert_eq!(parent(r#"{"event":"session:fork","data":{"parent_id":"p"}}"#).as_deref(), Some("p"));
        assert_eq!(parent(r#"{"event":"session:start","data":{"parent_id":null}}"#), None);
        assert_eq!(parent(r#"{"event":"tool:pre","data":{"parent_id":"p"}}"#), None);
    }

    #[test]
    fn invalid_values_are_ignored() {
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
    fn lines_without_an_event_are_refused() {
        for line in
            ["", "[]", "{\"event\":\"x\"", "{\"event\":\"x\"} {}", "{\"data\":{}}", "{\"event\":\" \"}"]
        {
            assert!(parse_event_line(&RawJson::from(line)).is_err(), "{line:?}");
        }
    }
}
