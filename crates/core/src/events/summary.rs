//! The summary of an event, and the source of each field.
//!
//! | field | source: the first that is present, at the top level or else in `data` |
//! | --- | --- |
//! | `model`, `provider`, `status`, `stop_reason` | the field of the same name, if it is a string or a number |
//! | `purpose`, `origin_module` | for model calls (`llm:*`, `provider:*`, `content_block:*`): the field of the same name, a string; present if a program made the call by itself |
//! | `duration_ms` | `duration_ms`, `duration` (also in milliseconds); `duration_s`, `duration_seconds` (times 1,000) |
//! | `tool_call_id` | `tool_call_id`, `tool_use_id`, `call_id`, if it is a string |
//! | `prompt_digest` | for `prompt:submit`: a digest of the words of `prompt`, to find the message with the same prompt |
//! | `has_error` | `error`, `error_type` or `error_message` is not empty, `status` is `error` or `failed`, or `result` has an `error` or `success: false` |
//! | `error` | the error message: `error` if it is a string; its `message`, `msg`, `detail` or `error`, or else all its strings, if it is an object; `error_message`; `exception`; the `error` of `result`; the `output` of a `result` with `success: false`; without base64, up to 1,000 characters |
//! | `tool_names` | `tool_names`, else the names in `tool_calls`, else `tool_name`, else `tool` |
//! | `has_tool_calls` | `has_tool_calls`, else whether `tool_calls` has members |
//! | `usage.input_tokens` | `usage.input_tokens`, `input`, `prompt_tokens` |
//! | `usage.output_tokens` | `usage.output_tokens`, `output`, `completion_tokens` |
//! | `usage.cache_read_tokens` | `usage.cache_read_tokens`, `cache_read`, `cache_read_input_tokens`, `cached_tokens`, `cached_input_tokens`; `cached_tokens` in `prompt_tokens_details` or `input_tokens_details` |
//! | `usage.cache_write_tokens` | `usage.cache_write_tokens`, `cache_write`, `cache_creation_input_tokens`, `cache_creation_tokens`, `cache_write_input_tokens` |
//! | `usage.cost` | `usage.cost`, `usage.cost_usd`, `usage.total_cost`, `usage.total_cost_usd`, else these beside `usage`: the first that is a number or a decimal in a string and not negative, stored exactly |
//! | `usage.unreadable_cost` | `true` if no cost can be read, but one in `usage` is given, or beside it in the event of a response |
//! | `request_id` | with `usage`, to count a call once that several lines report: `request_id`, `response_id`, the `id` of the provider's response in `response` or `raw`, or the `id` in `data`, if it is a string |
//! | `session_id` | if the line is of another session: `session_id` |
//!
//! The blocks of one answer (`content_block:*`) all have a copy of the usage. Here, only the first has it: a block with
//! a `block_index` above 0 has no `usage`.
//!
//! The summary never contains `content`, `data`, `messages` or `full_response`. Except for `error`, it has no string
//! longer than 200 characters.

use serde_json::{Map, Value};

use super::envelope::Envelope;
use crate::{
    KnownPart,
    backend::{PROMPT, RESPONSE, UNREADABLE_COST, repeats_usage},
    content::{prompt_digest, without_base64},
    model::Cost,
};

const LONGEST_TEXT: usize = 200;
const LONGEST_ERROR: usize = 1_000;

/// The names of the field with the id of a tool call.
pub(super) const TOOL_CALL_ID: [&str; 3] = ["tool_call_id", "tool_use_id", "call_id"];

