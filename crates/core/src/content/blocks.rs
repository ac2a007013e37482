//! The blocks that the content of a line consists of.
//!
//! Programs and providers write a content as a string, a list of blocks, or an object. Its parts may also be beside it,
//! in `parts`, `text`, `input_text`, `output_text` or `refusal`.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Fields with a text or with blocks beside `content`.
const BESIDE_CONTENT: [&str; 5] = ["parts", "text", "input_text", "output_text", "refusal"];

/// Fields of a block without a type that contain an image or a file.
const MEDIA: [&str; 7] =
    ["inlineData", "inline_data", "fileData", "file_data", "image_url", "image", "asset_pointer"];

/// The maximum depth of blocks in blocks.
const MAX_DEPTH: usize = 8;

/// The items of a list; any other value is treated as a list of one item.
pub(super) fn elements(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        other => std::slice::from_ref(other),
    }
}

/// The blocks of a line, in order: those of its content, and those beside it. Some programs write a text in both; it
/// counts once.
pub(super) fn blocks_of(line: &Map<String, Value>) -> Vec<&Value> {
    let mut blocks = line.get("content").map_or_else(Vec::new, blocks_in);
    let beside = || BESIDE_CONTENT.iter().filter_map(|name| line.get(*name));
    if beside().next().is_none() {
        return blocks;
    }
    let mut known: HashSet<&str> = blocks.iter().filter_map(|block| block_text(block)).collect();
    for block in beside().flat_map(blocks_in) {
        if block_text(block).is_none_or(|text| known.insert(text)) {
            blocks.push(block);
        }
    }
    blocks
}

/// The blocks of a content, in order.
pub(super) fn blocks_in(content: &Value) -> Vec<&Value> {
    let mut blocks = Vec::new();
    add_blocks(content, 0, &mut blocks);
    blocks
}

fn add_blocks<'a>(value: &'a Value, depth: usize, blocks: &mut Vec<&'a Value>) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| add_blocks(item, depth + 1, blocks)),
        Value::Object(object) => match inner(object) {
            Some(inner) => add_blocks(inner, depth + 1, blocks),
            None => blocks.push(value),
        },
        other => blocks.push(other),
    }
}

/// The content within an object that only wraps it: a message, or an object without a type.
fn inner(object: &Map<String, Value>) -> Option<&Value> {
    let is_wrapper = match object.get("type").and_then(Value::as_str) {
        Some(name) => name == "message",
        None => !object.contains_key("text"),
    };
    let inner = || object.get("parts").or_else(|| object.get("content")).filter(|inner| !inner.is_null());
    is_wrapper.then(inner).flatten()
}

pub(super) fn block_type(block: &Value) -> Option<&str> {
    string_field(block, "type")
}

/// The text of a string, of a block of text, or of an object without a type. Thinking has no text in this sense.
pub(super) fn block_text(block: &Value) -> Option<&str> {
    match block {
        Value::String(text) => return Some(text),
        _ if is_thought(block) => return None,
        _ => {}
    }
    match block_type(block) {
        Some("refusal") => string_field(block, "refusal"),
        None => text_field(block),
        Some(name) => is_text(name).then(|| text_field(block)).flatten(),
    }
}

/// Whether a block of this type is text.
pub(super) fn is_text(block_type: &str) -> bool {
    matches!(block_type, "text" | "input_text" | "output_text" | "refusal")
}

/// The field `text`: a string, or an object with the string as its `value`.
fn text_field(block: &Value) -> Option<&str> {
    let text = block.get("text")?;
    text.as_str().or_else(|| string_field(text, "value"))
}

/// Whether a block is a part of thinking in Gemini's format.
fn is_thought(block: &Value) -> bool {
    block.get("thought") == Some(&Value::Bool(true))
}

/// Whether a block contains thinking.
pub(super) fn is_thinking(block: &Value) -> bool {
    let is_named = |name: &str| {
        matches!(name, "thinking" | "reasoning" | "thinking_text" | "reasoning_text" | "reasoning_content")
            || name.starts_with("reasoning.")
    };
    match block_type(block) {
        Some(name) => is_named(name),
        None => {
            is_thought(block)
                || ["thoughts", "reasoningContent"].iter().any(|name| block.get(*name).is_some())
        }
    }
}

/// Whether a block has no type but contains an image or a file.
pub(super) fn is_media(block: &Value) -> bool {
    MEDIA.iter().any(|name| block.get(*name).is_some_and(|value| !value.is_null()))
}

/// Whether a block contains the result of a tool call, in any of the formats in use.
pub(super) fn is_tool_result(block: &Value) -> bool {
    match block_type(block) {
        Some(name) => matches!(name, "tool_result" | "function_call_output"),
        None => function_response(block).is_some(),
    }
}

/// The result in Gemini's format.
fn function_response(block: &Value) -> Option<&Value> {
    block.get("functionResponse").or_else(|| block.get("function_response")).filter(|value| value.is_object())
}

/// The result in a block with the result of a tool call: `content` in Anthropic's format, `output` in Amplifier's and
/// OpenAI's, `response` in Gemini's.
pub(super) fn result_of(block: &Value) -> &Value {
    if let Some(response) = function_response(block) {
        return response.get("response").unwrap_or(&Value::Null);
    }
    ["content", "output"]
        .into_iter()
        .filter_map(|name| block.get(name))
        .find(|value| !value.is_null())
        .unwrap_or(&Value::Null)
}

pub(super) fn string_field<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}
