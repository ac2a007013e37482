//! The tool calls of an assistant's message, and their texts.
//!
//! Calls are in blocks of the content (`tool_call`, `tool_use`, `function_call`, `server_tool_use`, and Gemini's
//! `functionCall`), in the message's `tool_calls`, or in `function_call`. Amplifier writes each call twice, as a block
//! and in `tool_calls`; it counts once.
//!
//! The text of a call is the name of the tool, a colon, and the strings in its arguments. The most informative argument
//! comes first: `bash: terraform destroy -auto-approve`. Each further one is on a line of its own after `·`, so that a
//! reader sees where an argument ends. Names of arguments, numbers, booleans and `null` are left out.

use std::{borrow::Cow, collections::HashSet};

use serde_json::{Map, Value};

use super::blocks::{block_type, blocks_of, elements, string_field};

/// Informative arguments, the most informative first.
const MAIN_ARGUMENTS: [&str; 16] = [
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

/// Separates the arguments in the text of a call.
const NEXT_ARGUMENT: &str = "\n· ";

/// The maximum depth to which arguments are searched.
const MAX_DEPTH: usize = 32;

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall<'a> {
    /// The tool.
    pub name: &'a str,
    /// The arguments: usually an object, even if the line has it as a JSON string.
    pub arguments: Cow<'a, Value>,
    pub(super) id: Option<&'a str>,
}

/// The tool calls in a transcript line, in order, without duplicates. The time is linear in their number.
pub(super) fn called_tools(line: &Map<String, Value>) -> Vec<ToolCall<'_>> {
    let blocks = blocks_of(line).into_iter().filter(|block| is_call(block));
    let mut calls: Vec<ToolCall<'_>> = blocks.filter_map(tool_call).collect();
    let field = |name: &str| line.get(name).map_or(&[][..], elements).iter();
    let beside = field("tool_calls").chain(field("function_call")).filter_map(tool_call);
    let new: Vec<ToolCall<'_>> = {
        let known = KnownCalls::new(&calls);
        beside.filter(|call| !known.contains(call)).collect()
    };
    calls.extend(new);
    calls
}

/// The calls in blocks. A call beside them is one of them if it has the same id or, if one of the two has no id, the
/// same tool and arguments.
struct KnownCalls<'a> {
    ids: HashSet<&'a str>,
    all: HashSet<(&'a str, &'a Value)>,
    without_id: HashSet<(&'a str, &'a Value)>,
}

impl<'a> KnownCalls<'a> {
    fn new(calls: &'a [ToolCall<'_>]) -> Self {
        let key = |call: &'a ToolCall<'_>| (call.name, &*call.arguments);
        Self {
            ids: calls.iter().filter_map(|call| call.id).collect(),
            all: calls.iter().map(key).collect(),
            without_id: calls.iter().filter(|call| call.id.is_none()).map(key).collect(),
        }
    }

    fn contains(&self, call: &ToolCall<'_>) -> bool {
        let key = (call.name, &*call.arguments);
        match call.id {
            Some(id) => self.ids.contains(id) || self.without_id.contains(&key),
            None => self.all.contains(&key),
        }
    }
}

fn is_call(block: &Value) -> bool {
    match block_type(block) {
        Some(name) => matches!(name, "tool_call" | "tool_use" | "function_call" | "server_tool_use"),
        None => nested_call(block).is_some(),
    }
}

/// The call in a part in Gemini's format.
fn nested_call(part: &Value) -> Option<&Value> {
    part.get("functionCall").or_else(|| part.get("function_call")).filter(|call| call.is_object())
}

fn tool_call(call: &Value) -> Option<ToolCall<'_>> {
    let call = nested_call(call).unwrap_or(call);
    let within = |name: &str| call.get(name).or_else(|| call.get("function")?.get(name));
    let name = within("name").or_else(|| call.get("tool")).or_else(|| call.get("tool_name"))?.as_str()?;
    let id = ["id", "tool_call_id", "call_id"].iter().find_map(|field| string_field(call, field));
    let given = ["input", "arguments", "args"].iter().find_map(|name| within(name)).unwrap_or(&Value::Null);
    Some(ToolCall { name, arguments: parsed(given), id })
}

/// Some providers write arguments as a JSON string.
fn parsed(given: &Value) -> Cow<'_, Value> {
    let object = |text: &str| serde_json::from_str(text).ok().filter(Value::is_object);
    match given.as_str().and_then(object) {
        Some(value) => Cow::Owned(value),
        None => Cow::Borrowed(given),
    }
}

