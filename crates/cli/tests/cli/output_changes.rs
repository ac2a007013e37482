//! Output of the commands that change sessions.

use crate::{
    output::{check, text},
    support::Home,
    terminal::Terminal,
};

const FLAKY: &str = "38e6d1f5";
const OUTBOX: &str = "c1d84e7a";

#[test]
fn help() {
    for command in ["edit", "tag", "share", "rewind", "delete", "user"] {
        text(&format!("help_{command}"), &[command, "--help"]);
    }
}

#[test]
fn edit() {
    let home = Home::without_vectors();
    let terminal = Terminal::new(&home);
    terminal.shows("edit_terminal", &["edit", FLAKY, "--name", "Port clash\x1b[31m", "--color", "always"]);
    home.shows("edit", &["edit", FLAKY, "--description", "Two runs took one port", "--clear", "tags"]);
    terminal.shows(
        "edit_reset_terminal",
        &["edit", FLAKY, "--color", "never", "--reset", "name,tags,description"],
    );
    home.shows_json("edit_json", &["edit", FLAKY, "--name", "x"]);
    home.shows("error_edit_nothing", &["edit", FLAKY]);
    home.shows("error_edit_twice", &["edit", FLAKY, "--name", "x", "--clear", "name"]);
    home.shows("error_edit_empty_name", &["edit", FLAKY, "--name", " "]);
    home.shows("error_edit_long_name", &["edit", FLAKY, "--name", &"x".repeat(501)]);
    home.shows("error_edit_unknown", &["edit", "ffff", "--name", "x"]);
}

#[test]
fn tag() {
    let home = Home::without_vectors();
    let terminal = Terminal::new(&home);
    home.shows("tags", &["tag"]);
    terminal.shows("tags_terminal", &["tag", "--color", "never"]);
    home.shows_json("tags_json", &["tag"]);
    home.shows("tag_add", &["tag", FLAKY, "port clash", "ci"]);
    terminal.shows("tag_terminal", &["tag", FLAKY, "--remove", "tests", "gone", "--color", "never"]);
    home.shows("tag_list", &["tag", FLAKY]);
    home.shows("tag_last_removed", &["tag", FLAKY, "--remove", "ci", "port clash"]);
    home.shows("tag_none", &["tag", FLAKY]);
    home.shows_json("tag_json", &["tag", FLAKY, "new"]);
    home.shows("tags_of_nobody", &["tag", "--user", "nobody"]);
    home.shows("error_tag_both", &["tag", FLAKY, "a", "--remove", "a"]);
    home.shows("error_tag_control", &["tag", FLAKY, "a\x07b"]);
    home.shows("error_tag_without_session", &["tag", "--remove", "a"]);
}

#[test]
fn share() {
    let home = Home::without_vectors();
    let terminal = Terminal::new(&home);
    home.shows("share_private", &["share", FLAKY, "--private"]);
    terminal.shows("share_team_terminal", &["share", FLAKY, "--team", "web", "payments", "--color", "never"]);
    home.shows("share_org", &["share", FLAKY, "--org", "example.com"]);
    home.shows("share_public", &["share", FLAKY, "--public"]);
    terminal.shows("share_private_again_terminal", &["share", FLAKY, "--private", "--color", "never"]);
    home.shows_json("share_json", &["share", FLAKY, "--team", "web"]);
    home.shows("error_share_nobody", &["share", FLAKY]);
    home.shows("error_share_two", &["share", FLAKY, "--public", "--org", "x"]);
    home.shows("error_share_blank_team", &["share", FLAKY, "--team", " "]);
}

