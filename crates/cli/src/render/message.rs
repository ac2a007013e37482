//! A transcript line as text.

use amplifier_session_storage::{
    content::{MessageLine, ToolCall},
    model::{ContentType, Role},
};

use super::{
    markdown::{markdown, wrapped},
    text::{counted, fitted, grouped, one_line, printable},
    tool_call::{self, CallLine},
};
use crate::{cut::beginning, paint::Paint};

/// Tool output is cut after this many lines.
const TOOL_LINES: usize = 6;
/// Tool output is cut after this many characters.
const TOOL_CHARS: usize = 1_200;

/// How to show messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageOptions {
    /// Whether to show tool calls and tool output completely.
    pub(crate) full: bool,
    /// The maximum length of a message in characters, if there is a limit.
    pub(crate) max_chars: Option<usize>,
    /// Whether to show thinking.
    pub(crate) thinking: bool,
    /// Whether to show tool calls and their output.
    pub(crate) tools: bool,
    /// The width at which to wrap, if any.
    pub(crate) width: Option<usize>,
    /// How to paint.
    pub(crate) paint: Paint,
}

impl MessageOptions {
    /// Complete messages, neither cut nor wrapped.
    pub(crate) fn whole(paint: Paint) -> Self {
        Self { full: true, max_chars: None, thinking: true, tools: true, width: None, paint }
    }
}

/// The lines of a message, each indented by `indent`.
pub(crate) fn body(line: &MessageLine, options: MessageOptions, indent: &str) -> Vec<String> {
    let width = options.width.map(|width| width.saturating_sub(indent.len()));
    let options = MessageOptions { width, ..options };
    let mut lines = Vec::new();
    let mut texts = line.shown_texts();
    // Thinking comes before its result.
    texts.sort_by_key(|text| text.content_type != ContentType::AssistantThinking);
    let mut room = Room { left: options.max_chars.unwrap_or(usize::MAX), shown: 0, left_out: 0 };
    for text in texts {
        match text.content_type {
            ContentType::AssistantThinking if options.thinking => {
                lines.extend(room.take(&text.text).map(|text| thinking(text, options)).unwrap_or_default());
            }
            // It is shortened, so it does not count.
            ContentType::ToolOutput if options.tools && !options.full => {
                lines.extend(tool_output(&text.text, options));
            }
            ContentType::ToolOutput if options.tools => {
                lines
                    .extend(room.take(&text.text).map(|text| tool_output(text, options)).unwrap_or_default());
            }
            // Calls are shown below.
            ContentType::AssistantThinking | ContentType::ToolOutput | ContentType::ToolCall => {}
            ContentType::UserQuery | ContentType::AssistantResponse | ContentType::System => {
                let shown = room.take(&text.text).map(|text| markdown(text, options.width, options.paint));
                lines.extend(shown.unwrap_or_default());
            }
        }
    }
    if options.tools {
        for call in &line.called_tools() {
            if options.full {
                lines.extend(full_call(call, &mut room, options.paint));
            } else {
                let call = tool_call::short(call, options.width, options.paint);
                lines.extend(room.take(&call).map(str::to_owned));
            }
        }
    }
    lines.extend(room.cut().map(|cut| options.paint.aside(&cut)));
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let indented = |line: &String| match line.as_str() {
        "" => String::new(),
        line if options.full => format!("{indent}{line}"),
        line => format!("{indent}{line}").trim_end().to_owned(),
    };
    lines.iter().map(indented).collect()
}

/// The lines of a call in full, as far as there is room.
fn full_call(call: &ToolCall<'_>, room: &mut Room, paint: Paint) -> Vec<String> {
    let lines = tool_call::full(call);
    let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    let Some(taken) = room.take(&texts.join("\n")).map(str::to_owned) else { return Vec::new() };
    let painted = |(text, line): (&str, &CallLine)| match text {
        "" => String::new(),
        text => (line.style)(paint, text),
    };
    taken.split('\n').zip(&lines).map(painted).collect()
}

/// How much more of a message may be shown.
struct Room {
    left: usize,
    shown: usize,
    left_out: usize,
}

impl Room {
    /// The part of `text` that there is room for, if any.
    fn take<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let (shown, left_out) = beginning(text, self.left);
        let taken = shown.chars().count();
        self.left -= taken;
        self.shown += taken;
        self.left_out += left_out;
        (!shown.is_empty()).then_some(shown)
    }

    /// A note about what was left out.
    fn cut(&self) -> Option<String> {
        let of = grouped((self.shown + self.left_out) as u64);
        let left_out = counted(self.left_out as u64, "more character");
        (self.left_out > 0).then(|| format!("… {left_out} of {of} (--max-chars 0)"))
    }
}