impl ToolCall<'_> {
    /// The text of the call: the tool's name and the strings in its arguments.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.texts();
        if texts.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}: {}", self.name, texts.join(NEXT_ARGUMENT))
        }
    }

    /// The name of the tool by which its kind is known: in lower case, without `_` and `-`, and without the server of the
    /// Model Context Protocol before it.
    pub(super) fn plain_name(&self) -> String {
        Self::plain_name_of(self.name)
    }

    pub(super) fn plain_name_of(name: &str) -> String {
        name.rsplit("__").next().unwrap_or_default().replace(['_', '-'], "").to_lowercase()
    }

    pub(super) fn texts(&self) -> Vec<&str> {
        let mut texts = Vec::new();
        let main = self.main_argument();
        texts.extend(main.map(|(_, text)| text));
        match self.arguments.as_object() {
            Some(arguments) => arguments
                .iter()
                .filter(|(name, _)| main.is_none_or(|(known, _)| known != name.as_str()))
                .for_each(|(_, value)| collect(value, 0, &mut texts)),
            None => collect(&self.arguments, 0, &mut texts),
        }
        texts
    }

    /// The name and text of the most informative argument, if the call has a known one.
    #[must_use]
    pub fn main_argument(&self) -> Option<(&str, &str)> {
        let arguments = self.arguments.as_object()?;
        MAIN_ARGUMENTS.iter().find_map(|name| {
            let text = arguments.get(*name)?.as_str()?;
            (!text.trim().is_empty()).then_some((*name, text))
        })
    }
}

/// Adds the strings in a value, at any depth, in order.
fn collect<'a>(value: &'a Value, depth: usize, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) if !text.trim().is_empty() => texts.push(text),
        Value::Array(items) if depth < MAX_DEPTH => {
            items.iter().for_each(|item| collect(item, depth + 1, texts));
        }
        Value::Object(fields) if depth < MAX_DEPTH => {
            fields.values().for_each(|item| collect(item, depth + 1, texts));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(line: Value) -> Vec<String> {
        called_tools(line.as_object().unwrap()).iter().map(ToolCall::text).collect()
    }

    #[test]
    fn calls_are_found_in_all_formats() {
        let blocks = json!({"content": [
            {"type": "tool_call", "id": "1", "name": "bash", "input": {"command": "ls -l", "timeout": 5}},
            {"type": "tool_use", "id": "2", "name": "grep", "input": {"path": "app", "pattern": "a|b"}},
            {"type": "text", "text": "not a call", "name": "x"}]});
        assert_eq!(texts(blocks), ["bash: ls -l", "grep: a|b\n· app"]);
        let fields = json!({"content": "", "tool_calls": [
            {"id": "1", "tool": "bash", "arguments": {"command": "ls"}},
            {"id": "2", "type": "function", "function": {"name": "read", "arguments": "{\"path\": \"a\\nb\"}"}},
            {"name": "free", "arguments": "no json"}, {"name": "none"}, {"arguments": {}}, 7]});
        assert_eq!(texts(fields), ["bash: ls", "read: a\nb", "free: no json", "none"]);
        let older = json!({"content": null, "function_call": {"name": "f", "arguments": "{\"x\": \"y\"}"}});
        assert_eq!(texts(older), ["f: y"]);
        let parts =
            json!({"parts": [{"text": "I look."}, {"functionCall": {"name": "f", "args": {"x": "y"}}}]});
        assert_eq!(texts(parts), ["f: y"]);
    }

    #[test]
    fn a_call_that_is_written_twice_counts_once() {
        let call = json!({"command": "ls"});
        let line = json!({
            "content": [{"type": "tool_call", "id": "1", "name": "bash", "input": call},
                {"type": "tool_call", "name": "bash", "input": call}],
            "tool_calls": [{"id": "1", "tool": "shell", "arguments": call}, {"id": "2", "tool": "bash", "arguments": {}},
                {"tool": "bash", "arguments": "{\"command\":\"ls\"}"}]});
        assert_eq!(texts(line), ["bash: ls", "bash: ls", "bash"]);
        // A message may make the same call twice.
        let line = json!({"tool_calls": [{"id": "1", "tool": "t"}, {"id": "2", "tool": "t"}]});
        assert_eq!(texts(line), ["t", "t"]);
    }

    #[test]
    fn only_strings_in_arguments_are_text_at_any_depth() {
        let line = json!({"tool_calls": [{"tool": "todo", "arguments": {"action": "create", "urgent": true,
            "todos": [{"content": "Bake", "status": "pending", "n": 1}, {"content": " "}, null]}}]});
        assert_eq!(texts(line), ["todo: create\n· Bake\n· pending"]);
    }
}