#[test]
fn rewind() {
    let home = Home::without_vectors();
    let terminal = |typed| Terminal::new(&home).with_typed(typed);
    home.shows("error_rewind_pipe", &["rewind", FLAKY, "--to-turn", "2"]);
    home.shows("error_rewind_no_turn", &["rewind", FLAKY]);
    home.shows("error_rewind_unknown", &["rewind", "ffff", "--to-turn", "1"]);
    home.shows("rewind_dry_run", &["rewind", FLAKY, "--to-turn", "2", "--dry-run"]);
    terminal("").shows("rewind_dry_run_terminal", &["rewind", FLAKY, "--to-turn", "1", "--dry-run"]);
    home.shows_json("rewind_dry_run_json", &["rewind", FLAKY, "--to-turn", "1", "--dry-run"]);
    terminal("\n").shows("rewind_declined_terminal", &["rewind", FLAKY, "--to-turn", "0"]);
    terminal("y\n").shows("rewind_terminal", &["rewind", FLAKY, "--to-turn", "2"]);
    terminal("").shows("rewind_nothing_terminal", &["rewind", FLAKY, "--to-turn", "2"]);
    home.shows("rewind_nothing", &["rewind", FLAKY, "--to-turn", "9"]);
    home.shows("rewind", &["rewind", FLAKY, "--to-turn", "1", "--yes"]);
    home.shows_json("rewind_json", &["rewind", OUTBOX, "--to-turn", "1", "--keep-events", "--yes"]);
    // Nothing says to which turns these events belong.
    let folder = home.write_session("p", "no-times", &"{\"role\":\"user\",\"content\":\"x\"}\n".repeat(2));
    std::fs::write(folder.join("events.jsonl"), "{\"ts\":\"2026-01-05T08:00:00Z\",\"event\":\"e\"}\n")
        .unwrap();
    home.ok(&["sync", "--embedding", "none"]);
    home.shows("error_rewind_times", &["rewind", "no-times", "--to-turn", "1", "--yes"]);
}

#[test]
fn delete() {
    let home = Home::without_vectors();
    let terminal = |typed| Terminal::new(&home).with_typed(typed);
    home.shows("error_delete_pipe", &["delete", FLAKY, OUTBOX]);
    terminal("\n").shows("delete_declined_terminal", &["delete", FLAKY, OUTBOX, FLAKY]);
    terminal("y\n").shows("delete_terminal", &["delete", FLAKY]);
    home.shows("delete", &["delete", OUTBOX, "7f3c9a52", "--yes"]);
    home.shows_json("delete_json", &["delete", "2b6e0d94", "--yes"]);
    home.shows("error_delete_unknown", &["delete", "d95a3b6c", "ffff", "--yes"]);
    check("delete_left", &home, &home.ok(&["sessions"]));
}

#[test]
fn delete_by_filter() {
    let home = Home::without_vectors();
    let older = ["delete", "--older-than", "2026-11-03"];
    let with = |more: &[&'static str]| [&older[..], more].concat();
    home.shows("delete_dry_run", &with(&["--dry-run"]));
    home.shows_json("delete_dry_run_json", &with(&["--project", "pipeline", "--dry-run"]));
    Terminal::new(&home).shows("delete_dry_run_terminal", &with(&["--project", "pipeline", "--dry-run"]));
    home.shows("error_delete_filter_pipe", &older);
    let declined = Terminal::new(&home).with_typed("n\n");
    declined.shows("delete_filter_declined_terminal", &with(&["--project", "payments-api"]));
    home.shows("delete_filter", &with(&["--project", "payments-api", "--yes"]));
    home.shows("delete_filter_nothing", &with(&["--project", "payments-api", "--yes"]));
    home.shows("delete_filter_unknown_project", &["delete", "--project", "nowhere", "--yes"]);
    home.shows("error_delete_future", &["delete", "--older-than", "2999-01-01", "--yes"]);
    home.shows("error_delete_age", &["delete", "--older-than", "old", "--yes"]);
    home.shows("error_delete_two_kinds", &["delete", FLAKY, "--project", "web"]);
    home.shows("error_delete_nothing_named", &["delete", "--yes"]);
    home.shows("delete_all_of_nobody", &["delete", "--all", "--user", "nobody", "--yes"]);
    Terminal::new(&home).shows("delete_all_terminal", &["delete", "--all", "--yes"]);
    home.shows("delete_all_left", &["sessions"]);
}

#[test]
fn user() {
    let home = Home::without_vectors();
    let terminal = Terminal::new(&home);
    Home::new().shows("user_without_a_store", &["user"]);
    terminal.shows("user_terminal", &["user", "--team", "payments", "--color", "never"]);
    home.shows_json("user_json", &["user", "show"]);
    home.shows("user_rename", &["user", "rename", "dana", "dana@example.com"]);
    home.shows("user_rename_nobody", &["user", "rename", "dana", "dana@example.com"]);
    home.shows("error_user_rename", &["user", "rename", "dana"]);
}

#[test]
fn after_a_rename_everything_has_the_new_owner() {
    let home = Home::without_vectors();
    let found = |user: &str| {
        let found = home.run_json(&["search", "outbox", "--mode", "full-text", "--user", user]).json();
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
