//! Tool calls on one line.

use amplifier_session_core::content::{ToolCall, without_base64};
use serde_json::Value;

use crate::text::{fitted, one_line};

/// The width at which the argument of a call is cut if no width is given.
const WIDEST: usize = 160;

/// A tool call on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSummary {
    /// The name of the tool.
    pub name: String,
    /// The most informative argument, or all of them; empty if there are none. Without files in base64.
    pub input: String,
}

impl CallSummary {
    /// A call that fits with three further columns into `width` columns, unless that is too narrow to say anything.
    #[must_use]
    pub fn new(call: &ToolCall<'_>, width: Option<usize>) -> Self {
        let name = one_line(call.name);
        let input = one_line(&without_base64(&main_argument(call).unwrap_or_default()));
        let left = width.unwrap_or(WIDEST).saturating_sub(name.chars().count() + 3).max(20);
        Self { name, input: fitted(&input, left) }
    }
}

/// The most informative argument, or all of them.
fn main_argument(call: &ToolCall<'_>) -> Option<String> {
    let arguments = match &*call.arguments {
        Value::Object(arguments) => arguments,
        Value::Null => return None,
        other => return Some(argument_text(other)),
    };
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

/// The text of an argument: a string, or JSON.
#[must_use]
pub fn argument_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
