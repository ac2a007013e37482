//! Tool calls: as one line each, or in full.

use amplifier_session_api::tool_calls::{CallSummary, argument_text};
use amplifier_session_storage::{
    KnownPart,
    content::{ToolArgument, ToolCall, without_base64},
};
use serde_json::Value;

use super::{
    table::Style,
    text::{one_line, printable},
};
use crate::paint::Paint;

/// Longer JSON is shown on several lines.
const LONGEST_JSON: usize = 80;

/// The indentation of what belongs to the line above.
const INDENT: &str = "  ";

/// A call as one line: its name and its most informative argument.
pub(crate) fn short(call: &ToolCall<'_>, width: Option<usize>, paint: Paint) -> String {
    let CallSummary { name, input } = CallSummary::new(call, width);
    let name = paint.tool(&format!("→ {name}"));
    if input.is_empty() { name } else { format!("{name} {}", paint.aside(&input)) }
}

/// A line of a call, not yet painted.
#[derive(Debug)]
pub(crate) struct CallLine {
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// A call in full: its name, with the path if it changes a file, and its other arguments below, with their line breaks.
pub(crate) fn full(call: &ToolCall<'_>) -> Vec<CallLine> {
    let mut lines = FullCall::default();
    lines.push(format!("→ {}", one_line(call.name)), Paint::tool);
    let mut is_after_edit = false;
    for part in call.arguments_by_kind() {
        let is_edit = matches!(part, ToolArgument::Edit { .. });
        if is_after_edit && is_edit {
            lines.push(String::new(), Paint::plain);
        }
        is_after_edit = is_edit;
        lines.add(&part);
    }
    lines.0
}

#[derive(Debug, Default)]
struct FullCall(Vec<CallLine>);

impl FullCall {
    fn push(&mut self, text: String, style: Style) {
        self.0.push(CallLine { text, style });
    }

    fn add(&mut self, part: &ToolArgument<'_>) {
        match part {
            ToolArgument::Path(path) => {
                if let Some(name) = self.0.last_mut() {
                    name.text = format!("{} {}", name.text, shown(path).replace('\n', " "));
                }
            }
            ToolArgument::Command(text) => self.add_text(text, INDENT, Paint::plain),
            ToolArgument::Content(text) => self.add_text(text, INDENT, Paint::plain),
            ToolArgument::Unnamed(value) => self.add_text(&argument_text(value), INDENT, Paint::aside),
            ToolArgument::Named(name, value) => {
                self.add_value(&format!("{INDENT}{}:", one_line(name)), value, 2)
            }
            ToolArgument::Patch(patch) => {
                for line in shown(patch).lines() {
                    let style = match line.chars().next() {
                        Some('-') => Paint::removed,
                        Some('+') => Paint::added,
                        _ => Paint::plain,
                    };
                    self.push(format!("{INDENT}{line}"), style);
                }
            }
            ToolArgument::Edit { removed, added } => self.add_edit(&shown(removed), &shown(added)),
        }
    }

    fn add_text(&mut self, text: &str, indent: &str, style: Style) {
        let indented = |line: &str| if line.is_empty() { String::new() } else { format!("{indent}{line}") };
        shown(text).lines().for_each(|line| self.push(indented(line), style));
    }

    /// Adds `name: value`, or the lines of the value below the name, indented `depth` times. Long lists and objects have a
    /// line for each value in them.
    fn add_value(&mut self, name: &str, value: &Value, depth: usize) {
        let indent = INDENT.repeat(depth);
        match value {
            Value::Object(fields) if is_long(value) => {
                self.push(name.to_owned(), Paint::aside);
                for (name, value) in fields {
                    self.add_value(&format!("{indent}{}:", one_line(name)), value, depth + 1);
                }
            }
            Value::Array(items) if is_long(value) => {
                self.push(name.to_owned(), Paint::aside);
                items.iter().for_each(|item| self.add_item(item, depth));
            }
            value => match argument_text(value) {
                text if text.is_empty() || text.contains('\n') => {
                    self.push(name.to_owned(), Paint::aside);
                    self.add_text(&text, &indent, Paint::aside);
                }
                text => self.push(format!("{name} {}", shown(&text)), Paint::aside),
            },
        }
    }

