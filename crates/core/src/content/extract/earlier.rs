//! The rules of earlier versions, as far as they are needed to find the texts that they read differently.

use serde_json::{Map, Value};

use super::{Renewed, Texts, extract};
use crate::{
    content::{
        blocks::{block_type, blocks_of, elements, is_tool_result, result_of, string_field},
        tool_result::{has_new_blocks, may_differ_from_5, output_of},
    },
    model::{ContentType, Role},
};

/// How the texts of a line differ from those by version 3, which knew fewer types of blocks and fields.
pub(super) fn since_3(line: &Map<String, Value>, role: Role) -> Renewed {
    let content = line.get("content").unwrap_or(&Value::Null);
    let has_other_output = match role {
        Role::Tool => content.is_null() && !output_of(line).is_null() || has_new_blocks(content),
        Role::User => elements(content)
            .iter()
            .filter(|block| is_tool_result(block))
            .any(|block| block_type(block) != Some("tool_result") || has_new_blocks(result_of(block))),
        Role::Assistant | Role::System | Role::Developer => false,
    };
    let of_conversation =
        |content_type| !matches!(content_type, ContentType::ToolOutput | ContentType::ToolCall);
    let mut now = extract(line, role);
    let has_calls = now.iter().any(|text| text.content_type == ContentType::ToolCall);
    now.retain(|text| of_conversation(text.content_type));
    let differs = now != texts_by_3(line, content, role).finish();
    let embedded = has_other_output || differs && !matches!(role, Role::System | Role::Developer);
    // Calls were only found in typed blocks of a list in `content`, and in `tool_calls` and `function_call`.
    let is_other = |block: &Value| block_type(block).is_none() && !block.is_string();
    let has_other_calls = has_calls
        && (line.contains_key("parts") || content.is_object() || elements(content).iter().any(is_other));
    Renewed { texts: embedded || differs || has_other_calls, embedded }
}

/// How the texts of a line differ from those by version 4, in which base64 was text.
pub(super) fn since_4(line: &Map<String, Value>, role: Role) -> Renewed {
    let texts = Texts::of(line, role).0;
    let mut replaced = texts.iter().filter(|text| text.is_replaced).peekable();
    let texts = replaced.peek().is_some();
    Renewed { texts, embedded: replaced.any(|text| ContentType::EMBEDDED.contains(&text.content_type)) }
}

/// How the texts of a line may differ from those by version 5, which kept escape sequences, and more of the output of
/// tools. In the texts of tool calls, only punctuation differs.
pub(super) fn since_5(line: &Map<String, Value>, role: Role) -> Renewed {
    let has_other_output = match role {
        Role::Tool => may_differ_from_5(output_of(line)),
        Role::User => {
            blocks_of(line).into_iter().filter(|b| is_tool_result(b)).any(|b| may_differ_from_5(result_of(b)))
        }
        Role::Assistant | Role::System | Role::Developer => false,
    };
    let texts = Texts::of(line, role).0;
    let stripped: Vec<ContentType> =
        texts.iter().filter(|text| text.is_stripped).map(|text| text.content_type).collect();
    Renewed {
        texts: has_other_output || !stripped.is_empty(),
        embedded: has_other_output || stripped.iter().any(|of| ContentType::EMBEDDED.contains(of)),
    }
}

/// The texts of a line by version 3, without the output of tools and calls.
fn texts_by_3(line: &Map<String, Value>, content: &Value, role: Role) -> Texts {
    let mut texts = Texts::default();
    let mut add = |content_type| {
        elements(content).iter().filter_map(text_by_3).for_each(|text| texts.add(content_type, text));
    };
    match role {
        Role::User => add(ContentType::UserQuery),
        Role::Assistant => {
            add(ContentType::AssistantResponse);
            thinking_by_3(line, content, &mut texts);
        }
        Role::Tool => {}
        Role::System | Role::Developer => add(ContentType::System),
    }
    texts
}

fn text_by_3(block: &Value) -> Option<&str> {
    match block {
        Value::String(text) => Some(text),
        _ if block_type(block) == Some("text") => string_field(block, "text"),
        _ => None,
    }
}

fn thinking_by_3(line: &Map<String, Value>, content: &Value, texts: &mut Texts) {
    let mut add = |text: Option<&str>| texts.add(ContentType::AssistantThinking, text.unwrap_or_default());
    for block in elements(content) {
        match block_type(block) {
            Some("thinking") => add(string_field(block, "thinking")),
            Some("reasoning") => reasoning_by_3(block).for_each(|text| add(Some(text))),
            _ => {}
        }
    }
    for part in line.get("thinking").map_or(&[][..], elements) {
        add(string_field(part, "thinking").or_else(|| part_text(part)));
    }
    if let Some(reasoning) = line.get("reasoning") {
        reasoning_by_3(reasoning).for_each(|text| add(Some(text)));
    }
    if texts.0.iter().all(|text| text.content_type != ContentType::AssistantThinking) {
        let block = line.get("thinking_block").unwrap_or(&Value::Null);
        texts.add(ContentType::AssistantThinking, string_field(block, "thinking").unwrap_or_default());
    }
}

fn reasoning_by_3(reasoning: &Value) -> impl Iterator<Item = &str> {
    let fields = ["content", "summary"].into_iter().filter_map(|name| reasoning.get(name));
    elements(reasoning).iter().chain(fields.flat_map(elements)).filter_map(part_text)
}

fn part_text(part: &Value) -> Option<&str> {
    part.as_str().or_else(|| string_field(part, "text"))
}
