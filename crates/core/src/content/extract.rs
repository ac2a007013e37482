//! Extracts the texts of a transcript line.
//!
//! | role | in the line | content type |
//! | --- | --- | --- |
//! | user | blocks of text | user query |
//! | user | results of tool calls | tool output |
//! | assistant | blocks of text, refusals | assistant response |
//! | assistant | blocks and fields of thinking | assistant thinking |
//! | assistant | tool calls (see [`tool_call`](super::tool_call)) | tool call |
//! | tool | what the tool returned (see [`tool_result`](super::tool_result)) | tool output |
//! | system, developer | blocks of text | system |
//!
//! A block of text is a string, a block of the type `text`, `input_text` or `output_text`, or an object with `text` and
//! without a type. Blocks are in `content` or beside it (see [`blocks`](super::blocks)). Thinking is in blocks of the
//! type `thinking`, `reasoning` and the like, and in the fields of [`THINKING_FIELDS`]; a text that several of them
//! contain counts once.
//!
//! Redacted thinking and images have no text. Escape sequences of terminals are left out. Base64 in a text is replaced by a note about the file that it contains (see
//! [`files`](super::files)); a text of nothing else is left out. Parts with an unexpected shape are ignored; the line
//! itself is stored in any case.

mod earlier;

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    blocks::{block_text, block_type, blocks_in, blocks_of, is_thinking, is_tool_result, result_of},
    files::{ReadableText, note_about_file, without_base64},
    tool_call::called_tools,
    tool_result::{output_of, result_text},
};
use crate::{
    KnownPart,
    model::{ContentType, Role},
    text::{has_codes_before_words, is_south_east_asian, without_escapes},
};

/// The version of the rules of this module and of the [text analysis](crate::text). It is incremented whenever the text
/// of a stored message or its terms may change: derived data is then derived again.
pub const EXTRACTION: u32 = 7;

/// The oldest version whose differences are known. All that was derived by an earlier one is derived again.
const OLDEST: u32 = 3;

/// How many characters of a tool's output are embedded by default.
pub const TOOL_OUTPUT_LIMIT: usize = 10_000;

/// The separator of blocks in a text.
const BLANK_LINE: &str = "\n\n";

/// Fields of a line with thinking, in order. Amplifier's orchestrators store the first block of thinking a second time
/// in `thinking_block`; if `content` is a string, it is only there.
const THINKING_FIELDS: [&str; 6] =
    ["thinking", "reasoning", "thinking_text", "reasoning_content", "reasoning_details", "thinking_block"];

/// Fields of a block of thinking with its text; only the first one counts.
const THOUGHT_FIELDS: [&str; 8] = [
    "thinking",
    "thinking_text",
    "text",
    "reasoning",
    "reasoning_text",
    "reasoning_content",
    "reasoningText",
    "reasoningContent",
];

/// Fields of a block of thinking with more of it. In blocks of the type `thinking`, `content` is not text.
const MORE_THOUGHTS: [&str; 3] = ["content", "summary", "thoughts"];

/// The maximum depth of thinking in blocks.
const MAX_DEPTH: usize = 8;

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
pub(super) fn extract(line: &Map<String, Value>, role: Role) -> Vec<ExtractedText> {
    let mut texts = Texts::of(line, role);
    texts.0.retain(|text| text.has_words);
    texts.finish()
}

