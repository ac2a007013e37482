//! The output of a tool, as a person reads it.
//!
//! Tools return JSON, in the line itself or as a string: `{"error": null, "output": {"returncode": 0, "stdout":
//! "a\\nb"}, "success": true}`. The text of an output is:
//!
//! | output | text |
//! | --- | --- |
//! | a string that is not a JSON object, list or string | the string |
//! | a string that is JSON | the text of that JSON, at any depth |
//! | JSON that is formatted over several lines, unless it is content blocks or one of the answers below | unchanged: it was formatted to be read |
//! | content blocks, or an object with content blocks in `content` | the texts of the blocks |
//! | `Links: [{"title": …, "url": …}]` in the text of a web search | `Links:`, then one line per link |
//! | an answer: an object with `output`, `stdout`, `stderr`, `error` or `success` | the text of `output`, `result`, `stdout`, `stderr`, then that of `error`, `exit code N` unless it is 0, then other fields |
//! | an error that is an object | `type: message`, then other fields |
//! | any other object | one line per field, `name: value` |
//! | any other list | one line per item |
//!
//! `null`, empty strings, lists and objects, `success`, an exit code of 0, flags of a process that are `false`, and
//! encrypted fields have no text, so a command that printed nothing has no text. `success: false` alone is `failed`. A text of several lines is below the name of its field.
//! Nested objects and lists are on one line if that is short, or else indented below.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::{KnownPart, model::RawJson};

use super::blocks::{block_text, block_type, blocks_of, is_text, is_tool_result, result_of, string_field};

/// The separator of blocks in a text.
const BLANK_LINE: &str = "\n\n";

/// Nested values that are longer than this are not on one line.
const LINE_CHARS: usize = 160;

/// Values at a greater depth are shown as JSON.
const MAX_DEPTH: usize = 12;

/// Fields with the exit code of a process.
const EXIT_CODES: [&str; 4] = ["returncode", "exit_code", "exitCode", "return_code"];

/// Fields with the output of a tool if a line has no `content`.
const OUTPUTS: [&str; 6] = ["output", "result", "parts", "text", "output_text", "input_text"];

/// Fields of an answer that are not shown by name.
const OF_ANSWERS: [&str; 6] = ["success", "output", "result", "stdout", "stderr", "error"];

/// Fields of an answer about its process. They say nothing if they are false.
const FLAGS: [&str; 7] =
    ["interrupted", "isImage", "is_image", "isError", "is_error", "timed_out", "noOutputExpected"];

/// Fields of the results of web searches that only a program can read, or that say nothing about what was found.
const OPAQUE: [&str; 4] = ["encrypted_content", "encrypted_index", "encrypted_stdout", "page_age"];

/// The beginning of the links in the text of a web search.
const LINKS: &str = "Links: ";

/// Beginnings of a result that is an error: of Amplifier's tools, of Claude Code's, and of a call that the user refused
/// there.
const ERRORS: [&str; 3] =
    ["Error: ", "<tool_use_error>", "The user doesn't want to proceed with this tool use."];

/// Names of the field with the id of the call to which a result belongs.
const CALL_IDS: [&str; 3] = ["tool_call_id", "tool_use_id", "call_id"];

/// The calls whose results are in a line: the id of each, and whether the result is an error.
pub(super) fn results_in(line: &Map<String, Value>) -> Vec<(&str, bool)> {
    let of_line = call_id(line).map(|id| (id, is_error(line, output_of(line))));
    let blocks = blocks_of(line).into_iter().filter(|block| is_tool_result(block));
    let of_blocks = blocks.filter_map(|block| {
        let fields = block.as_object()?;
        Some((call_id(fields)?, is_error(fields, result_of(block))))
    });
    of_line.into_iter().chain(of_blocks).collect()
}

fn call_id(fields: &Map<String, Value>) -> Option<&str> {
    CALL_IDS.iter().find_map(|name| fields.get(*name)?.as_str())
}

/// Whether a result is an error: the one in `fields`, which may say so, with the content `result`.
fn is_error(fields: &Map<String, Value>, result: &Value) -> bool {
    fields.get("is_error") == Some(&Value::Bool(true)) || reports_error(result)
}

