//! Calls of tools, one line each.

use serde_json::{Map, Value};

use super::text::{fitted, one_line};
use crate::paint::Paint;

/// The argument of a call is cut behind this many columns where no width is given.
const WIDEST: usize = 160;

/// Arguments that tell most of what a call does, the most telling first.
const TELLING: [&str; 16] = [
    "command",
    "cmd",
    "script",
    "code",
    "instruction",
    "prompt",
    "task",
    "pattern",
    "query",
    "url",
    "file_path",
    "path",
    "file",
    "question",
    "name",
    "description",
];

/// A call of a tool.
#[derive(Debug)]
pub(crate) struct ToolCall<'a> {
    name: &'a str,
    input: Option<&'a Value>,
}

impl ToolCall<'_> {
    /// The call as one line: its name and its most telling argument, or with `full` all of them as they are.
    pub(crate) fn shown(&self, full: bool, width: Option<usize>, paint: Paint) -> String {
        let name = one_line(self.name);
        let input = if full { self.input.map(whole) } else { self.input.and_then(telling) };
        let input = one_line(&input.unwrap_or_default());
        let left = width.unwrap_or(WIDEST).saturating_sub(name.chars().count() + 3).max(20);
        let input = if full { input } else { fitted(&input, left) };
        let name = paint.tool(&format!("→ {name}"));
        if input.is_empty() { name } else { format!("{name} {}", paint.aside(&input)) }
    }
}

/// The tool calls of a line. Amplifier writes each twice: as a block of the content and in `tool_calls`.
pub(crate) fn tool_calls(line: &Map<String, Value>) -> Vec<ToolCall<'_>> {
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

fn whole(input: &Value) -> String {
    input.as_str().map_or_else(|| input.to_string(), str::to_owned)
}

/// The argument that tells most, else all of them.
fn telling(input: &Value) -> Option<String> {
    // Some providers write the arguments as text that holds JSON.
    let parsed = input.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let input = parsed.as_ref().unwrap_or(input);
    let Some(arguments) = input.as_object() else { return Some(whole(input)) };
    if arguments.is_empty() {
        return None;
    }
    let text =
        |name: &str| arguments.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let named = TELLING.iter().find_map(|name| Some((*name, text(name)?)));
    let only = || arguments.keys().filter(|_| arguments.len() == 1).find_map(|name| Some(("", text(name)?)));
    let Some((name, told)) = named.or_else(only) else { return Some(input.to_string()) };
    Some(match name {
        "pattern" => text("path").map_or_else(|| told.to_owned(), |path| format!("{told} in {path}")),
        "instruction" | "prompt" | "task" => {
            text("agent").map_or_else(|| told.to_owned(), |agent| format!("{agent}: {told}"))
        }
        _ => told.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(call: Value, full: bool) -> String {
        tool_call(&call).unwrap().shown(full, Some(60), Paint::new(false))
    }

    #[test]
    fn the_most_telling_argument_stands_for_the_call() {
        let call = |input: Value| serde_json::json!({"name": "x", "input": input});
        let told = |input: Value| shown(call(input), false);
        assert_eq!(told(serde_json::json!({"timeout": 5, "command": "ls\n-l"})), "→ x ls -l");
        assert_eq!(told(serde_json::json!({"path": "app", "pattern": "a|b"})), "→ x a|b in app");
        let delegated = serde_json::json!({"instruction": "Look.", "agent": "explorer"});
        assert_eq!(told(delegated), "→ x explorer: Look.");
        assert_eq!(told(serde_json::json!({"thing": "one"})), "→ x one");
        assert_eq!(told(serde_json::json!({"a": 1, "b": "two"})), r#"→ x {"a":1,"b":"two"}"#);
        assert_eq!(told(serde_json::json!({})), "→ x");
        assert_eq!(told("{\"command\": \"ls\"}".into()), "→ x ls");
        assert_eq!(told("no json".into()), "→ x no json");
        assert_eq!(told(serde_json::json!({"command": "z".repeat(99)})).chars().count(), 60);
    }

    #[test]
    fn a_call_is_shown_whole_where_asked() {
        let call = serde_json::json!({"name": "x", "input": {"command": "ls", "timeout": 5}});
        assert_eq!(shown(call, true), r#"→ x {"command":"ls","timeout":5}"#);
    }

    #[test]
    fn calls_are_found_in_each_of_their_shapes() {
        let line = serde_json::json!({"content": "x", "tool_calls": [
            {"tool": "a", "arguments": {"b": 1}}, {"function": {"name": "c", "arguments": "{}"}}, {"name": "e"}, 7]});
        let names: Vec<&str> = tool_calls(line.as_object().unwrap()).iter().map(|call| call.name).collect();
        assert_eq!(names, ["a", "c", "e"]);
    }
}
