//! Output of the commands that change sessions.

use crate::{
    output::{check, text},
    support::{Home, Ran},
    terminal::Terminal,
};

const FLAKY: &str = "38e6d1f5";
const OUTBOX: &str = "c1d84e7a";

fn synced() -> Home {
    let home = Home::with_samples();
    home.ok(&["sync", "--embedding", "none"]);
    home
}

fn pretty(ran: &Ran) -> String {
    let value: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    format!("exit code {}\n{value:#}\n--- stderr\n{}", ran.code, ran.stderr)
}

#[test]
fn help() {
    for command in ["edit", "tag", "share", "delete", "user"] {
        text(&format!("help_{command}"), &[command, "--help"]);
    }
}

#[test]
fn edit() {
    let home = synced();
    let terminal = |name: &str, arguments: &[&str]| {
        check(name, &home, &Terminal::new(&home).run(arguments).all());
    };
    let pipe = |name: &str, arguments: &[&str]| check(name, &home, &home.run(arguments).all());
    terminal("edit_terminal", &["edit", FLAKY, "--name", "Port clash\x1b[31m", "--color", "always"]);
    pipe("edit", &["edit", FLAKY, "--description", "Two runs took one port", "--clear", "tags"]);
    terminal("edit_reset_terminal", &["edit", FLAKY, "--color", "never", "--reset", "name,tags,description"]);
    check("edit_json", &home, &pretty(&home.run(&["edit", FLAKY, "--name", "x", "--json"])));
    pipe("error_edit_nothing", &["edit", FLAKY]);
    pipe("error_edit_twice", &["edit", FLAKY, "--name", "x", "--clear", "name"]);
    pipe("error_edit_empty_name", &["edit", FLAKY, "--name", " "]);
    pipe("error_edit_long_name", &["edit", FLAKY, "--name", &"x".repeat(501)]);
    pipe("error_edit_unknown", &["edit", "ffff", "--name", "x"]);
}

#[test]
fn tag() {
    let home = synced();
    let terminal = |name: &str, arguments: &[&str]| {
        check(name, &home, &Terminal::new(&home).run(arguments).all());
    };
    let pipe = |name: &str, arguments: &[&str]| check(name, &home, &home.run(arguments).all());
    pipe("tags", &["tag"]);
    terminal("tags_terminal", &["tag", "--color", "never"]);
    check("tags_json", &home, &pretty(&home.run(&["tag", "--json"])));
    pipe("tag_add", &["tag", FLAKY, "port clash", "ci"]);
    terminal("tag_terminal", &["tag", FLAKY, "--remove", "tests", "gone", "--color", "never"]);
    pipe("tag_list", &["tag", FLAKY]);
    pipe("tag_last_removed", &["tag", FLAKY, "--remove", "ci", "port clash"]);
    pipe("tag_none", &["tag", FLAKY]);
    check("tag_json", &home, &pretty(&home.run(&["tag", FLAKY, "new", "--json"])));
    pipe("tags_of_nobody", &["tag", "--user", "nobody"]);
    pipe("error_tag_both", &["tag", FLAKY, "a", "--remove", "a"]);
    pipe("error_tag_control", &["tag", FLAKY, "a\x07b"]);
    pipe("error_tag_without_session", &["tag", "--remove", "a"]);
}

#[test]
fn share() {
    let home = synced();
    let terminal = |name: &str, arguments: &[&str]| {
        check(name, &home, &Terminal::new(&home).run(arguments).all());
    };
    let pipe = |name: &str, arguments: &[&str]| check(name, &home, &home.run(arguments).all());
    pipe("share_private", &["share", FLAKY, "--private"]);
    terminal("share_team_terminal", &["share", FLAKY, "--team", "web", "payments", "--color", "never"]);
    pipe("share_org", &["share", FLAKY, "--org", "example.com"]);
    pipe("share_public", &["share", FLAKY, "--public"]);
    terminal("share_private_again_terminal", &["share", FLAKY, "--private", "--color", "never"]);
    check("share_json", &home, &pretty(&home.run(&["share", FLAKY, "--team", "web", "--json"])));
    pipe("error_share_nobody", &["share", FLAKY]);
    pipe("error_share_two", &["share", FLAKY, "--public", "--org", "x"]);
    pipe("error_share_blank_team", &["share", FLAKY, "--team", " "]);
}

#[test]
fn delete() {
    let home = synced();
    let pipe = |name: &str, arguments: &[&str]| check(name, &home, &home.run(arguments).all());
    let terminal = |name: &str, typed: &str, arguments: &[&str]| {
        check(name, &home, &Terminal::new(&home).with_typed(typed).run(arguments).all());
    };
    pipe("error_delete_pipe", &["delete", FLAKY, OUTBOX]);
    terminal("delete_declined_terminal", "\n", &["delete", FLAKY, OUTBOX, FLAKY]);
    terminal("delete_terminal", "y\n", &["delete", FLAKY]);
    pipe("delete", &["delete", OUTBOX, "7f3c9a52", "--yes"]);
    check("delete_json", &home, &pretty(&home.run(&["delete", "2b6e0d94", "--yes", "--json"])));
    pipe("error_delete_unknown", &["delete", "d95a3b6c", "ffff", "--yes"]);
    check("delete_left", &home, &home.ok(&["sessions"]));
}

#[test]
fn user() {
    let home = synced();
    let terminal = |name: &str, arguments: &[&str]| {
        check(name, &home, &Terminal::new(&home).run(arguments).all());
    };
    let pipe = |name: &str, arguments: &[&str]| check(name, &home, &home.run(arguments).all());
    check("user_without_a_store", &home, &Home::new().run(&["user"]).all());
    terminal("user_terminal", &["user", "--team", "payments", "--color", "never"]);
    check("user_json", &home, &pretty(&home.run(&["user", "show", "--json"])));
    pipe("user_rename", &["user", "rename", "dana", "dana@example.com"]);
    pipe("user_rename_nobody", &["user", "rename", "dana", "dana@example.com"]);
    pipe("error_user_rename", &["user", "rename", "dana"]);
}

#[test]
fn after_a_rename_everything_has_the_new_owner() {
    let home = synced();
    let found = |user: &str| {
        let ran = home.run(&["search", "outbox", "--mode", "full-text", "--user", user, "--json"]);
        let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let results = found["results"].as_array().unwrap().clone();
        assert!(results.iter().all(|result| result["user_id"] == user));
        results.len()
    };
    assert_eq!((found("dana") > 0, found("dana@example.com")), (true, 0));
    home.ok(&["user", "rename", "dana", "dana@example.com"]);
    assert_eq!((found("dana"), found("dana@example.com") > 0), (0, true));
    // The store belongs to the new user too, and a sync as that user reads nothing again.
    let again = home.json(&["sync", "--embedding", "none", "--user", "dana@example.com"]);
    assert_eq!(again["sessions"]["unchanged"], again["sessions"]["found"]);
}