    /// Adds a value of a list after a hyphen.
    fn add_item(&mut self, item: &Value, depth: usize) {
        let indent = INDENT.repeat(depth);
        let Value::Object(fields) = item else {
            return self.add_value(&format!("{indent}-"), item, depth + 1);
        };
        for (at, (name, value)) in fields.iter().enumerate() {
            let mark = if at == 0 { "- " } else { INDENT };
            self.add_value(&format!("{indent}{mark}{}:", one_line(name)), value, depth + 2);
        }
    }

    /// Adds the lines that are removed and added. Lines that stay, before and after these, are not marked.
    fn add_edit(&mut self, removed: &str, added: &str) {
        let (old, new): (Vec<&str>, Vec<&str>) = (removed.lines().collect(), added.lines().collect());
        let shorter = old.len().min(new.len());
        // If only the ends of lines differ, all lines are marked.
        let shorter = if old == new { 0 } else { shorter };
        let before = old.iter().zip(&new).take(shorter).take_while(|(old, new)| old == new).count();
        let after = old.iter().rev().zip(new.iter().rev()).take(shorter - before);
        let after = after.take_while(|(old, new)| old == new).count();
        let (old_end, new_end) = (old.len() - after, new.len() - after);
        let lines = [
            (' ', Paint::plain as Style, old.part(..before)),
            ('-', Paint::removed, old.part(before..old_end)),
            ('+', Paint::added, new.part(before..new_end)),
            (' ', Paint::plain, old.part(old_end..)),
        ];
        for (mark, style, lines) in lines {
            for line in lines {
                let text = if line.is_empty() { mark.to_string() } else { format!("{mark} {line}") };
                let text = if text == " " { String::new() } else { format!("{INDENT}{text}") };
                self.push(text, style);
            }
        }
    }
}

/// The text as it is shown: with its white space, but without files in base64 and without control characters.
fn shown(text: &str) -> String {
    printable(&without_base64(text))
}

/// Whether a list or an object is too long for one line, or has text of several lines.
fn is_long(value: &Value) -> bool {
    let json = value.to_string();
    json.contains("\\n") || json.chars().count() > LONGEST_JSON
}

#[cfg(test)]
mod tests {
    use amplifier_session_storage::{
        content::MessageLine,
        model::{RawJson, Role, SessionSource},
    };
    use serde_json::Value;

    use super::*;

    fn lines(tool: &str, input: Value) -> Vec<String> {
        let message = serde_json::json!({"tool_calls": [{"name": tool, "input": input}]});
        let raw = RawJson::new(message.to_string());
        let line = MessageLine::stored(&raw, Role::Assistant, SessionSource::default());
        full(&line.called_tools()[0]).into_iter().map(|line| line.text).collect()
    }

    fn line(call: Value) -> String {
        let message = serde_json::json!({"tool_calls": [call]});
        let raw = RawJson::new(message.to_string());
        let line = MessageLine::stored(&raw, Role::Assistant, SessionSource::default());
        let calls = line.called_tools();
        short(&calls[0], Some(60), Paint::new(false))
    }

