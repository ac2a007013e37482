use serde_json::json;

use super::*;
use crate::{
    model::{ContentTypes, RawJson, Role, SessionSource},
    search::{Checks, TextConditions},
};

fn line(role: Role, line: &Value) -> MessageLine {
    MessageLine::stored(&RawJson::new(line.to_string()), role, SessionSource::default())
}

fn call(id: &str, tool: &str, arguments: &Value) -> MessageLine {
    line(Role::Assistant, &json!({"tool_calls": [{"id": id, "tool": tool, "arguments": arguments}]}))
}

fn result(id: &str, content: &Value) -> MessageLine {
    line(Role::Tool, &json!({"tool_call_id": id, "content": content}))
}

/// The files in messages, as text: how, path, number of calls and failures, first and last message.
fn files(folder: Option<&str>, lines: &[MessageLine]) -> Vec<String> {
    let mut uses = FileUses::new(folder.map(str::to_owned));
    (0..).zip(lines).for_each(|(sequence, line)| uses.add(sequence, line));
    let shown = |file: UsedFile| {
        let UsedFile { path, used, times, failed, first, last } = file;
        format!("{} {path} {times}/{failed} {first}..{last}", used.as_str())
    };
    uses.finish().into_iter().map(shown).collect()
}

fn used(tool: &str, arguments: &Value) -> Vec<String> {
    let line = call("1", tool, arguments);
    let calls = line.called_tools();
    let Some((used, files)) = calls[0].files() else { return Vec::new() };
    for file in &files {
        let search = TextConditions::default().with_files([*file]);
        assert!(Checks::new(&search, ContentTypes::searched()).admit(&line), "`file:{file}` finds the call");
    }
    files.into_iter().map(|file| format!("{} {file}", used.as_str())).collect()
}

#[test]
fn the_name_of_the_tool_tells_whether_it_reads_or_changes() {
    let path = json!({"file_path": "a.rs", "content": "b.rs", "old_string": "*** Add File: c"});
    for tool in ["Read", "read_file", "readFile", "mcp__files__read_text_file", "NotebookRead", "view"] {
        assert_eq!(used(tool, &path), ["read a.rs"], "{tool}");
    }
    for tool in ["Write", "write_file", "Edit", "edit_file", "MultiEdit", "mcp__files__edit-file", "replace"]
    {
        assert_eq!(used(tool, &path), ["changed a.rs"], "{tool}");
    }
    for tool in ["bash", "Bash", "grep", "Grep", "Glob", "LSP", "TodoWrite", "reader", "delegate"] {
        assert!(used(tool, &path).is_empty(), "{tool}");
    }
    let editor =
        |command: &str| used("str_replace_based_edit_tool", &json!({"command": command, "path": "a.rs"}));
    assert_eq!(editor("view"), ["read a.rs"]);
    assert_eq!(editor("insert"), ["changed a.rs"]);
}

#[test]
fn paths_are_found_in_all_forms_of_arguments() {
    assert_eq!(used("read", &json!({"filePath": "/a/b.rs", "offset": 3})), ["read /a/b.rs"]);
    assert_eq!(used("NotebookEdit", &json!({"notebook_path": "a.ipynb"})), ["changed a.ipynb"]);
    assert_eq!(used("read_many_files", &json!({"paths": ["a", "b", "a"]})), ["read a", "read b"]);
    assert_eq!(used("move_file", &json!({"source": "a", "destination": "b"})), ["changed a", "changed b"]);
    assert!(used("read_file", &json!({"file_path": " ", "limit": 3})).is_empty());
    assert!(used("read_file", &json!(null)).is_empty());
    // The two forms of Amplifier's `apply_patch`.
    let native = json!({"type": "update_file", "path": "src/cart.rs", "diff": "@@\n-a\n+b"});
    assert_eq!(used("apply_patch", &native), ["changed src/cart.rs"]);
    let patch = "*** Begin Patch\n*** Add File: a.rs\n+*** Add File: x\n*** Update File: b.rs\n*** Move to: c.rs\n@@\n-d\n\
        *** Delete File: e.rs\n*** End Patch";
    let expected = ["changed a.rs", "changed b.rs", "changed c.rs", "changed e.rs"];
    for arguments in [json!({"patch": patch}), json!({"input": patch}), json!(patch)] {
        assert_eq!(used("apply_patch", &arguments), expected);
    }
}