/// As [`extract`], with a note about each image and other file: the texts to show to a person.
pub(super) fn shown_texts(line: &Map<String, Value>, role: Role) -> Vec<ExtractedText> {
    let mut texts = Texts::of(line, role);
    let content_type = match role {
        Role::User => ContentType::UserQuery,
        Role::Assistant => ContentType::AssistantResponse,
        Role::Tool => ContentType::ToolOutput,
        Role::System | Role::Developer => ContentType::System,
    };
    for block in blocks_of(line) {
        if is_tool_result(block) {
            texts.add_files(ContentType::ToolOutput, &blocks_in(result_of(block)));
        } else {
            texts.add_files(content_type, &[block]);
        }
    }
    if role == Role::Tool && !line.contains_key("content") {
        texts.add_files(content_type, &blocks_in(output_of(line)));
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
    if from < OLDEST {
        return Renewed { texts: true, embedded: true };
    }
    let mut renewed = Renewed::default();
    if from < 4 {
        renewed = renewed.and(earlier::since_3(line, role));
    }
    if from < 5 {
        renewed.texts |= extract(line, role).iter().any(|text| text.text.chars().any(is_south_east_asian));
        renewed = renewed.and(earlier::since_4(line, role));
    }
    if from < 6 {
        renewed = renewed.and(earlier::since_5(line, role));
    }
    if from < 7 {
        renewed.texts |= extract(line, role).iter().any(|text| has_codes_before_words(&text.text));
    }
    renewed
}

impl Renewed {
    fn and(self, other: Self) -> Self {
        Self { texts: self.texts || other.texts, embedded: self.embedded || other.embedded }
    }
}

/// The part of `text` that is embedded: the first `limit_chars` characters of tool output, nothing of tool calls and
/// system messages, and all of other texts.
#[must_use]
pub fn embeddable(text: &ExtractedText, limit_chars: usize) -> &str {
    match text.content_type {
        ContentType::ToolOutput => match text.text.char_indices().nth(limit_chars) {
            Some((end, _)) => text.text.part(..end),
            None => &text.text,
        },
        ContentType::System | ContentType::ToolCall => "",
        ContentType::UserQuery | ContentType::AssistantResponse | ContentType::AssistantThinking => {
            &text.text
        }
    }
}

#[derive(Default)]
struct Texts(Vec<Text>);

/// A text while it is put together.
struct Text {
    content_type: ContentType,
    text: String,
    /// Whether it contains anything else than notes about files.
    has_words: bool,
    /// Whether such a note replaced a part of it.
    is_replaced: bool,
    /// Whether escape sequences were left out.
    is_stripped: bool,
}

impl Texts {
    /// The texts of a line.
    fn of(line: &Map<String, Value>, role: Role) -> Self {
        let mut texts = Self::default();
        match role {
            Role::User => add_user(line, &mut texts),
            Role::Assistant => add_assistant(line, &mut texts),
            Role::Tool => texts.add(ContentType::ToolOutput, &result_text(output_of(line))),
            Role::System | Role::Developer => {
                let blocks = blocks_of(line).into_iter();
                blocks.filter_map(block_text).for_each(|text| texts.add(ContentType::System, text));
            }
        }
        texts
    }

    fn add(&mut self, content_type: ContentType, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let plain = without_escapes(text);
        let is_stripped = matches!(plain, Cow::Owned(_));
        let readable = ReadableText::of(&plain);
        let (has_words, is_replaced) = (readable.has_words, readable.is_replaced());
        match self.0.iter_mut().find(|known| known.content_type == content_type) {
            Some(known) => {
                if !known.text.is_empty() && !readable.text.trim().is_empty() {
                    known.text.push_str(BLANK_LINE);
                }
                known.text.push_str(&readable.text);
                known.has_words |= has_words;
                known.is_replaced |= is_replaced;
                known.is_stripped |= is_stripped;
            }
            None => {
                let text = if has_words || is_replaced { readable.text.into_owned() } else { String::new() };
                self.0.push(Text { content_type, text, has_words, is_replaced, is_stripped });
            }
        }
    }

    /// Adds texts, unless the text so far contains them. White space is ignored, because the parts of a text may be
    /// joined differently.
    fn add_unless_known(&mut self, content_type: ContentType, parts: &[&str]) {
        let plain: Vec<_> = parts.iter().map(|part| without_escapes(part)).collect();
        let readable: Vec<_> = plain.iter().map(|part| without_base64(part)).collect();
        let known = self.0.iter().find(|known| known.content_type == content_type);
        let is_known = known
            .is_some_and(|known| without_blanks(&[known.text.as_str()]).contains(&without_blanks(&readable)));
        if !is_known {
            parts.iter().for_each(|text| self.add(content_type, text));
        }
    }

    /// Adds notes about the files in blocks that have no text.
    fn add_files(&mut self, content_type: ContentType, blocks: &[&Value]) {
        let without_text = blocks.iter().filter(|block| block_text(block).is_none() && !is_thinking(block));
        let notes = without_text.filter_map(|block| note_about_file(block.as_object()?));
        notes.for_each(|note| self.add(content_type, &note));
    }

    fn finish(self) -> Vec<ExtractedText> {
        let texts = self.0.into_iter().filter(|text| !text.text.is_empty());
        let mut texts: Vec<ExtractedText> =
            texts.map(|Text { content_type, text, .. }| ExtractedText { content_type, text }).collect();
        texts.sort_by_key(|text| text.content_type);
        texts
    }
}

fn without_blanks(parts: &[impl AsRef<str>]) -> String {
    parts.iter().flat_map(|text| text.as_ref().split_whitespace()).collect()
}

fn add_user(line: &Map<String, Value>, texts: &mut Texts) {
    for block in blocks_of(line) {
        if let Some(text) = block_text(block) {
            texts.add(ContentType::UserQuery, text);
        } else if is_tool_result(block) {
            texts.add(ContentType::ToolOutput, &result_text(result_of(block)));
        }
    }
}

fn add_assistant(line: &Map<String, Value>, texts: &mut Texts) {
    let thinking = ContentType::AssistantThinking;
    for block in blocks_of(line) {
        if is_thinking(block) {
            thoughts_in(block).into_iter().for_each(|text| texts.add(thinking, text));
            continue;
        }
        texts.add(ContentType::AssistantResponse, block_text(block).unwrap_or_default());
        if block_type(block).is_none() {
            for field in THINKING_FIELDS.iter().filter_map(|name| block.get(*name)) {
                texts.add_unless_known(thinking, &thoughts_in(field));
            }
        }
    }
    for field in THINKING_FIELDS.iter().filter_map(|name| line.get(*name)) {
        texts.add_unless_known(thinking, &thoughts_in(field));
    }
    for call in called_tools(line) {
        texts.add(ContentType::ToolCall, &call.text());
    }
}

/// The texts of thinking: of a string, of a list, or of a block in any of the formats in use.
fn thoughts_in(value: &Value) -> Vec<&str> {
    let mut thoughts = Vec::new();
    add_thoughts(value, 0, &mut thoughts);
    thoughts
}

fn add_thoughts<'a>(value: &'a Value, depth: usize, thoughts: &mut Vec<&'a str>) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::String(text) => thoughts.push(text),
        Value::Array(items) => items.iter().for_each(|item| add_thoughts(item, depth + 1, thoughts)),
        Value::Object(block) => {
            let is_opaque = block.get("type").and_then(Value::as_str) == Some("thinking");
            let field = |name: &&str| block.get(*name).filter(|value| !value.is_null());
            let more = MORE_THOUGHTS.iter().filter_map(field).filter(|_| !is_opaque);
            for part in THOUGHT_FIELDS.iter().find_map(field).into_iter().chain(more) {
                add_thoughts(part, depth + 1, thoughts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
