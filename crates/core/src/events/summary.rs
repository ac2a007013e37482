//! The summary of an event: which field comes from where.
//!
//! | field | from (the first that holds something; at the top of the line, else in `data`) |
//! | --- | --- |
//! | `model`, `provider`, `duration_ms`, `status`, `stop_reason` | the field of the same name, when it is a text or a number |
//! | `tool_call_id` | `tool_call_id`, `tool_use_id`, `call_id`, when it is a text |
//! | `has_error` | `error` holds something, or `error_type` does, or `status` is `error` or `failed` |
//! | `tool_names` | `tool_names`, else the names in `tool_calls`, else `tool_name`, else `tool` |
//! | `has_tool_calls` | `has_tool_calls`, else whether `tool_calls` has members |
//! | `usage.input_tokens` | `usage.input_tokens`, `input`, `prompt_tokens` |
//! | `usage.output_tokens` | `usage.output_tokens`, `output`, `completion_tokens` |
//! | `usage.cache_read_tokens` | `usage.cache_read_tokens`, `cache_read`, `cache_read_input_tokens` |
//! | `usage.cache_write_tokens` | `usage.cache_write_tokens`, `cache_write`, `cache_creation_input_tokens` |
//! | `usage.cost` | `usage.cost`, `usage.cost_usd`, `cost`, `cost_usd` |
//!
//! It never holds `content`, `data`, `messages` or `full_response`, and no text longer than 200 characters.

use serde_json::{Map, Value};

use super::envelope::Envelope;

const LONGEST_TEXT: usize = 200;

/// The names that the id of a tool call goes by.
pub(super) const TOOL_CALL_ID: [&str; 3] = ["tool_call_id", "tool_use_id", "call_id"];

const USAGE: &[(&str, &[&str])] = &[
    ("input_tokens", &["input_tokens", "input", "prompt_tokens"]),
    ("output_tokens", &["output_tokens", "output", "completion_tokens"]),
    ("cache_read_tokens", &["cache_read_tokens", "cache_read", "cache_read_input_tokens"]),
    ("cache_write_tokens", &["cache_write_tokens", "cache_write", "cache_creation_input_tokens"]),
    ("cost", &["cost", "cost_usd"]),
];

pub(super) fn summary(envelope: &Envelope) -> Map<String, Value> {
    let mut summary = Map::new();
    for name in ["model", "provider", "duration_ms", "status", "stop_reason"] {
        if let Some(value) = envelope.get(name).filter(|value| is_short_scalar(value)) {
            summary.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(id) = tool_call_id(envelope) {
        summary.insert("tool_call_id".to_owned(), Value::from(id));
    }
    summary.insert("has_error".to_owned(), Value::Bool(has_error(envelope)));
    let tools = tool_names(envelope);
    if let Some(has_tool_calls) = has_tool_calls(envelope) {
        summary.insert("has_tool_calls".to_owned(), Value::Bool(has_tool_calls));
    }
    if !tools.is_empty() {
        summary.insert("tool_names".to_owned(), Value::from(tools));
    }
    let usage = usage(envelope);
    if !usage.is_empty() {
        summary.insert("usage".to_owned(), Value::Object(usage));
    }
    summary
}

fn tool_call_id(envelope: &Envelope) -> Option<&str> {
    let id = TOOL_CALL_ID.iter().find_map(|name| envelope.text(name));
    id.filter(|id| id.len() <= LONGEST_TEXT)
}

fn is_short_scalar(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().nth(LONGEST_TEXT).is_none(),
        Value::Number(_) | Value::Bool(_) => true,
        _ => false,
    }
}

fn has_error(envelope: &Envelope) -> bool {
    let holds_something = |value: &Value| match value {
        Value::Bool(error) => *error,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(object) => !object.is_empty(),
        Value::Null | Value::Number(_) => false,
    };
    envelope.get("error").is_some_and(holds_something)
        || envelope.text("error_type").is_some()
        || matches!(envelope.text("status"), Some("error" | "failed"))
}

fn has_tool_calls(envelope: &Envelope) -> Option<bool> {
    let given = envelope.get("has_tool_calls").and_then(Value::as_bool);
    given.or_else(|| Some(!envelope.get("tool_calls")?.as_array()?.is_empty()))
}

fn tool_names(envelope: &Envelope) -> Vec<String> {
    let listed = |list: &Vec<Value>| list.iter().filter_map(tool_name).map(str::to_owned).collect::<Vec<_>>();
    let lists =
        ["tool_names", "tool_calls"].iter().filter_map(|name| envelope.get(name)?.as_array()).map(listed);
    let single = || envelope.text("tool_name").or_else(|| envelope.text("tool")).map(str::to_owned);
    lists.into_iter().find(|names| !names.is_empty()).unwrap_or_else(|| single().into_iter().collect())
}

/// The tool of a call in one of the shapes in use.
fn tool_name(call: &Value) -> Option<&str> {
    let name = call.as_str().or_else(|| {
        let nested = || call.get("function")?.get("name");
        call.get("name").or_else(|| call.get("tool")).or_else(nested)?.as_str()
    });
    name.filter(|name| name.len() <= LONGEST_TEXT)
}

fn usage(envelope: &Envelope) -> Map<String, Value> {
    let given = envelope.get("usage").and_then(Value::as_object);
    let mut usage = Map::new();
    for (name, sources) in USAGE {
        let in_usage =
            sources.iter().find_map(|source| given?.get(*source).filter(|value| value.is_number()));
        let beside =
            || sources.iter().find_map(|source| envelope.get(source).filter(|value| value.is_number()));
        if let Some(value) = in_usage.or_else(|| if *name == "cost" { beside() } else { None }) {
            usage.insert((*name).to_owned(), value.clone());
        }
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{events::parse_event_line, model::RawJson};

    fn of(line: Value) -> Value {
        Value::Object(parse_event_line(&RawJson::new(line.to_string())).unwrap().summary)
    }

    #[test]
    fn payloads_never_reach_the_summary() {
        let big = "x".repeat(1_000);
        let summary = of(serde_json::json!({"event": "llm:request", "status": big, "model": {"name": big},
            "data": {"content": big, "data": big, "messages": [big], "full_response": {"a": big}, "usage": {"note": big}}}));
        assert_eq!(summary, serde_json::json!({"has_error": false}));
    }

    #[test]
    fn errors_are_seen_in_each_of_their_shapes() {
        for line in [
            serde_json::json!({"event": "e", "error": "boom"}),
            serde_json::json!({"event": "e", "data": {"error": {"type": "T"}}}),
            serde_json::json!({"event": "e", "data": {"error_type": "T"}}),
            serde_json::json!({"event": "e", "status": "error"}),
        ] {
            assert_eq!(of(line.clone())["has_error"], true, "{line}");
        }
        assert_eq!(
            of(serde_json::json!({"event": "e", "error": null, "data": {"error": ""}}))["has_error"],
            false
        );
    }

    #[test]
    fn cost_may_stand_beside_usage() {
        let line =
            serde_json::json!({"event": "e", "data": {"cost_usd": 0.5, "usage": {"prompt_tokens": 1}}});
        assert_eq!(of(line)["usage"], serde_json::json!({"input_tokens": 1, "cost": 0.5}));
    }
}