const USAGE: &[(&str, &[&str])] = &[
    ("input_tokens", &["input_tokens", "input", "prompt_tokens"]),
    ("output_tokens", &["output_tokens", "output", "completion_tokens"]),
    (
        "cache_read_tokens",
        &[
            "cache_read_tokens",
            "cache_read",
            "cache_read_input_tokens",
            "cached_tokens",
            "cached_input_tokens",
        ],
    ),
    (
        "cache_write_tokens",
        &[
            "cache_write_tokens",
            "cache_write",
            "cache_creation_input_tokens",
            "cache_creation_tokens",
            "cache_write_input_tokens",
        ],
    ),
];
const COST: &[&str] = &["cost", "cost_usd", "total_cost", "total_cost_usd"];
/// The fields with cache usage in OpenAI's responses.
const DETAILS: &[&str] = &["prompt_tokens_details", "input_tokens_details"];
const DURATIONS: &[(&str, f64)] =
    &[("duration_ms", 1.0), ("duration", 1.0), ("duration_s", 1_000.0), ("duration_seconds", 1_000.0)];

pub(super) fn summary(envelope: &Envelope, event_type: &str) -> Map<String, Value> {
    let mut summary = Map::new();
    let mut copy = |name: &str| {
        if let Some(value) = envelope.get(name).filter(|value| is_short_scalar(value)) {
            summary.insert(name.to_owned(), value.clone());
        }
    };
    ["model", "provider"].into_iter().for_each(&mut copy);
    if is_model_call(event_type) {
        ["purpose", "origin_module"]
            .into_iter()
            .filter(|name| envelope.text(name).is_some())
            .for_each(&mut copy);
    }
    copy("duration_ms");
    ["status", "stop_reason"].into_iter().for_each(&mut copy);
    let duration = duration(envelope).filter(|_| !summary.contains_key("duration_ms"));
    let prompt = envelope.get("prompt").filter(|_| event_type == PROMPT);
    let tools = tool_names(envelope);
    // Each block of a response has an event with the usage of the whole response.
    let is_copy = repeats_usage(event_type)
        && envelope.get("block_index").and_then(Value::as_u64).is_some_and(|index| index > 0);
    let usage = if is_copy { Map::new() } else { usage(envelope, event_type) };
    let derived = [
        ("duration_ms", duration),
        ("tool_call_id", tool_call_id(envelope).map(Value::from)),
        ("prompt_digest", prompt.and_then(prompt_digest).map(Value::from)),
        ("has_error", Some(Value::Bool(has_error(envelope)))),
        ("error", error_text(envelope).map(Value::String)),
        ("has_tool_calls", has_tool_calls(envelope).map(Value::Bool)),
        ("tool_names", (!tools.is_empty()).then(|| Value::from(tools))),
        ("request_id", request_id(envelope).filter(|_| !usage.is_empty()).map(Value::from)),
        ("usage", (!usage.is_empty()).then_some(Value::Object(usage))),
    ];
    summary.extend(derived.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    summary
}

fn is_model_call(event_type: &str) -> bool {
    ["llm:", "provider:", "content_block:"].iter().any(|prefix| event_type.starts_with(prefix))
}

fn tool_call_id(envelope: &Envelope) -> Option<&str> {
    let id = TOOL_CALL_ID.iter().find_map(|name| envelope.text(name));
    id.filter(|id| id.len() <= LONGEST_TEXT)
}

/// The id of the model call that the line reports.
fn request_id(envelope: &Envelope) -> Option<&str> {
    let named = ["request_id", "response_id"].iter().find_map(|name| envelope.text(name));
    let nested = || envelope.response.as_ref().or_else(|| envelope.data.get("id")).and_then(Value::as_str);
    named.or_else(nested).filter(|id| !id.is_empty() && id.len() <= LONGEST_TEXT)
}

/// The duration in milliseconds.
fn duration(envelope: &Envelope) -> Option<Value> {
    DURATIONS.iter().find_map(|(name, factor)| {
        let value = envelope.get(name).filter(|value| value.is_number())?;
        Some(if *factor == 1.0 { value.clone() } else { Value::from(value.as_f64()? * factor) })
    })
}

fn is_short_scalar(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().nth(LONGEST_TEXT).is_none(),
        Value::Number(_) | Value::Bool(_) => true,
        _ => false,
    }
}

