//! The arguments of a tool call by their kinds, for readers: commands, edits, content that is written, and others.
//!
//! | argument | kind |
//! | --- | --- |
//! | one of [`COMMANDS`] of a tool in [`SHELLS`] | a command. A list is a program with its arguments |
//! | a pair of [`EDITS`], also in the items of `edits` | an edit: the text that is removed, and the one in its place |
//! | one of [`PATCHES`], or a text in the format of `apply_patch` | a patch |
//! | one of [`CONTENTS`] of a call with a path | the content of a file |
//! | the path of a call with an edit, a patch or content | the path |
//!
//! A tool may use the same names for something else: `command` is also the operation of an editor (`view`), so it is a
//! command only if the tool is known to run it in a shell.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{ToolCall, used_files::PATHS};

/// Tools that run a command in a shell, as [`ToolCall::plain_name`] writes them.
const SHELLS: [&str; 24] = [
    "bash",
    "cmd",
    "exec",
    "execcommand",
    "execute",
    "executebash",
    "executecommand",
    "localshell",
    "powershell",
    "pwsh",
    "run",
    "runbash",
    "runcommand",
    "runinterminal",
    "runshell",
    "runshellcommand",
    "runterminalcmd",
    "runterminalcommand",
    "sh",
    "shell",
    "shellcommand",
    "shellexec",
    "terminal",
    "zsh",
];

/// Arguments with a command.
const COMMANDS: [&str; 3] = ["command", "cmd", "script"];

/// Arguments with a text that is replaced, and with the text in its place.
const EDITS: [(&str, &str); 5] = [
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("oldString", "newString"),
    ("old_text", "new_text"),
    ("oldText", "newText"),
];

/// Arguments with a patch.
const PATCHES: [&str; 2] = ["patch", "diff"];

/// The first line of a patch in the format of `apply_patch`.
const PATCH_BEGINS: &str = "*** Begin Patch";

/// Arguments with the content of a file.
const CONTENTS: [&str; 2] = ["content", "file_text"];

