//! The blocks that the content of a line consists of.

use serde_json::Value;

/// The items of a list; any other value is treated as a list of one item.
pub(super) fn elements(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        other => std::slice::from_ref(other),
    }
}

pub(super) fn block_type(block: &Value) -> Option<&str> {
    string_field(block, "type")
}

/// The text of a string or a `text` block.
pub(super) fn block_text(block: &Value) -> Option<&str> {
    match block {
        Value::String(text) => Some(text),
        _ if block_type(block) == Some("text") => string_field(block, "text"),
        _ => None,
    }
}

pub(super) fn is_tool_result(block: &Value) -> bool {
    block_type(block) == Some("tool_result")
}

/// The text of a string or of any object with a `text`, because parts of reasoning have several type names.
pub(super) fn part_text(part: &Value) -> Option<&str> {
    part.as_str().or_else(|| string_field(part, "text"))
}

/// The result in a `tool_result` block: `content` in Anthropic's format, `output` in Amplifier's.
pub(super) fn result_of(block: &Value) -> &Value {
    ["content", "output"]
        .into_iter()
        .filter_map(|name| block.get(name))
        .find(|value| !value.is_null())
        .unwrap_or(&Value::Null)
}

pub(super) fn string_field<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}
