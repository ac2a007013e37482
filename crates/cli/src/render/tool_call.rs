//! Tool calls, one line each.

use amplifier_session_storage::content::{ToolCall, without_base64};
use serde_json::Value;

use super::text::{fitted, one_line};
use crate::paint::Paint;

/// The width at which the argument of a call is cut if no width is given.
const WIDEST: usize = 160;

/// A call as one line: its name and its most informative argument, or with `full` all arguments.
pub(crate) fn shown(call: &ToolCall<'_>, full: bool, width: Option<usize>, paint: Paint) -> String {
    let name = one_line(call.name);
    let input = if full { whole(&call.arguments) } else { main_argument(call).unwrap_or_default() };
    let input = one_line(&without_base64(&input));
    let left = width.unwrap_or(WIDEST).saturating_sub(name.chars().count() + 3).max(20);
    let input = if full { input } else { fitted(&input, left) };
    let name = paint.tool(&format!("→ {name}"));
    if input.is_empty() { name } else { format!("{name} {}", paint.aside(&input)) }
}

fn whole(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The most informative argument, or all of them.
fn main_argument(call: &ToolCall<'_>) -> Option<String> {
    let Some(arguments) = call.arguments.as_object() else { return Some(whole(&call.arguments)) };
    if arguments.is_empty() {
        return None;
    }
    let text =
        |name: &str| arguments.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let only = || arguments.keys().filter(|_| arguments.len() == 1).find_map(|name| Some(("", text(name)?)));
    let Some((name, value)) = call.main_argument().or_else(only) else {
        return Some(call.arguments.to_string());
    };
    Some(match name {
        "pattern" => text("path").map_or_else(|| value.to_owned(), |path| format!("{value} in {path}")),
        "instruction" | "prompt" | "task" => {
            text("agent").map_or_else(|| value.to_owned(), |agent| format!("{agent}: {value}"))
        }
        _ => value.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use amplifier_session_storage::{
        content::MessageLine,
        model::{RawJson, Role, SessionSource},
    };

    use super::*;

    fn line(call: Value, full: bool) -> String {
        let message = serde_json::json!({"tool_calls": [call]});
        let raw = RawJson::new(message.to_string());
        let line = MessageLine::stored(&raw, Role::Assistant, SessionSource::default());
        let calls = line.called_tools();
        shown(&calls[0], full, Some(60), Paint::new(false))
    }

    #[test]
    fn the_most_informative_argument_is_shown() {
        let call = |input: Value| serde_json::json!({"name": "x", "input": input});
        let shown = |input: Value| line(call(input), false);
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
    fn a_call_can_be_shown_in_full() {
        let call = serde_json::json!({"name": "x", "input": {"command": "ls", "timeout": 5}});
        assert_eq!(line(call, true), r#"→ x {"command":"ls","timeout":5}"#);
    }
}