/// A part of the arguments of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolArgument<'a> {
    /// The path of the file that is changed.
    Path(&'a str),
    /// A command for a shell.
    Command(Cow<'a, str>),
    /// Any other argument: its name and its value.
    Named(&'a str, &'a Value),
    /// Arguments without names.
    Unnamed(&'a Value),
    /// A text that is replaced. Either of the two may be empty.
    Edit {
        /// The text before.
        removed: &'a str,
        /// The text after.
        added: &'a str,
    },
    /// A patch.
    Patch(&'a str),
    /// The content of a file that is written.
    Content(&'a str),
}

impl ToolCall<'_> {
    /// The commands that the call runs in a shell.
    #[must_use]
    pub fn commands(&self) -> Vec<Cow<'_, str>> {
        self.command_arguments().into_iter().map(|(_, command)| command).collect()
    }

    /// All arguments: first the path and the commands, then those with names in their order, then changes of files.
    #[must_use]
    pub fn arguments_by_kind(&self) -> Vec<ToolArgument<'_>> {
        let fields = match &*self.arguments {
            Value::Object(fields) => fields,
            Value::Null => return Vec::new(),
            Value::String(text) if is_patch("", text) => return vec![ToolArgument::Patch(text)],
            other => return vec![ToolArgument::Unnamed(other)],
        };
        let mut parts = Vec::new();
        let mut used: Vec<&str> = Vec::new();
        for (name, command) in self.command_arguments() {
            used.push(name);
            parts.push(ToolArgument::Command(command));
        }
        let path = PATHS.iter().find_map(|name| Some((*name, fields.get(*name)?.as_str()?)));
        let (changes, of_changes) = changes(fields, path.is_some());
        used.extend(of_changes);
        if let Some((name, path)) = path.filter(|_| !changes.is_empty()) {
            used.push(name);
            parts.insert(0, ToolArgument::Path(path));
        }
        let others = fields.iter().filter(|(name, _)| !used.contains(&name.as_str()));
        parts.extend(others.map(|(name, value)| ToolArgument::Named(name, value)));
        parts.extend(changes);
        parts
    }

    /// The commands with the names of their arguments.
    fn command_arguments(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        if !SHELLS.contains(&self.plain_name().as_str()) {
            return Vec::new();
        }
        COMMANDS.iter().filter_map(|name| Some((*name, command_in(self.arguments.get(*name)?)?))).collect()
    }
}

fn command_in(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(Cow::Borrowed(text)),
        Value::Array(words) if !words.is_empty() => {
            let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
            Some(match words[..] {
                // `bash -lc SCRIPT`
                [program, "-c" | "-lc", script] if program.ends_with("sh") => Cow::Borrowed(script),
                _ => Cow::Owned(words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")),
            })
        }
        _ => None,
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// The changes of files, and the names of the arguments that state them.
fn changes(fields: &Map<String, Value>, has_path: bool) -> (Vec<ToolArgument<'_>>, Vec<&str>) {
    let (mut changes, mut used) = (Vec::new(), Vec::new());
    if let Some((names, edit)) = edit_in(fields) {
        used.extend(names);
        changes.push(edit);
    }
    for (name, value) in fields {
        let change = match value {
            Value::Array(items) if name == "edits" => edits_in(items),
            Value::String(text) if is_patch(name, text) => Some(vec![ToolArgument::Patch(text)]),
            Value::String(text) if has_path && CONTENTS.contains(&name.as_str()) => {
                Some(vec![ToolArgument::Content(text)])
            }
            _ => None,
        };
        if let Some(change) = change {
            used.push(name.as_str());
            changes.extend(change);
        }
    }
    (changes, used)
}

fn is_patch(name: &str, text: &str) -> bool {
    PATCHES.contains(&name) || text.starts_with(PATCH_BEGINS)
}

/// The names of the arguments of an edit, and the edit.
fn edit_in(fields: &Map<String, Value>) -> Option<([&'static str; 2], ToolArgument<'_>)> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    EDITS.iter().find_map(|(old, new)| {
        let (removed, added) = (text(old), text(new));
        removed.or(added)?;
        let edit =
            ToolArgument::Edit { removed: removed.unwrap_or_default(), added: added.unwrap_or_default() };
        Some(([*old, *new], edit))
    })
}

/// The edits in a list, each after its other fields. `None` unless all items are edits.
fn edits_in(items: &[Value]) -> Option<Vec<ToolArgument<'_>>> {
    let mut edits = Vec::new();
    for item in items {
        let fields = item.as_object()?;
        let (names, edit) = edit_in(fields)?;
        let others = fields.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        edits.extend(others.map(|(name, value)| ToolArgument::Named(name, value)));
        edits.push(edit);
    }
    (!edits.is_empty()).then_some(edits)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::MessageLine, *};
    use crate::model::{RawJson, Role, SessionSource};

    fn line(tool: &str, arguments: &Value) -> MessageLine {
        let line = json!({"tool_calls": [{"id": "1", "tool": tool, "arguments": arguments}]});
        MessageLine::stored(&RawJson::new(line.to_string()), Role::Assistant, SessionSource::default())
    }

    fn commands(tool: &str, arguments: &Value) -> Vec<String> {
        line(tool, arguments).called_tools()[0].commands().into_iter().map(Cow::into_owned).collect()
    }

    /// The kinds of the arguments, with their texts.
    fn kinds(tool: &str, arguments: &Value) -> Vec<String> {
        let line = line(tool, arguments);
        let kind = |part| match part {
            ToolArgument::Path(path) => format!("path {path}"),
            ToolArgument::Command(command) => format!("command {command}"),
            ToolArgument::Named(name, value) => format!("{name}={value}"),
            ToolArgument::Unnamed(value) => format!("unnamed {value}"),
            ToolArgument::Edit { removed, added } => format!("edit {removed} -> {added}"),
            ToolArgument::Patch(patch) => format!("patch {patch}"),
            ToolArgument::Content(content) => format!("content {content}"),
        };
        line.called_tools()[0].arguments_by_kind().into_iter().map(kind).collect()
    }

    #[test]
    fn commands_are_those_of_shells() {
        assert_eq!(commands("Bash", &json!({"command": "ls -l \\\n  a"})), ["ls -l \\\n  a"]);
        assert_eq!(commands("run_shell_command", &json!({"command": "ls"})), ["ls"]);
        assert_eq!(commands("mcp__box__exec_command", &json!({"cmd": "ls"})), ["ls"]);
        assert_eq!(commands("shell", &json!({"script": "a\nb", "command": "c"})), ["c", "a\nb"]);
        for (tool, arguments) in [
            ("str_replace_based_edit_tool", json!({"command": "view", "path": "a"})),
            ("bash", json!({"command": " "})),
            ("bash", json!({"command": []})),
            ("bash", json!({"command": ["ls", 5]})),
            ("bash", json!({"restart": true})),
            ("bash", json!("ls")),
        ] {
            assert!(commands(tool, &arguments).is_empty(), "{tool} {arguments}");
        }
    }

    #[test]
    fn a_list_of_words_is_a_command_that_a_shell_can_read() {
        let command = |words: Value| commands("shell", &json!({"command": words})).remove(0);
        assert_eq!(command(json!(["bash", "-lc", "ls | wc -l"])), "ls | wc -l");
        assert_eq!(command(json!(["/bin/zsh", "-c", "ls"])), "ls");
        assert_eq!(command(json!(["git", "log", "--format=%h", "a b", ""])), "git log --format=%h 'a b' ''");
        assert_eq!(command(json!(["python", "-c", "print('x')"])), r"python -c 'print('\''x'\'')'");
    }

    #[test]
    fn commands_come_first_and_other_arguments_keep_their_order() {
        let arguments = json!({"timeout": 5, "command": "ls", "description": "List", "env": {"A": 1}});
        assert_eq!(
            kinds("bash", &arguments),
            ["command ls", "timeout=5", r#"description="List""#, r#"env={"A":1}"#]
        );
        assert_eq!(kinds("grep", &json!({"path": "a", "pattern": "b"})), [r#"path="a""#, r#"pattern="b""#]);
        assert!(kinds("list", &json!({})).is_empty() && kinds("list", &Value::Null).is_empty());
        assert_eq!(kinds("x", &json!("no json")), [r#"unnamed "no json""#]);
    }

    #[test]
    fn edits_are_found_under_all_names() {
        let edit = json!({"old_string": "a", "new_string": "b", "replace_all": true, "file_path": "f"});
        assert_eq!(kinds("Edit", &edit), ["path f", "replace_all=true", "edit a -> b"]);
        let edit = json!({"command": "str_replace", "path": "f", "old_str": "a", "new_str": "b"});
        assert_eq!(kinds("str_replace_editor", &edit), ["path f", r#"command="str_replace""#, "edit a -> b"]);
        assert_eq!(
            kinds("insert", &json!({"path": "f", "insert_line": 3, "new_str": "b"})),
            ["path f", "insert_line=3", "edit  -> b"]
        );
        let edits = json!({"file_path": "f", "edits": [{"old_string": "a", "new_string": "b"},
            {"replace_all": true, "oldText": "c", "newText": "d"}]});
        assert_eq!(kinds("MultiEdit", &edits), ["path f", "edit a -> b", "replace_all=true", "edit c -> d"]);
        assert_eq!(kinds("x", &json!({"edits": [5]})), ["edits=[5]"]);
        assert_eq!(kinds("x", &json!({"edits": []})), ["edits=[]"]);
    }

    #[test]
    fn patches_and_content_are_texts() {
        let patch = "*** Begin Patch\n*** Add File: f\n+a\n*** End Patch";
        assert_eq!(kinds("apply_patch", &json!({"input": patch})), [format!("patch {patch}")]);
        assert_eq!(kinds("apply_patch", &json!(patch)), [format!("patch {patch}")]);
        assert_eq!(kinds("update", &json!({"path": "f", "diff": "-a\n+b"})), ["path f", "patch -a\n+b"]);
        assert_eq!(kinds("Write", &json!({"file_path": "f", "content": "a"})), ["path f", "content a"]);
        assert_eq!(kinds("create", &json!({"path": "f", "file_text": "a"})), ["path f", "content a"]);
        // Without a path, it is not a file.
        assert_eq!(kinds("say", &json!({"content": "a"})), [r#"content="a""#]);
    }
}