/// The speaker: the role, with the name of the tool for tool output, and the role as the line writes it if that is
/// another name.
pub(crate) fn speaker(line: &MessageLine) -> String {
    let speaker = known_speaker(line);
    match line.role().written(line.fields()) {
        Some(written) => format!("{speaker} ({})", one_line(written)),
        None => speaker,
    }
}

fn known_speaker(line: &MessageLine) -> String {
    let role = line.role();
    let only_tool_output = || {
        let texts = line.texts();
        !texts.is_empty() && texts.iter().all(|text| text.content_type == ContentType::ToolOutput)
    };
    match role {
        Role::Tool => {
            let name = ["name", "tool_name"].iter().find_map(|field| line.fields().get(*field)?.as_str());
            name.map_or_else(|| role.to_string(), |name| format!("{role} {}", one_line(name)))
        }
        // Some providers expect tool results in user messages.
        Role::User if only_tool_output() => format!("{role} (tool results)"),
        _ => role.to_string(),
    }
}

fn thinking(text: &str, options: MessageOptions) -> Vec<String> {
    let text = printable(text);
    let lines = text.trim_matches('\n').lines().flat_map(|line| wrapped(line, options.width));
    let lines = std::iter::once("thinking:".to_owned()).chain(lines).map(|line| options.paint.aside(&line));
    // Thinking must be distinguishable from the answer, even without colours.
    lines.chain([String::new()]).collect()
}

/// A tool's output. If it is not shown completely, its end is cut off, and its lines are cut to the width.
fn tool_output(text: &str, options: MessageOptions) -> Vec<String> {
    let text = text.trim_matches(['\n', '\r']);
    if options.full {
        return printable(text).lines().map(str::to_owned).collect();
    }
    let (shown, rest) = shortened(text);
    let fit = |line: &str| options.width.map_or_else(|| line.to_owned(), |width| fitted(line, width));
    let mut lines: Vec<String> = printable(shown).lines().map(fit).collect();
    lines.extend(rest.map(|rest| options.paint.aside(&rest)));
    lines
}

/// The beginning of a tool's output, and a note about what was cut off.
fn shortened(text: &str) -> (&str, Option<String>) {
    // The note takes one line, so cutting off a single line saves nothing.
    let is_long = text.lines().nth(TOOL_LINES + 1).is_some();
    let end_of_lines = text.match_indices('\n').nth(TOOL_LINES - 1).map(|(at, _)| at).filter(|_| is_long);
    let end_of_chars = text.char_indices().nth(TOOL_CHARS).map(|(at, _)| at);
    let Some(end) = end_of_lines.into_iter().chain(end_of_chars).min() else { return (text, None) };
    let (shown, rest) = text.split_at(end);
    let rest = rest.trim();
    let left = match rest.lines().count() as u64 {
        0 => return (shown, None),
        1 => counted(rest.chars().count() as u64, "more character"),
        lines => counted(lines, "more line"),
    };
    (shown, Some(format!("… {left} (--full)")))
}

#[cfg(test)]
mod tests {
    use amplifier_session_storage::model::{RawJson, SessionSource};
    use serde_json::Value;

    use super::*;

    fn read(line: &Value, role: Role) -> MessageLine {
        MessageLine::stored(&RawJson::new(line.to_string()), role, SessionSource::default())
    }

    fn options(full: bool) -> MessageOptions {
        MessageOptions { full, ..MessageOptions::whole(Paint::new(false)) }
    }

    fn shown(line: Value, role: Role, options: MessageOptions) -> Vec<String> {
        body(&read(&line, role), options, "  ")
    }

    fn answer() -> Value {
        serde_json::json!({"content": [
            {"type": "text", "text": "I options.\n\nThen I say."},
            {"type": "thinking", "thinking": "Hm."},
            {"type": "tool_call", "id": "1", "name": "bash", "input": {"command": "ls\nx"}}],
            "tool_calls": [{"id": "1", "tool": "bash", "arguments": {"command": "ls\nx"}}]})
    }

