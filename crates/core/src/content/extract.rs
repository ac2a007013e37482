//! Which texts a transcript line holds.
//!
//! | role | in the line | content type |
//! | --- | --- | --- |
//! | user | string, `text` blocks | user query |
//! | user | `tool_result` blocks | tool output |
//! | assistant | string, `text` blocks | assistant response |
//! | assistant | `thinking` and `reasoning` blocks and fields | assistant thinking |
//! | tool | string, content blocks, else the value as compact JSON | tool output |
//! | system, developer | string, `text` blocks | system |
//!
//! Tool calls, redacted thinking and images have no text. What has another shape than expected is passed over:
//! the line itself is stored whatever it looks like.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::model::{ContentType, Role};

/// How many characters of a tool's output are embedded unless the configuration says otherwise.
pub const TOOL_OUTPUT_LIMIT: usize = 10_000;

/// Stands between the blocks of one text.
const BLANK_LINE: &str = "\n\n";

/// All that a message says of one content type. Spans of chunks count the characters of this text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedText {
    /// What it is.
    pub content_type: ContentType,
    /// The text; blocks are joined by a blank line. Never blank.
    pub text: String,
}

/// The texts of a transcript line whose role is `role`: at most one of each content type, none of them blank,
/// in the order of [`ContentType::ALL`].
#[must_use]
pub fn extract(line: &Map<String, Value>, role: Role) -> Vec<ExtractedText> {
    let mut texts = Texts::default();
    let content = line.get("content").unwrap_or(&Value::Null);
    match role {
        Role::User => add_user(content, &mut texts),
        Role::Assistant => add_assistant(line, content, &mut texts),
        Role::Tool => texts.add(ContentType::ToolOutput, &tool_output(content)),
        Role::System | Role::Developer => {
            elements(content)
                .iter()
                .filter_map(block_text)
                .for_each(|text| texts.add(ContentType::System, text));
        }
    }
    texts.finish()
}

/// The part of `text` that is embedded: a tool's output up to its first `limit_chars` characters, nothing of a
/// system message, everything else whole.
#[must_use]
pub fn embeddable(text: &ExtractedText, limit_chars: usize) -> &str {
    match text.content_type {
        ContentType::ToolOutput => match text.text.char_indices().nth(limit_chars) {
            Some((end, _)) => text.text.get(..end).unwrap_or_default(),
            None => &text.text,
        },
        ContentType::System => "",
        ContentType::UserQuery | ContentType::AssistantResponse | ContentType::AssistantThinking => {
            &text.text
        }
    }
}

#[derive(Default)]
struct Texts(Vec<ExtractedText>);

impl Texts {
    fn add(&mut self, content_type: ContentType, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match self.0.iter_mut().find(|known| known.content_type == content_type) {
            Some(known) => {
                known.text.push_str(BLANK_LINE);
                known.text.push_str(text);
            }
            None => self.0.push(ExtractedText { content_type, text: text.to_owned() }),
        }
    }

    fn has(&self, content_type: ContentType) -> bool {
        self.0.iter().any(|known| known.content_type == content_type)
    }

    fn finish(mut self) -> Vec<ExtractedText> {
        self.0.sort_by_key(|text| text.content_type);
        self.0
    }
}

fn add_user(content: &Value, texts: &mut Texts) {
    for block in elements(content) {
        if let Some(text) = block_text(block) {
            texts.add(ContentType::UserQuery, text);
        } else if is_tool_result(block) {
            texts.add(ContentType::ToolOutput, &tool_output(result_of(block)));
        }
    }
}

fn add_assistant(line: &Map<String, Value>, content: &Value, texts: &mut Texts) {
    let thinking = ContentType::AssistantThinking;
    for block in elements(content) {
        match block_type(block) {
            Some("thinking") => texts.add(thinking, string_field(block, "thinking").unwrap_or_default()),
            Some("reasoning") => add_reasoning(block, texts),
            _ => texts.add(ContentType::AssistantResponse, block_text(block).unwrap_or_default()),
        }
    }
    for part in line.get("thinking").map_or(&[][..], elements) {
        texts.add(thinking, string_field(part, "thinking").or_else(|| part_text(part)).unwrap_or_default());
    }
    if let Some(reasoning) = line.get("reasoning") {
        add_reasoning(reasoning, texts);
    }
    // Amplifier's orchestrators keep the first thinking block a second time beside `content`, and it is the only
    // place where `content` is a string.
    if !texts.has(thinking) {
        let block = line.get("thinking_block").unwrap_or(&Value::Null);
        texts.add(thinking, string_field(block, "thinking").unwrap_or_default());
    }
}

/// Adds the `content` and `summary` of a reasoning block, or what a bare string or list of parts says.
fn add_reasoning(reasoning: &Value, texts: &mut Texts) {
    let fields = ["content", "summary"].into_iter().filter_map(|name| reasoning.get(name));
    let parts = elements(reasoning).iter().chain(fields.flat_map(elements));
    parts.filter_map(part_text).for_each(|text| texts.add(ContentType::AssistantThinking, text));
}

/// What a tool returned: a string, the texts of content blocks, else compact JSON.
fn tool_output(content: &Value) -> Cow<'_, str> {
    match content {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(items) if items.is_empty() => Cow::Borrowed(""),
        Value::Object(fields) if fields.is_empty() => Cow::Borrowed(""),
        _ if elements(content).iter().all(is_content_block) => {
            let texts =
                elements(content).iter().map(content_block_text).filter(|text| !text.trim().is_empty());
            Cow::Owned(texts.collect::<Vec<_>>().join(BLANK_LINE))
        }
        other => Cow::Owned(other.to_string()),
    }
}

/// Whether a piece of a tool's output is a block of a message and not data that happens to be JSON.
fn is_content_block(block: &Value) -> bool {
    match block_type(block) {
        Some("text") => string_field(block, "text").is_some(),
        Some("image") => true,
        _ => is_tool_result(block),
    }
}

fn content_block_text(block: &Value) -> Cow<'_, str> {
    if is_tool_result(block) {
        tool_output(result_of(block))
    } else {
        Cow::Borrowed(block_text(block).unwrap_or_default())
    }
}

/// The items of a list; any other value is a list of itself.
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

fn is_tool_result(block: &Value) -> bool {
    block_type(block) == Some("tool_result")
}

/// The text of a string or of anything with a `text`: parts of reasoning go by several type names.
fn part_text(part: &Value) -> Option<&str> {
    part.as_str().or_else(|| string_field(part, "text"))
}

/// What a `tool_result` block holds: `content` in Anthropic's format, `output` in Amplifier's.
fn result_of(block: &Value) -> &Value {
    ["content", "output"]
        .into_iter()
        .filter_map(|name| block.get(name))
        .find(|value| !value.is_null())
        .unwrap_or(&Value::Null)
}

fn string_field<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}