fn reports_error(result: &Value) -> bool {
    match result {
        Value::String(text) => match answer_in(text) {
            Some(Value::String(_)) | None => ERRORS.iter().any(|beginning| text.starts_with(beginning)),
            Some(answer) => reports_error(&answer),
        },
        Value::Object(fields) => fields.get("success") == Some(&Value::Bool(false)),
        Value::Array(blocks) => {
            blocks.first().and_then(block_text).is_some_and(|text| reports_error(&Value::from(text)))
        }
        _ => false,
    }
}

/// The tool's result, as recorded in the line.
pub(super) fn output_of(line: &Map<String, Value>) -> &Value {
    let fields = ["content"].iter().chain(&OUTPUTS).filter_map(|name| line.get(*name));
    fields.into_iter().find(|value| !value.is_null()).unwrap_or(&Value::Null)
}

/// The text of a tool's output.
pub(super) fn result_text(content: &Value) -> Cow<'_, str> {
    match content {
        Value::String(text) => match answer_in(text) {
            Some(answer) => Cow::Owned(answer_text(&answer, 0)),
            None => with_links(text),
        },
        other => Cow::Owned(answer_text(other, 0)),
    }
}

/// The text of a web search with its links as lines.
fn with_links(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(LINKS) {
        let mut lists = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let links = lists.next().and_then(Result::ok).as_ref().and_then(links_text);
        let (links, end) = links.map_or_else(|| (LINKS.to_owned(), 0), |links| (links, lists.byte_offset()));
        shown.push_str(before);
        shown.push_str(&links);
        rest = after.part(end..);
    }
    if shown.is_empty() {
        return Cow::Borrowed(text);
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// A list of links, one per line. `None` if it is something else.
fn links_text(links: &Value) -> Option<String> {
    let line = |link: &Value| {
        let (title, url) = (string_field(link, "title")?, string_field(link, "url")?);
        Some(format!("- {title}: {url}"))
    };
    let lines: Vec<String> = links.as_array()?.iter().map(line).collect::<Option<_>>()?;
    (!lines.is_empty()).then(|| format!("Links:\n{}", lines.join("\n")))
}

/// The JSON in a string, if its text replaces the string.
fn answer_in(text: &str) -> Option<Value> {
    let trimmed = text.trim();
    let is_enclosed = |open, close| trimmed.starts_with(open) && trimmed.ends_with(close);
    if is_enclosed('"', '"') {
        return serde_json::from_str(trimmed).ok().map(Value::String);
    }
    if !is_enclosed('{', '}') && !is_enclosed('[', ']') {
        return None;
    }
    // Python writes numbers that are not valid JSON; `RawJson` accepts them.
    let value = serde_json::from_str(trimmed).ok().or_else(|| RawJson::from(trimmed).parse().ok())?;
    // Line ends can only be between the tokens of JSON, so it was formatted.
    let is_laid_out = trimmed.contains('\n');
    let is_empty =
        value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
    (!is_empty && (!is_laid_out || is_answer(&value) || is_made_of_blocks(&value))).then_some(value)
}

/// Whether a value is content blocks, or an object that only contains them.
fn is_made_of_blocks(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty() && items.iter().all(is_content_block),
        Value::Object(fields) => holds_blocks(fields) || is_content_block(value),
        _ => false,
    }
}

/// Whether a value is a tool's answer with its output, success, or error.
fn is_answer(value: &Value) -> bool {
    let is = |name: &str, of: fn(&Value) -> bool| value.get(name).is_some_and(of);
    let printed = |value: &Value| value.is_string() || value.is_null();
    value.get("output").is_some()
        || is("success", Value::is_boolean)
        || is("error", |error| error.is_string() || error.is_object())
        || is("stdout", printed)
        || is("stderr", printed)
}

fn answer_text(value: &Value, depth: usize) -> String {
    if depth >= MAX_DEPTH {
        return plain_text(value, depth);
    }
    match value {
        Value::String(text) => match answer_in(text) {
            Some(answer) => answer_text(&answer, depth + 1),
            None => with_links(text).into_owned(),
        },
        Value::Array(items) if items.iter().all(is_content_block) => {
            joined(items.iter().map(|block| block_of_content(block, depth)), BLANK_LINE)
        }
        Value::Object(_) if is_content_block(value) => block_of_content(value, depth),
        Value::Object(fields) if is_answer(value) => text_of_answer(fields, depth),
        Value::Object(fields) if holds_blocks(fields) => {
            answer_text(blocks_field(fields).unwrap_or(&Value::Null), depth + 1)
        }
        other => plain_text(other, depth),
    }
}

/// Whether an object has content blocks and flags, as returned by tools of the Model Context Protocol.
fn holds_blocks(fields: &Map<String, Value>) -> bool {
    let blocks = blocks_field(fields).and_then(Value::as_array);
    blocks.is_some_and(|blocks| !blocks.is_empty() && blocks.iter().all(is_content_block))
}

fn blocks_field(fields: &Map<String, Value>) -> Option<&Value> {
    fields.get("content").or_else(|| fields.get("parts"))
}

fn text_of_answer(fields: &Map<String, Value>, depth: usize) -> String {
    let of = |name: &str| fields.get(name).unwrap_or(&Value::Null);
    let code = EXIT_CODES.iter().map(|name| of(name)).find(|code| !code.is_null());
    let code = code.filter(|code| code.as_i64() != Some(0)).map(|code| format!("exit code {}", scalar(code)));
    let is_named = |name: &str| !OF_ANSWERS.contains(&name) && !EXIT_CODES.contains(&name);
    let says_nothing = |name: &str, value: &Value| FLAGS.contains(&name) && *value == Value::Bool(false);
    let others = fields.iter().filter(|(name, value)| is_named(name) && !says_nothing(name, value));
    let parts = [
        answer_text(of("output"), depth + 1),
        answer_text(of("result"), depth + 1),
        // The output of a process is shown unchanged.
        scalar(of("stdout")),
        scalar(of("stderr")),
        error_text(of("error"), depth),
        code.unwrap_or_default(),
        fields_text(others, depth),
    ];
    let text = joined(parts.into_iter(), "\n");
    let failed = *of("success") == Value::Bool(false);
    if text.is_empty() && failed { "failed".to_owned() } else { text }
}

fn error_text(error: &Value, depth: usize) -> String {
    let Some(fields) = error.as_object() else {
        return if *error == Value::Bool(false) { String::new() } else { plain_text(error, depth) };
    };
    let text = |names: &[&'static str]| {
        let mut texts = names.iter().filter_map(|name| Some((*name, fields.get(*name)?.as_str()?)));
        texts.find(|(_, text)| !text.trim().is_empty())
    };
    let Some((of_message, message)) = text(&["message", "msg", "detail", "error"]) else {
        return plain_text(error, depth);
    };
    let kind = text(&["type", "error_type", "name", "code"]);
    let first = kind.map_or_else(|| message.to_owned(), |(_, kind)| format!("{kind}: {message}"));
    let is_named = |name: &str| name != of_message && kind.is_none_or(|(of_kind, _)| name != of_kind);
    let others = fields.iter().filter(|(name, _)| is_named(name));
    joined([first, fields_text(others, depth)].into_iter(), "\n")
}

/// One line per field of an object or item of a list; scalars are unchanged.
fn plain_text(value: &Value, depth: usize) -> String {
    if depth >= MAX_DEPTH && (value.is_object() || value.is_array()) {
        return value.to_string();
    }
    match value {
        Value::Object(fields) => fields_text(fields.iter(), depth),
        Value::Array(items) => {
            let line = |item: &Value| match item {
                Value::Object(_) | Value::Array(_) => below("-", item, depth),
                scalar_item => scalar(scalar_item),
            };
            joined(items.iter().map(line), "\n")
        }
        other => scalar(other),
    }
}

fn fields_text<'a>(fields: impl Iterator<Item = (&'a String, &'a Value)>, depth: usize) -> String {
    joined(shown(fields).map(|(name, value)| field_text(name, value, depth)), "\n")
}