    #[test]
    fn thinking_comes_first_and_calls_come_last_and_once() {
        let expected = ["  thinking:", "  Hm.", "", "  I options.", "", "  Then I say.", "  → bash ls x"];
        assert_eq!(shown(answer(), Role::Assistant, options(false)), expected);
    }

    #[test]
    fn thinking_and_tools_can_be_left_out() {
        let options = MessageOptions { thinking: false, tools: false, ..options(false) };
        assert_eq!(shown(answer(), Role::Assistant, options), ["  I options.", "", "  Then I say."]);
        assert!(shown(serde_json::json!({"content": "x"}), Role::Tool, options).is_empty());
    }

    #[test]
    fn text_is_wrapped_within_the_indentation() {
        let options = MessageOptions { width: Some(12), ..options(false) };
        assert_eq!(
            shown(serde_json::json!({"content": "one two three"}), Role::User, options),
            ["  one two", "  three"]
        );
        assert_eq!(
            shown(serde_json::json!({"content": "one two three"}), Role::Tool, options),
            ["  one two t…"]
        );
    }

    #[test]
    fn files_are_shown_as_notes() {
        let data = format!("iVBORw0KGgo{}", "aB3d".repeat(1_000));
        let source = serde_json::json!({"type": "base64", "media_type": "image/png", "data": data});
        let image = serde_json::json!({"content": [{"type": "image", "source": source}]});
        assert_eq!(shown(image, Role::User, options(false)), ["  [image/png, 3.0 KB]"]);
        assert_eq!(
            shown(serde_json::json!({"content": data}), Role::Tool, options(true)),
            ["  [image/png, 3.0 KB]"]
        );
        let call =
            serde_json::json!({"tool_calls": [{"id": "1", "tool": "save", "arguments": {"content": data}}]});
        assert_eq!(
            shown(call, Role::Assistant, options(true)),
            ["  → save", "    content: [image/png, 3.0 KB]"]
        );
    }

    #[test]
    fn speakers_name_tools() {
        let name = |line: Value, role| speaker(&read(&line, role));
        let result = serde_json::json!({"content": [{"type": "tool_result", "content": "x"}]});
        assert_eq!(name(serde_json::json!({"name": "bash", "content": "x"}), Role::Tool), "tool bash");
        assert_eq!(name(serde_json::json!({"content": "x"}), Role::Tool), "tool");
        assert_eq!(name(result, Role::User), "user (tool results)");
        assert_eq!(name(serde_json::json!({"content": "x"}), Role::User), "user");
        assert_eq!(name(serde_json::json!({}), Role::User), "user");
        assert_eq!(
            name(serde_json::json!({"role": "function", "name": "bash"}), Role::Tool),
            "tool bash (function)"
        );
        assert_eq!(name(serde_json::json!({"role": "User", "content": "x"}), Role::User), "user (User)");
        assert_eq!(name(serde_json::json!({"role": "user", "content": "x"}), Role::User), "user");
    }

    #[test]
    fn a_long_message_is_cut_with_a_note() {
        let options = MessageOptions { max_chars: Some(10), ..options(true) };
        let line = serde_json::json!({"content": [
            {"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "1234567890"}]});
        let expected =
            ["  thinking:", "  Hm.", "", "  1234567", "  … 3 more characters of 13 (--max-chars 0)"];
        assert_eq!(shown(line, Role::Assistant, options), expected);
        let line = serde_json::json!({"content": "0123456789"});
        assert_eq!(shown(line, Role::User, options), ["  0123456789"]);
    }

    #[test]
    fn long_tool_output_is_cut_with_a_note() {
        let output = |lines: u32| {
            let lines: Vec<String> = (0..lines).map(|n| format!("line {n}")).collect();
            serde_json::json!({"content": lines.join("\n")})
        };
        let cut = shown(output(30), Role::Tool, options(false));
        assert_eq!((cut.len(), cut[6].as_str()), (7, "  … 24 more lines (--full)"));
        assert_eq!(shown(output(30), Role::Tool, options(true)).len(), 30);
        assert_eq!(shown(output(7), Role::Tool, options(false)).len(), 7);
        let wide = shown(serde_json::json!({"content": "é".repeat(5_000)}), Role::Tool, options(false));
        assert_eq!(
            (wide[0].chars().count(), wide[1].as_str()),
            (1_202, "  … 3,800 more characters (--full)")
        );
        let short = shown(serde_json::json!({"content": "a\nb\n"}), Role::Tool, options(false));
        assert_eq!(short, ["  a", "  b"]);
    }
}