fn has_error(envelope: &Envelope) -> bool {
    envelope.get("error").is_some_and(is_present)
        || envelope.text("error_type").is_some()
        || envelope.text("error_message").is_some()
        || matches!(envelope.text("status"), Some("error" | "failed"))
        || envelope.result.get("error").is_some_and(is_present)
        || envelope.result.get("success") == Some(&Value::Bool(false))
}

fn is_present(value: &Value) -> bool {
    match value {
        Value::Bool(error) => *error,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(object) => !object.is_empty(),
        Value::Null | Value::Number(_) => false,
    }
}

/// The error message, cut if it is long.
fn error_text(envelope: &Envelope) -> Option<String> {
    let fields = ["error", "error_message", "exception"].iter().filter_map(|name| envelope.get(name));
    let mut texts = fields.chain(envelope.result.get("error")).chain(&envelope.failed_output).map(message);
    let text = texts.find(|text| !text.trim().is_empty())?;
    let text = without_base64(&text).into_owned();
    Some(match text.char_indices().nth(LONGEST_ERROR) {
        Some((end, _)) => format!("{}…", text.part(..end)),
        None => text,
    })
}

fn message(error: &Value) -> String {
    let texts = |values: &mut dyn Iterator<Item = &Value>| {
        values.filter_map(Value::as_str).filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join(", ")
    };
    match error {
        Value::String(text) => text.clone(),
        Value::Array(list) => texts(&mut list.iter()),
        Value::Object(fields) => {
            let named = ["message", "msg", "detail", "error"].iter().filter_map(|name| fields.get(*name));
            let nested = named.map(message).find(|text| !text.trim().is_empty());
            nested.unwrap_or_else(|| texts(&mut fields.values()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
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

/// The tool of a call, in any of the formats in use.
fn tool_name(call: &Value) -> Option<&str> {
    let name = call.as_str().or_else(|| {
        let nested = || call.get("function")?.get("name");
        call.get("name").or_else(|| call.get("tool")).or_else(nested)?.as_str()
    });
    name.filter(|name| name.len() <= LONGEST_TEXT)
}

fn usage(envelope: &Envelope, event_type: &str) -> Map<String, Value> {
    let nothing = Map::new();
    let given = envelope.get("usage").and_then(Value::as_object).unwrap_or(&nothing);
    let mut usage = Map::new();
    for (name, sources) in USAGE {
        let stated = sources.iter().find_map(|source| given.get(*source).filter(|value| value.is_number()));
        let detailed = || {
            let cached = |details: &&str| given.get(*details)?.get("cached_tokens");
            DETAILS
                .iter()
                .filter(|_| *name == "cache_read_tokens")
                .find_map(cached)
                .filter(|value| value.is_number())
        };
        if let Some(value) = stated.or_else(detailed) {
            usage.insert((*name).to_owned(), value.clone());
        }
    }
    let in_usage = || COST.iter().filter_map(|name| given.get(*name)).filter(|cost| !cost.is_null());
    let beside = || COST.iter().filter_map(|name| envelope.get(name));
    // Events of other kinds may have fields with these names that are no amounts of money.
    let is_response = event_type == RESPONSE || repeats_usage(event_type);
    if let Some(cost) = in_usage().chain(beside()).find_map(Cost::from_json) {
        usage.insert("cost".to_owned(), cost.to_json());
    } else if in_usage().next().is_some() || (is_response && beside().next().is_some()) {
        usage.insert(UNREADABLE_COST.to_owned(), Value::Bool(true));
    }
    usage
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{events::parse_event_line, model::RawJson};

    fn of(line: Value) -> Value {
        Value::Object(parse_event_line(&RawJson::new(line.to_string())).unwrap().summary)
    }

    #[test]
    fn payloads_never_reach_the_summary() {
        let big = "x".repeat(1_000);
        let summary = of(json!({"event": "llm:request", "status": big, "model": {"name": big},
            "data": {"content": big, "data": big, "messages": [big], "full_response": {"a": big}, "usage": {"note": big}}}));
        assert_eq!(summary, json!({"has_error": false}));
    }

    #[test]
    fn a_prompt_is_a_digest() {
        let of = |event: &str, prompt: Value| {
            of(json!({"event": event, "data": {"prompt": prompt}}))["prompt_digest"].clone()
        };
        let digest = of("prompt:submit", "Fix the tests".into());
        assert!(digest.is_u64());
        assert_eq!(of("prompt.submit", json!([{"type": "text", "text": "Fix the tests"}])), digest);
        assert_eq!(of("prompt:submit", Value::Null), Value::Null);
        assert_eq!(of("prompt:complete", "Fix the tests".into()), Value::Null);
    }

    #[test]
    fn only_model_calls_have_a_purpose() {
        let of = |event: &str, data: Value| {
            let summary = of(json!({"event": event, "data": data}));
            (summary.get("purpose").cloned(), summary.get("origin_module").cloned())
        };
        let naming = json!({"purpose": "session-naming", "origin_module": "hooks-session-naming"});
        let named = (Some("session-naming".into()), Some("hooks-session-naming".into()));
        assert_eq!(of("llm:request", naming.clone()), named);
        assert_eq!(of("llm.response", naming.clone()), named);
        assert_eq!(of("tool:pre", naming), (None, None));
        assert_eq!(of("llm:response", json!({"purpose": "", "origin_module": null})), (None, None));
    }

    #[test]
    fn errors_are_found_in_all_formats() {
        for line in [
            json!({"event": "e", "error": "boom"}),
            json!({"event": "e", "data": {"error": {"type": "T"}}}),
            json!({"event": "e", "data": {"error_type": "T"}}),
            json!({"event": "e", "status": "error"}),
            json!({"event": "e", "data": {"result": {"success": false}}}),
        ] {
            assert_eq!(of(line.clone())["has_error"], true, "{line}");
        }
        assert_eq!(of(json!({"event": "e", "error": null, "data": {"error": ""}}))["has_error"], false);
    }

    #[test]
    fn cost_may_be_beside_usage() {
        let line = json!({"event": "e", "data": {"cost_usd": 0.5, "usage": {"prompt_tokens": 1}}});
        assert_eq!(of(line)["usage"], json!({"input_tokens": 1, "cost": 0.5}));
    }

    #[test]
    fn costs_are_exact() {
        let cost = |cost: Value| {
            of(json!({"event": "llm:response", "data": {"usage": {"cost_usd": cost}}}))["usage"]["cost"]
                .clone()
        };
        assert_eq!(cost("0.4724725".into()), 0.4724725);
        assert_eq!(cost("0.083880".into()), 0.08388);
        assert_eq!(cost(0.25.into()), 0.25);
        assert_eq!(cost("123456789.123456789123".into()), "123456789.123456789123");
    }

    #[test]
    fn costs_that_cannot_be_read_are_noted() {
        let usage =
            |event: &str, data: Value| of(json!({"event": event, "data": data})).get("usage").cloned();
        let unreadable = Some(json!({"unreadable_cost": true}));
        for cost in [
            json!("free"),
            json!(""),
            json!(-1),
            json!("-0.5"),
            json!("$1.50"),
            json!("1,50"),
            json!({"usd": 1}),
        ] {
            let of = usage("llm:response", json!({"usage": {"cost_usd": cost}}));
            assert_eq!(of, unreadable, "{cost}");
        }
        assert_eq!(usage("llm:response", json!({"cost": "free"})), unreadable);
        assert_eq!(usage("tool:post", json!({"cost": "high"})), None);
        assert_eq!(usage("llm:response", json!({"usage": {"cost_usd": null}})), None);
        let second = json!({"cost": "1.5", "usage": {"cost": "free", "total_cost": -1}});
        assert_eq!(usage("llm:response", second), Some(json!({"cost": 1.5})));
    }

    #[test]
    fn a_call_is_known_by_the_id_of_its_request() {
        let of = |mut data: Value| {
            data["usage"] = json!({"input_tokens": 1});
            of(json!({"event": "llm:response", "id": "e1", "data": data}))["request_id"].clone()
        };
        assert_eq!(of(json!({"request_id": "r1", "raw": {"id": "msg_1"}})), "r1");
        assert_eq!(of(json!({"raw": {"content": [{"id": "x"}], "id": "msg_1"}})), "msg_1");
        assert_eq!(of(json!({"response": {"id": "resp_1"}, "id": "d1"})), "resp_1");
        assert_eq!(of(json!({"id": "d1", "response": "text"})), "d1");
        assert_eq!(of(json!({"request_id": "", "id": 7})), Value::Null);
        let without_usage = json!({"event": "llm:request", "data": {"request_id": "r1"}});
        assert_eq!(super::tests::of(without_usage).get("request_id"), None);
    }

    #[test]
    fn cache_tokens_are_found_by_all_names() {
        let of = |usage: Value| of(json!({"event": "e", "data": {"usage": usage}}))["usage"].clone();
        for read in [
            json!({"cache_read_tokens": 7}),
            json!({"cache_read_tokens": null, "cache_read_input_tokens": 7}),
            json!({"cached_tokens": 7}),
            json!({"prompt_tokens_details": {"cached_tokens": 7}}),
        ] {
            assert_eq!(of(read.clone()), json!({"cache_read_tokens": 7}), "{read}");
        }
        let written = json!({"cache_creation_input_tokens": 5, "cache_write_tokens": null});
        assert_eq!(of(written), json!({"cache_write_tokens": 5}));
    }

    #[test]
    fn only_the_first_block_of_an_answer_has_the_usage() {
        let block = |index: Value| {
            let data = json!({"block_index": index, "total_blocks": 2, "usage": {"input_tokens": 1}});
            of(json!({"event": "content_block:end", "data": data})).get("usage").is_some()
        };
        assert_eq!([block(0.into()), block(1.into()), block(Value::Null)], [true, false, true]);
    }

    #[test]
    fn durations_are_milliseconds() {
        let of = |data: Value| of(json!({"event": "e", "data": data}))["duration_ms"].clone();
        assert_eq!(of(json!({"duration": 1234})), 1234);
        assert_eq!(of(json!({"duration_ms": 5, "duration": 1234})), 5);
        assert_eq!(of(json!({"duration_seconds": 1.5})), 1500.0);
        assert_eq!(of(json!({"duration": {"long": 1}})), Value::Null);
    }

    #[test]
    fn error_messages_are_cut_to_a_maximum_length() {
        let of = |line: Value| of(line)["error"].clone();
        for line in [
            json!({"event": "e", "error": "boom"}),
            json!({"event": "e", "data": {"error": {"type": "T", "message": "boom"}}}),
            json!({"event": "e", "data": {"error": true, "error_message": "boom"}}),
            json!({"event": "e", "data": {"error": {"error": {"message": "boom"}}}}),
            json!({"event": "tool:post", "data": {"result": {"success": false, "output": "x", "error": {"message": "boom"}}}}),
        ] {
            assert_eq!(of(line.clone()), "boom", "{line}");
        }
        assert_eq!(of(json!({"event": "e", "error": {"type": "T", "hint": "try"}})), "T, try");
        let long = of(json!({"event": "e", "error": "é".repeat(5_000)}));
        assert_eq!(long.as_str().unwrap().chars().count(), LONGEST_ERROR + 1);
        let fine = json!({"event": "tool:post", "data": {"result": {"success": true, "error": null}}});
        assert_eq!(of(fine), Value::Null);
    }
}
