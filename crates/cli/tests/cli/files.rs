//! `files`.

use serde_json::{Value, json};

use crate::{
    output::{json as shows_json, terminal, text},
    support::{Home, SYNCED},
    terminal::Terminal,
};

const CHARGED: &str = "7f3c9a52";

#[test]
fn files_of_a_session() {
    terminal("files_terminal", 100, &["files", CHARGED]);
    text("files", &["files", CHARGED]);
    text("files_changed", &["files", CHARGED, "--changed"]);
    shows_json("files_json", &["files", CHARGED, "--limit", "1"]);
    text("files_nothing", &["files", "b7d2c614"]);
    text("files_nothing_changed", &["files", "a91c3f0e", "--changed"]);
}

/// A session with a folder, failures, a patch and long paths.
fn folder_with_a_session() -> Home {
    let call = |id: &str, tool: &str, input: Value| json!({"role": "assistant", "content": [{"type": "tool_call", "id": id, "name": tool, "input": input}]});
    let result = |id: &str, content: &str| json!({"role": "tool", "tool_call_id": id, "content": content});
    let path = "/home/dana/bakery/recipes/sourdough/with-a-long-name/rye.md";
    let lines = [
        json!({"role": "user", "content": "Less salt, please."}),
        call("1", "Read", json!({"file_path": path})),
        result("1", "salt: 20 g"),
        call("2", "Edit", json!({"file_path": path, "old_string": "20 g", "new_string": "18 g"})),
        result("2", "<tool_use_error>File has not been read yet.</tool_use_error>"),
        call("3", "Edit", json!({"file_path": path, "old_string": "20 g", "new_string": "18 g"})),
        result("3", "The file has been updated."),
        call(
            "4",
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Add File: notes.md\n+18 g\n*** End Patch"}),
        ),
        call("5", "read_file", json!({"file_path": "/etc/hosts"})),
        result("5", r#"{"success": false, "output": null, "error": {"message": "denied"}}"#),
        call("6", "bash", json!({"command": "rm notes.md"})),
    ];
    let home = Home::new();
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let folder = home.write_session("-home-dana-bakery", "b4a7e1d0-salt", &(lines.join("\n") + "\n"));
    let metadata = json!({"working_dir": "/home/dana/bakery", "created": "2026-01-05T08:00:00Z"});
    std::fs::write(folder.join("metadata.json"), metadata.to_string()).unwrap();
    home.ok(&["sync", "--embedding", "none"]);
    home
}

#[test]
fn paths_are_relative_and_failures_are_counted_apart() {
    let home = folder_with_a_session();
    home.shows("files_failed", &["files", "latest"]);
    let narrow = Terminal::new(&home).with_columns(60);
    narrow.shows("files_failed_terminal_narrow", &["files", "latest", "--color", "never"]);
    home.shows("files_limited", &["files", "b4a7e1d0", "--limit", "2"]);
}

#[test]
fn addresses_are_whole_on_a_narrow_terminal() {
    for columns in [60, 80] {
        let shown = Terminal::new(&SYNCED).with_columns(columns).run(&["files", CHARGED, "--color", "never"]);
        assert!(shown.stdout.contains("7f3c9a52#10") && !shown.stdout.contains("#…"), "{}", shown.stdout);
    }
}

#[test]
fn only_a_session_that_exists_has_files() {
    assert_eq!(SYNCED.run(&["files", "no-such-session"]).code, 1);
    assert_eq!(SYNCED.run(&["files"]).code, 2);
    assert_eq!(SYNCED.run(&["files", CHARGED, "--limit", "0"]).code, 2);
    let none = SYNCED.run_json(&["files", "b7d2c614"]);
    assert_eq!((none.code, &none.json()["files"]), (3, &json!([])));
}

/// Each listed file is one that `search --file` finds in the session.
#[test]
fn a_search_for_a_file_finds_its_session() {
    let listed = SYNCED.json(&["files", CHARGED]);
    for file in listed["files"].as_array().unwrap() {
        let path = file["path"].as_str().unwrap();
        let found = SYNCED.json(&["search", "--file", path, "--session", CHARGED, "--group", "none"]);
        let addresses: Vec<&Value> =
            found["results"].as_array().unwrap().iter().map(|result| &result["address"]).collect();
        assert!(addresses.contains(&&file["first"]), "{path}: {addresses:?}");
    }
}