    #[test]
    fn the_most_informative_argument_is_shown() {
        let call = |input: Value| serde_json::json!({"name": "x", "input": input});
        let shown = |input: Value| line(call(input));
        assert_eq!(shown(serde_json::json!({"timeout": 5, "command": "ls\n-l"})), "→ x ls -l");
        assert_eq!(shown(serde_json::json!({"path": "app", "pattern": "a|b"})), "→ x a|b in app");
        let delegated = serde_json::json!({"instruction": "Look.", "agent": "explorer"});
        assert_eq!(shown(delegated), "→ x explorer: Look.");
        assert_eq!(shown(serde_json::json!({"thing": "one"})), "→ x one");
        assert_eq!(shown(serde_json::json!({"a": 1, "b": "two"})), r#"→ x {"a":1,"b":"two"}"#);
        assert_eq!(shown(serde_json::json!({})), "→ x");
        assert_eq!(shown("{\"command\": \"ls\"}".into()), "→ x ls");
        assert_eq!(shown("no json".into()), "→ x no json");
        assert_eq!(shown(serde_json::json!({"command": "z".repeat(99)})).chars().count(), 60);
    }

    #[test]
    fn a_command_keeps_its_lines_and_its_white_space() {
        let input = serde_json::json!({"description": "Copy", "command": "cat <<'END'\n\ta   b \n\nEND", "timeout": 5});
        assert_eq!(
            lines("bash", input),
            ["→ bash", "  cat <<'END'", "  \ta   b ", "", "  END", "  description: Copy", "  timeout: 5"]
        );
        assert_eq!(lines("list", Value::Null), ["→ list"]);
    }

    #[test]
    fn an_edit_is_shown_as_removed_and_added_lines() {
        let edit = |old: &str, new: &str| {
            let mut lines = lines("edit", serde_json::json!({"path": "f", "old_str": old, "new_str": new}));
            assert_eq!(lines.remove(0), "→ edit f");
            lines
        };
        assert_eq!(edit("a\n\nb\nc", "a\n\nd\ne\nc"), ["    a", "", "  - b", "  + d", "  + e", "    c"]);
        assert_eq!(edit("", "a\n\n"), ["  + a", "  +"]);
        assert_eq!(edit("a\na", "a"), ["    a", "  - a"]);
        assert_eq!(edit("a\r\n", "a\n"), ["  - a", "  + a"]);
        assert!(edit("", "").is_empty());
        let edits =
            serde_json::json!({"edits": [{"old_str": "a", "new_str": "b"}, {"old_str": "c", "new_str": ""}]});
        assert_eq!(lines("edit", edits), ["→ edit", "  - a", "  + b", "", "  - c"]);
        let patch = serde_json::json!({"patch": "@@\n-a\n+b\n c\n"});
        assert_eq!(lines("x", patch), ["→ x", "  @@", "  -a", "  +b", "   c"]);
    }

    #[test]
    fn other_arguments_are_named() {
        let input = serde_json::json!({"n": 1, "all": {"a": [1, "x  y"]}, "of": null, "prompt": "Look.\n\n  Then say."});
        assert_eq!(
            lines("x", input),
            [
                "→ x",
                "  n: 1",
                r#"  all: {"a":[1,"x  y"]}"#,
                "  of: null",
                "  prompt:",
                "    Look.",
                "",
                "      Then say."
            ]
        );
        let todos = serde_json::json!({"todos": [
            {"content": "Weigh the flour of all the loaves", "status": "done", "of": {"a": [1]}},
            {"content": "Fold the dough\nonce an hour", "status": "pending"}]});
        assert_eq!(
            lines("todo", todos),
            [
                "→ todo",
                "  todos:",
                "    - content: Weigh the flour of all the loaves",
                "      status: done",
                r#"      of: {"a":[1]}"#,
                "    - content:",
                "        Fold the dough",
                "        once an hour",
                "      status: pending"
            ]
        );
        let nested = serde_json::json!({"q": {"a": ["x\ny", 2], "b": []}});
        assert_eq!(
            lines("ask", nested),
            ["→ ask", "  q:", "    a:", "      -", "        x", "        y", "      - 2", "    b: []"]
        );
        let written = serde_json::json!({"file_path": "f", "content": "a\n\u{1b}[2Jb\n"});
        assert_eq!(lines("write", written), ["→ write f", "  a", "  ␛[2Jb"]);
        assert_eq!(lines("x", "a\n  b".into()), ["→ x", "  a", "    b"]);
    }
}
