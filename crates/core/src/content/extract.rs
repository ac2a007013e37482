//! Extracts the texts of a transcript line.
//!
//! | role | in the line | content type |
//! | --- | --- | --- |
//! | user | string, `text` blocks | user query |
//! | user | `tool_result` blocks | tool output |
//! | assistant | string, `text` blocks | assistant response |
//! | assistant | `thinking` and `reasoning` blocks and fields | assistant thinking |
//! | assistant | `tool_call` and `tool_use` blocks, `tool_calls` | tool call (see [`tool_call`](super::tool_call)) |
//! | tool | what the tool returned (see [`tool_result`](super::tool_result)) | tool output |
//! | system, developer | string, `text` blocks | system |
//!
//! Redacted thinking and images have no text. Parts with an unexpected shape are ignored; the line itself is stored in
//! any case.

use serde_json::{Map, Value};

use super::{
    blocks::{block_text, block_type, elements, is_tool_result, part_text, result_of, string_field},
    tool_call::called_tools,
    tool_result::{result_text, was_other_text},
};
use crate::{
    model::{ContentType, Role},
    text::is_cjk_or_emoji,
};

/// The version of the rules of [`extract`] and of the [text analysis](crate::text). It is incremented whenever the text
/// of a stored message or its terms may change: derived data is then derived again.
pub const EXTRACTION: u32 = 3;

/// How many characters of a tool's output are embedded by default.
pub const TOOL_OUTPUT_LIMIT: usize = 10_000;

/// The separator of blocks in a text.
const BLANK_LINE: &str = "\n\n";

/// The text of a message for one content type. Spans of chunks count the characters of this text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedText {
    /// The content type.
    pub content_type: ContentType,
    /// The text, with blocks joined by a blank line. Never blank.
    pub text: String,
}

/// The texts of a transcript line with this role: at most one per content type, never blank, in the order of
/// [`ContentType::ALL`].
#[must_use]
pub fn extract(line: &Map<String, Value>, role: Role) -> Vec<ExtractedText> {
    let mut texts = Texts::default();
    let content = line.get("content").unwrap_or(&Value::Null);
    match role {
        Role::User => add_user(content, &mut texts),
        Role::Assistant => add_assistant(line, content, &mut texts),
        Role::Tool => texts.add(ContentType::ToolOutput, &result_text(content)),
        Role::System | Role::Developer => {
            elements(content)
                .iter()
                .filter_map(block_text)
                .for_each(|text| texts.add(ContentType::System, text));
        }
    }
    texts.finish()
}

/// How the texts of a message, or their terms, differ from the ones by earlier rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Renewed {
    /// Whether any text or term differs.
    pub(crate) texts: bool,
    /// Whether a text that is embedded differs.
    pub(crate) embedded: bool,
}

/// How the texts of a line differ from the ones by version `from` of the rules.
pub(crate) fn renewed(line: &Map<String, Value>, role: Role, from: u32) -> Renewed {
    let since_1 = if from < 2 { renewed_since_1(line, role) } else { Renewed::default() };
    let has_other_terms = || extract(line, role).iter().any(|text| text.text.chars().any(is_cjk_or_emoji));
    Renewed { texts: since_1.texts || (from < 3 && has_other_terms()), ..since_1 }
}

fn renewed_since_1(line: &Map<String, Value>, role: Role) -> Renewed {
    let content = line.get("content").unwrap_or(&Value::Null);
    let embedded = match role {
        Role::Tool => was_other_text(content),
        Role::User => elements(content)
            .iter()
            .filter(|block| is_tool_result(block))
            .any(|block| was_other_text(result_of(block))),
        Role::Assistant | Role::System | Role::Developer => false,
    };
    let has_calls = role == Role::Assistant && !called_tools(line).is_empty();
    Renewed { texts: embedded || has_calls, embedded }
}

/// The part of `text` that is embedded: the first `limit_chars` characters of tool output, nothing of tool calls and
/// system messages, and all of other texts.
#[must_use]
pub fn embeddable(text: &ExtractedText, limit_chars: usize) -> &str {
    match text.content_type {
        ContentType::ToolOutput => match text.text.char_indices().nth(limit_chars) {
            Some((end, _)) => text.text.get(..end).unwrap_or_default(),
            None => &text.text,
        },
        ContentType::System | ContentType::ToolCall => "",
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
            texts.add(ContentType::ToolOutput, &result_text(result_of(block)));
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
    // Amplifier's orchestrators store the first thinking block a second time beside `content`. If `content` is a
    // string, it is only there.
    if !texts.has(thinking) {
        let block = line.get("thinking_block").unwrap_or(&Value::Null);
        texts.add(thinking, string_field(block, "thinking").unwrap_or_default());
    }
    for call in called_tools(line) {
        texts.add(ContentType::ToolCall, &call.text());
    }
}

/// Adds the `content` and `summary` of a reasoning block, or the text of a string or of a list of parts.
fn add_reasoning(reasoning: &Value, texts: &mut Texts) {
    let fields = ["content", "summary"].into_iter().filter_map(|name| reasoning.get(name));
    let parts = elements(reasoning).iter().chain(fields.flat_map(elements));
    parts.filter_map(part_text).for_each(|text| texts.add(ContentType::AssistantThinking, text));
}

#[cfg(test)]
mod tests;
