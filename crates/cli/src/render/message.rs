//! What a transcript line says, as text.

use amplifier_session_storage::{
    content::extract,
    model::{ContentType, Role},
};
use serde_json::{Map, Value};

use super::text::{counted, one_line, printable};
use crate::paint::Paint;

/// Tool output is cut behind this many lines.
const TOOL_LINES: usize = 12;
/// Tool output is cut behind this many characters.
const TOOL_CHARS: usize = 1_200;
/// The input of a tool call is cut behind this many characters.
const INPUT_CHARS: usize = 160;

/// The lines of a message, each behind `indent`. Tool output is cut unless `full`.
pub(crate) fn body(
    line: &Map<String, Value>,
    role: Role,
    full: bool,
    indent: &str,
    paint: Paint,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut texts = extract(line, role);
    // Reasoning comes before what it led to.
    texts.sort_by_key(|text| text.content_type != ContentType::AssistantThinking);
    for text in texts {
        let thinking = text.content_type == ContentType::AssistantThinking;
        if thinking {
            lines.push(paint.aside("thinking:"));
        }
        let (shown, rest) = match text.content_type {
            ContentType::ToolOutput if !full => shortened(&text.text),
            _ => (printable(&text.text), None),
        };
        lines.extend(shown.lines().map(|line| if thinking { paint.aside(line) } else { line.to_owned() }));
        lines.extend(rest.map(|rest| paint.aside(&rest)));
    }
    lines.extend(tool_calls(line).iter().map(|call| call.shown(full)).map(|call| paint.aside(&call)));
    lines.iter().map(|line| format!("{indent}{line}").trim_end().to_owned()).collect()
}

/// Who speaks: the role, with the tool where one answers.
pub(crate) fn speaker(line: &Map<String, Value>, role: Role) -> String {
    let only_tool_output = || {
        let texts = extract(line, role);
        !texts.is_empty() && texts.iter().all(|text| text.content_type == ContentType::ToolOutput)
    };
    match role {
        Role::Tool => {
            let name = ["name", "tool_name"].iter().find_map(|field| line.get(*field)?.as_str());
            name.map_or_else(|| role.to_string(), |name| format!("{role} {}", one_line(name)))
        }
        // Some providers take tool results in the user's name.
        Role::User if only_tool_output() => format!("{role} (tool results)"),
        _ => role.to_string(),
    }
}

/// The beginning of a tool's output, and how much was cut off.
fn shortened(text: &str) -> (String, Option<String>) {
    let end_of_lines = text.match_indices('\n').nth(TOOL_LINES - 1).map(|(at, _)| at);
    let end_of_chars = text.char_indices().nth(TOOL_CHARS).map(|(at, _)| at);
    let Some(end) = end_of_lines.into_iter().chain(end_of_chars).min() else {
        return (printable(text), None);
    };
    let (shown, rest) = text.split_at(end);
    if rest.trim().is_empty() {
        return (printable(shown), None);
    }
    let lines = rest.trim().lines().count() as u64;
    (printable(shown), Some(format!("… {} shown with --full", counted(lines, "more line"))))
}

/// A call of a tool.
struct ToolCall<'a> {
    name: &'a str,
    input: Option<&'a Value>,
}

impl ToolCall<'_> {
    fn shown(&self, full: bool) -> String {
        let input = match self.input {
            Some(Value::String(text)) => one_line(text),
            Some(value) => one_line(&value.to_string()),
            None => String::new(),
        };
        let cut = input.char_indices().nth(INPUT_CHARS).filter(|_| !full);
        let input = cut.map_or(input.clone(), |(at, _)| format!("{}…", input.get(..at).unwrap_or_default()));
        format!("→ {} {input}", one_line(self.name))
    }
}

/// The tool calls of a line. Amplifier writes each twice: as a block of the content and in `tool_calls`.
fn tool_calls(line: &Map<String, Value>) -> Vec<ToolCall<'_>> {
    let list = |name: &str| line.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_call = |block: &&Value| {
        matches!(block.get("type").and_then(Value::as_str), Some("tool_call" | "tool_use" | "function_call"))
    };
    let blocks: Vec<ToolCall<'_>> = list("content").iter().filter(is_call).filter_map(tool_call).collect();
    if blocks.is_empty() { list("tool_calls").iter().filter_map(tool_call).collect() } else { blocks }
}

fn tool_call(call: &Value) -> Option<ToolCall<'_>> {
    let within = |name: &str| call.get(name).or_else(|| call.get("function")?.get(name));
    let name = within("name").or_else(|| call.get("tool"))?.as_str()?;
    Some(ToolCall { name, input: within("input").or_else(|| within("arguments")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: Value, role: Role, full: bool) -> Vec<String> {
        body(line.as_object().unwrap(), role, full, "  ", Paint::new(false))
    }

    #[test]
    fn thinking_comes_first_and_calls_come_last_and_once() {
        let line = serde_json::json!({"content": [
            {"type": "text", "text": "I look.\n\nThen I say."},
            {"type": "thinking", "thinking": "Hm."},
            {"type": "tool_call", "id": "1", "name": "bash", "input": {"command": "ls\nx"}}],
            "tool_calls": [{"id": "1", "tool": "bash", "arguments": {"command": "ls\nx"}}]});
        let expected =
            ["  thinking:", "  Hm.", "  I look.", "", "  Then I say.", r#"  → bash {"command":"ls\nx"}"#];
        assert_eq!(shown(line, Role::Assistant, false), expected);
    }

    #[test]
    fn calls_beside_a_text_are_shown_in_each_of_their_shapes() {
        let line = serde_json::json!({"content": "x", "tool_calls": [
            {"tool": "a", "arguments": {"b": 1}}, {"function": {"name": "c", "arguments": "{\"d\": 2}"}}, {"name": "e"}, 7]});
        assert_eq!(
            shown(line, Role::Assistant, false),
            ["  x", "  → a {\"b\":1}", "  → c {\"d\": 2}", "  → e"]
        );
    }

    #[test]
    fn tools_are_named_whoever_speaks_for_them() {
        let name = |line: Value, role| speaker(line.as_object().unwrap(), role);
        let result = serde_json::json!({"content": [{"type": "tool_result", "content": "x"}]});
        assert_eq!(name(serde_json::json!({"name": "bash", "content": "x"}), Role::Tool), "tool bash");
        assert_eq!(name(serde_json::json!({"content": "x"}), Role::Tool), "tool");
        assert_eq!(name(result, Role::User), "user (tool results)");
        assert_eq!(name(serde_json::json!({"content": "x"}), Role::User), "user");
        assert_eq!(name(serde_json::json!({}), Role::User), "user");
    }

    #[test]
    fn long_tool_output_is_cut_and_says_so() {
        let lines: Vec<String> = (0..30).map(|n| format!("line {n}")).collect();
        let line = serde_json::json!({"content": lines.join("\n")});
        let cut = shown(line.clone(), Role::Tool, false);
        assert_eq!((cut.len(), cut[12].as_str()), (13, "  … 18 more lines shown with --full"));
        assert_eq!(shown(line, Role::Tool, true).len(), 30);
        let wide = shown(serde_json::json!({"content": "é".repeat(5_000)}), Role::Tool, false);
        assert_eq!((wide[0].chars().count(), wide[1].as_str()), (1_202, "  … 1 more line shown with --full"));
        let short = shown(serde_json::json!({"content": "a\nb\n"}), Role::Tool, false);
        assert_eq!(short, ["  a", "  b"]);
    }
}