#[test]
fn files_are_listed_with_their_calls_the_changed_ones_first() {
    let read = |path: &str| call("", "read_file", &json!({"file_path": path}));
    let edit = |path: &str| call("", "edit_file", &json!({"file_path": path}));
    let lines = [read("b.rs"), read("a.rs"), edit("c.rs"), read("b.rs"), edit("a.rs"), edit("c.rs")];
    let expected =
        ["changed c.rs 2/0 2..5", "changed a.rs 1/0 4..4", "read b.rs 2/0 0..3", "read a.rs 1/0 1..1"];
    assert_eq!(files(None, &lines), expected);
}

#[test]
fn calls_that_failed_are_counted_apart() {
    let edit = |id: &str| call(id, "edit_file", &json!({"file_path": "a.rs"}));
    let failures = [
        json!({"error": {"message": "File not found: a.rs"}, "output": null, "success": false}),
        json!("{\"error\": {\"message\": \"x\"}, \"output\": null, \"success\": false}"),
        json!("Error: File not found: a.rs"),
        json!("<tool_use_error>File does not exist.</tool_use_error>"),
        json!([{"type": "text", "text": "<tool_use_error>File does not exist.</tool_use_error>"}]),
    ];
    for failure in failures {
        assert_eq!(files(None, &[edit("1"), result("1", &failure)]), ["changed a.rs 0/1 0..0"], "{failure}");
    }
    let flagged = json!({"content": [
        {"type": "tool_result", "tool_use_id": "1", "is_error": true, "content": "no"},
        {"type": "tool_result", "tool_use_id": "2", "content": "done"}]});
    let lines = [edit("1"), edit("2"), line(Role::User, &flagged)];
    assert_eq!(files(None, &lines), ["changed a.rs 1/1 1..1"]);
    for success in
        [json!("ok: 1 replacement"), json!({"error": null, "output": "Edited", "success": true}), json!("")]
    {
        assert_eq!(files(None, &[edit("1"), result("1", &success)]), ["changed a.rs 1/0 0..0"], "{success}");
    }
    // Ids that are used again, failures before and after a success, and a call without a result.
    let failed = json!("Error: no match");
    let lines = [
        edit("1"),
        result("1", &failed),
        edit("1"),
        result("1", &json!("ok")),
        edit("1"),
        result("1", &failed),
        edit("2"),
    ];
    assert_eq!(files(None, &lines), ["changed a.rs 2/2 2..6"]);
    let lines = [edit("1"), result("1", &failed), edit("1"), result("1", &failed)];
    assert_eq!(files(None, &lines), ["changed a.rs 0/2 0..2"]);
}

#[test]
fn paths_are_relative_to_the_folder_of_the_session() {
    let folder = Some("/home/ana/shop/");
    for (path, expected) in [
        ("/home/ana/shop/src/cart.rs", "src/cart.rs"),
        ("./src/../src/cart.rs", "src/cart.rs"),
        ("../shop/src/cart.rs", "src/cart.rs"),
        ("../blog/a.md", "/home/ana/blog/a.md"),
        ("/home/ana/shopping/a.md", "/home/ana/shopping/a.md"),
        ("/home/ana/shop", "/home/ana/shop"),
        ("/etc/../etc/hosts", "/etc/hosts"),
        ("~/notes.md", "~/notes.md"),
    ] {
        assert_eq!(listed(path, folder), expected, "{path}");
    }
    assert_eq!(listed("../a", None), "../a");
    assert_eq!(listed("./b/a", None), "b/a");
    assert_eq!(listed(r"C:\Users\ana\shop\src\cart.rs", Some(r"C:\Users\ana\shop")), "src/cart.rs");
    assert_eq!(listed(r"src\cart.rs", Some(r"C:\Users\ana\shop")), "src/cart.rs");
    assert_eq!(listed(r"a\b", Some("/home/ana")), r"a\b");
}
