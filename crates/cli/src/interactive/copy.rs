//! The texts of a message, as they are copied and edited: as they were written, neither painted nor wrapped.

use amplifier_session_api::views::MessageView;
use amplifier_session_storage::{content::without_base64, model::ContentType};

use crate::render::tool_call;

/// The part of a message that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopiedPart {
    Text,
    Commands,
    Address,
}

/// The texts of a message, thinking first, and its tool calls in full.
pub(super) fn text(message: &MessageView) -> String {
    let line = message.line();
    let mut texts = line.shown_texts();
    texts.retain(|text| text.content_type != ContentType::ToolCall);
    texts.sort_by_key(|text| text.content_type != ContentType::AssistantThinking);
    let mut parts: Vec<String> = texts.iter().map(|text| without_base64(&text.text).into_owned()).collect();
    for call in line.called_tools() {
        let lines: Vec<String> = tool_call::full(&call).into_iter().map(|line| line.text).collect();
        parts.push(lines.join("\n"));
    }
    parts.join("\n\n")
}

/// The commands that the message runs in a shell, if there are any.
pub(super) fn commands(message: &MessageView) -> Option<String> {
    let line = message.line();
    let commands: Vec<String> =
        line.called_tools().iter().flat_map(|call| call.commands()).map(|text| text.into_owned()).collect();
    (!commands.is_empty()).then(|| commands.join("\n"))
}
