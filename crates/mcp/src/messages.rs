//! Messages as text.

use amplifier_session_api::{cut::beginning, dates, tool_calls::CallSummary, views::MessageView};
use amplifier_session_core::{
    content::{MessageLine, without_base64},
    model::{ContentType, Role},
    text::counted,
};
use jiff::Zoned;
use serde_json::Value;

use crate::quoted;

/// Tool output around the requested message is cut after this many characters.
const OUTPUT_CHARS: usize = 600;
/// The width of a tool call on one line.
const CALL_COLUMNS: usize = 200;

/// What to show of messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownMessages {
    pub(crate) thinking: bool,
    pub(crate) tools: bool,
    /// The message that was requested, whose tool calls and output are shown in full.
    pub(crate) requested: Option<u32>,
}

/// The parts of a message, and what is left out of it.
#[derive(Debug, Default)]
struct MessageText {
    text: String,
    left: Option<usize>,
    left_out: usize,
}

/// A message: its head, and its quoted text of at most `chars` characters.
pub(crate) fn message(view: &MessageView, shown: ShownMessages, chars: Option<usize>, now: &Zoned) -> String {
    let line = view.line();
    let mut head = format!("#{} {}", view.sequence, speaker(&line));
    let turn = view.turn.map_or_else(String::new, |turn| format!(" · turn {turn}"));
    head.push_str(&format!("{turn} · {}\n", dates::about_minute(view.ts, view.ts_estimated, now)));
    let is_requested = shown.requested == Some(view.sequence);
    let mut of = MessageText { left: chars, ..MessageText::default() };
    let mut cut_output = 0;
    let mut texts = line.shown_texts();
    // Thinking comes before its result.
    texts.sort_by_key(|text| text.content_type != ContentType::AssistantThinking);
    for text in texts {
        match text.content_type {
            ContentType::AssistantThinking if shown.thinking => of.add(&format!("thinking: {}", text.text)),
            ContentType::ToolOutput if shown.tools && !is_requested => {
                let (output, left_out) = beginning(&text.text, OUTPUT_CHARS);
                of.add(output);
                cut_output += left_out;
            }
            ContentType::ToolOutput if shown.tools => of.add(&text.text),
            ContentType::AssistantThinking | ContentType::ToolOutput | ContentType::ToolCall => {}
            ContentType::UserQuery | ContentType::AssistantResponse | ContentType::System => {
                of.add(&text.text)
            }
        }
    }
    if shown.tools {
        for call in &line.called_tools() {
            if is_requested {
                of.add(&format!("→ {}", without_base64(&call.text())));
            } else {
                let CallSummary { name, input } = CallSummary::new(call, Some(CALL_COLUMNS));
                of.add(&format!("→ {name} {input}"));
            }
        }
    }
    let mut text = head + &quoted::lines(&of.text);
    if cut_output + of.left_out > 0 {
        let more = counted((cut_output + of.left_out) as u64, "more character");
        text.push_str(&format!("… {more}: read(address: \"{}\", before: 0, after: 0)\n", view.address));
    }
    text
}

/// Whether nothing of a message would be shown.
pub(crate) fn is_hidden(view: &MessageView, shown: ShownMessages) -> bool {
    let line = view.line();
    let is_shown = |of: ContentType| match of {
        ContentType::AssistantThinking => shown.thinking,
        ContentType::ToolOutput | ContentType::ToolCall => shown.tools,
        _ => true,
    };
    let texts = line.texts();
    !texts.is_empty() && !texts.iter().any(|text| is_shown(text.content_type))
}

impl MessageText {
    /// Adds a paragraph, as far as there is room.
    fn add(&mut self, text: &str) {
        let text = text.trim_matches(['\n', '\r']);
        let (shown, left_out) = beginning(text, self.left.unwrap_or(usize::MAX));
        self.left = self.left.map(|left| left.saturating_sub(shown.chars().count()));
        self.left_out += left_out;
        if !self.text.is_empty() && !shown.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(shown);
    }
}

/// The role, with the name of the tool for tool output.
fn speaker(line: &MessageLine) -> String {
    let named = || ["name", "tool_name"].iter().find_map(|field| line.fields().get(*field)?.as_str());
    match (line.role(), named()) {
        (Role::Tool, Some(name)) => format!("tool {}", quoted::name(name)),
        (role, _) => role.to_string(),
    }
}

/// The facts of an event's summary as JSON, cut, without those that its line has anyway.
pub(crate) fn summary(summary: &serde_json::Map<String, Value>) -> String {
    const FIELD_CHARS: usize = 300;
    const KNOWN: [&str; 5] = ["model", "provider", "has_error", "tool_call_id", "tool_names"];
    let mut summary = summary.clone();
    summary.retain(|name, _| !KNOWN.contains(&name.as_str()));
    if summary.is_empty() {
        return String::new();
    }
    let mut value = Value::Object(summary);
    amplifier_session_api::cut::value_to(&mut value, FIELD_CHARS);
    amplifier_session_api::text::escaped(&value.to_string())
}