/// The fields without those that a person can't read.
fn shown<'a>(
    fields: impl Iterator<Item = (&'a String, &'a Value)>,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    fields.filter(|(name, _)| !OPAQUE.contains(&name.as_str()))
}

fn field_text(name: &str, value: &Value, depth: usize) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => below(&format!("{name}:"), value, depth),
        _ => {
            let text = scalar(value);
            match text.contains('\n') {
                _ if text.trim().is_empty() => String::new(),
                true => format!("{name}:\n{text}"),
                false => format!("{name}: {text}"),
            }
        }
    }
}

/// An object or a list after `head`: on the same line if that is short, or else on the following lines.
fn below(head: &str, value: &Value, depth: usize) -> String {
    if depth >= MAX_DEPTH {
        return format!("{head} {value}");
    }
    if let Some(line) = one_line(value).filter(|line| line.chars().nth(LINE_CHARS).is_none()) {
        return if line.is_empty() { String::new() } else { format!("{head} {line}") };
    }
    let text = plain_text(value, depth + 1);
    let indented = text.lines().map(|line| format!("  {line}").trim_end().to_owned());
    format!("{head}\n{}", joined(indented, "\n"))
}

/// An object or a list of scalars on one line: `a: 1, b: 2`. `None` if it has other values or line ends.
fn one_line(value: &Value) -> Option<String> {
    let flat = |value: &Value| {
        let text = (!value.is_object() && !value.is_array()).then(|| scalar(value))?;
        (!text.contains('\n')).then_some(text)
    };
    let parts: Vec<String> = match value {
        Value::Array(items) => items.iter().map(flat).collect::<Option<_>>()?,
        Value::Object(fields) => {
            let part = |(name, value): (&String, &Value)| {
                let text = flat(value)?;
                Some(if text.trim().is_empty() { String::new() } else { format!("{name}: {text}") })
            };
            shown(fields.iter()).map(part).collect::<Option<_>>()?
        }
        other => vec![flat(other)?],
    };
    Some(joined(parts.into_iter(), ", "))
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The parts that are not blank, joined by `between`.
fn joined(parts: impl Iterator<Item = String>, between: &str) -> String {
    let mut text = String::new();
    for part in parts.filter(|part| !part.trim().is_empty()) {
        if !text.is_empty() {
            if between == "\n" && text.ends_with('\n') {
                text.pop();
            }
            text.push_str(between);
        }
        text.push_str(&part);
    }
    text
}

/// Whether a part of a tool's output is a content block and not other JSON data.
fn is_content_block(block: &Value) -> bool {
    match block_type(block) {
        Some(name) if is_text(name) => block_text(block).is_some(),
        Some("image" | "input_image") => true,
        _ => is_tool_result(block),
    }
}

/// Whether the text of an output may differ from that by version 5 of the rules, which knew neither links nor laid-out
/// blocks, and showed all fields.
pub(super) fn may_differ_from_5(content: &Value) -> bool {
    let json = content.to_string();
    // In a string within the output, quotes and line breaks are escaped.
    let is_field = |name: &str, at: usize| {
        let after = json.part(at + name.len()..);
        after.trim_start_matches('\\').starts_with('"')
    };
    let has_field = |name: &&str| json.match_indices(*name).any(|(at, _)| is_field(name, at));
    let is_laid_out = || ["[\\n", "{\\n"].iter().any(|open| json.contains(open));
    let has_blocks = || ["\\\"type\\\"", "\\\"text\\\""].iter().all(|word| json.contains(word));
    FLAGS.iter().chain(&OPAQUE).any(has_field) || json.contains(LINKS) || is_laid_out() && has_blocks()
}

/// Whether an output has content blocks that version 3 of the rules did not know.
pub(super) fn has_new_blocks(content: &Value) -> bool {
    match content {
        Value::Array(items) => items.iter().any(has_new_blocks),
        Value::Object(fields) => {
            let is_new = match block_type(content) {
                Some("tool_result") => has_new_blocks(result_of(content)),
                Some("text") => string_field(content, "text").is_none(),
                Some("image") => false,
                _ => is_content_block(content),
            };
            is_new || fields.get("content").is_some_and(has_new_blocks) || fields.contains_key("parts")
        }
        _ => false,
    }
}

fn block_of_content(block: &Value, depth: usize) -> String {
    if is_tool_result(block) {
        return answer_text(result_of(block), depth + 1);
    }
    // The text of a block is often a JSON answer.
    match block_text(block) {
        Some(text) => answer_in(text)
            .map_or_else(|| with_links(text).into_owned(), |answer| answer_text(&answer, depth + 1)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
