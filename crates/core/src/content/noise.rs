//! Noise: texts that say nothing about a session, because a program repeats them or wrote them for a program.

use std::borrow::Cow;

use super::{MessageLine, ToolCall};
use crate::{model::ContentType, text::without_reminders};

/// Tools that keep a list of the steps of the work, as [`ToolCall::plain_name`] writes them. Every call repeats the list.
const LISTS: [&str; 9] = [
    "todo",
    "todolist",
    "todoread",
    "todowrite",
    "updateplan",
    "tasklist",
    "taskupdate",
    "updatetodolist",
    "managetodolist",
];

/// Beginnings of texts that a program writes again and again.
const REPEATED: [&str; 6] = [
    "Todos have been modified successfully",
    "Updated task #",
    "[Request interrupted by user",
    "Request interrupted by user",
    "No response requested.",
    "The user doesn't want to take this action right now.",
];

/// The beginning of the result of a call that the user refused, and what follows if the user said why.
const REFUSED: [&str; 2] = ["The user doesn't want to proceed with this tool use.", "the user said:"];

/// Fields of the results of a web search in JSON that was not recognized, for example because it is cut off.
const OF_WEB_SEARCHES: [&str; 2] = ["\"encrypted_content\"", "\"page_age\""];

/// The text of a content type without noise: blank if nothing else is in it.
pub(crate) fn without_noise<'a>(
    line: &MessageLine,
    content_type: ContentType,
    text: &'a str,
) -> Cow<'a, str> {
    let begins = text.trim_start();
    if REPEATED.iter().any(|beginning| begins.starts_with(beginning)) {
        return Cow::Borrowed("");
    }
    match content_type {
        ContentType::ToolCall if line.called_tools().iter().all(ToolCall::keeps_a_list) => Cow::Borrowed(""),
        ContentType::ToolOutput => without_noise_of_tools(line, text),
        _ => without_reminders(text),
    }
}

fn without_noise_of_tools<'a>(line: &MessageLine, text: &'a str) -> Cow<'a, str> {
    let name = ["name", "tool_name"].iter().find_map(|field| line.fields().get(*field)?.as_str());
    let begins = text.trim_start();
    let is_web_search = || OF_WEB_SEARCHES.iter().any(|field| text.contains(field));
    if name.is_some_and(is_list) || begins.starts_with(['[', '{']) && is_web_search() {
        return Cow::Borrowed("");
    }
    let [refused, reason] = REFUSED;
    if begins.starts_with(refused) {
        return Cow::Borrowed(text.split_once(reason).map_or("", |(_, reason)| reason));
    }
    without_reminders(text)
}

fn is_list(tool: &str) -> bool {
    LISTS.contains(&ToolCall::plain_name_of(tool).as_str())
}

impl ToolCall<'_> {
    fn keeps_a_list(&self) -> bool {
        is_list(self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{RawJson, Role, SessionSource};

    /// The text of a content type without its noise.
    fn left(role: Role, line: &Value, content_type: ContentType) -> String {
        let line = MessageLine::stored(&RawJson::new(line.to_string()), role, SessionSource::default());
        let text = line.texts().into_iter().find(|text| text.content_type == content_type).unwrap().text;
        without_noise(&line, content_type, &text).trim().to_owned()
    }

    #[test]
    fn lists_of_steps_are_noise() {
        let todos = json!({"todos": [{"content": "Bake", "status": "pending"}]});
        let calls = |names: &[&str]| {
            let calls: Vec<Value> =
                names.iter().map(|name| json!({"tool": name, "arguments": todos})).collect();
            left(Role::Assistant, &json!({"tool_calls": calls}), ContentType::ToolCall)
        };
        for list in [&["TodoWrite"][..], &["todo"], &["TodoWrite", "update_plan"], &["mcp__x__todo_write"]] {
            assert_eq!(calls(list), "", "{list:?}");
        }
        assert_eq!(calls(&["TodoWrite", "bash"]), "TodoWrite: Bake\n· pending\n\nbash: Bake\n· pending");
        let output = |line: Value| left(Role::Tool, &line, ContentType::ToolOutput);
        assert_eq!(output(json!({"name": "todo", "content": {"output": {"count": 2}}})), "");
        assert_eq!(output(json!({"content": "Todos have been modified successfully. Ensure that"})), "");
        assert_eq!(output(json!({"name": "bash", "content": "todo"})), "todo");
    }

    #[test]
    fn what_programs_insert_is_noise() {
        let output = |text: &str| left(Role::Tool, &json!({"content": text}), ContentType::ToolOutput);
        let refused = "The user doesn't want to proceed with this tool use. The tool use was rejected.";
        assert_eq!(output(refused), "");
        assert_eq!(
            output(&format!("{refused} To tell you how to proceed, the user said:\nuse rye")),
            "use rye"
        );
        assert_eq!(output("a file\n\n<system-reminder>\nbe careful\n</system-reminder>\n"), "a file");
        assert_eq!(output("[{\"title\": \"Ovens\", \"encrypted_content\": \"Eo8"), "");
        assert_eq!(output("a page of 3 ages"), "a page of 3 ages");
        let user = |text: &str| left(Role::User, &json!({"content": text}), ContentType::UserQuery);
        assert_eq!(user("[Request interrupted by user for tool use]"), "");
        assert_eq!(user("Why?\n<system-reminder>be careful</system-reminder>"), "Why?");
        assert_eq!(
            user("Why was the request interrupted by user?"),
            "Why was the request interrupted by user?"
        );
    }
}
