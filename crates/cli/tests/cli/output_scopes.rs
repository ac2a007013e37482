//! Output for sessions of several users.

use std::sync::LazyLock;

use crate::{support::Home, terminal::Terminal};

/// A home folder whose store contains Dana's samples and sessions of Eve, one of which is shared.
static SHARED: LazyLock<Home> = LazyLock::new(|| Home::shared("scopes", fill));

fn fill(home: &Home) {
    home.put_samples();
    home.ok(&["sync", "--embedding", "none"]);
    let root = home.path().join("eve");
    for (session, question) in [
        ("e7e00001-aaaa", "How do refunds and charged-back payments reach the ledger?"),
        ("e7e00002-bbbb", "A private matter of refunds"),
    ] {
        let folder = root.join("projects/-home-eve-billing/sessions").join(session);
        std::fs::create_dir_all(&folder).unwrap();
        let line = |role: &str, text: &str| {
            format!("{{\"role\":{role:?},\"content\":{text:?},\"timestamp\":\"2026-11-15T08:00:00Z\"}}\n")
        };
        let lines = line("user", question) + &line("assistant", "By way of the **outbox**.");
        std::fs::write(folder.join("transcript.jsonl"), lines).unwrap();
        let event =
            "{\"ts\":\"2026-11-15T08:00:01Z\",\"lvl\":\"WARN\",\"event\":\"llm:retry\",\"data\":{}}\n";
        std::fs::write(folder.join("events.jsonl"), event).unwrap();
    }
    let root = root.display().to_string();
    home.ok(&["sync", "--embedding", "none", "--user", "eve", "--root", &root]);
    home.ok(&["share", "e7e00001", "--team", "payments", "--user", "eve"]);
}

const AS_MEMBER: [&str; 4] = ["--scope", "visible", "--team", "core,payments"];

fn text(name: &str, arguments: &[&str]) {
    SHARED.shows(name, arguments);
}

fn terminal(name: &str, columns: u16, arguments: &[&str]) {
    let arguments = [arguments, &["--color", "never"]].concat();
    Terminal::new(&SHARED).with_columns(columns).shows(name, &arguments);
}

#[test]
fn who_sees_what() {
    let owners = |arguments: &[&str]| {
        let found = SHARED.json(&[&["sessions", "--project", "-home-eve-billing"], arguments].concat());
        let sessions = found["sessions"].as_array().unwrap();
        sessions.iter().map(|session| session["user_id"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(owners(&AS_MEMBER), [r#""eve""#]);
    assert_eq!(owners(&["--scope", "all"]), [r#""eve""#, r#""eve""#]);
    assert_eq!(owners(&["--user", "eve"]), [r#""eve""#, r#""eve""#]);
    for blind in [&["--scope", "visible"][..], &["--scope", "visible", "--team", "core"], &["--scope", "own"]]
    {
        let ran = SHARED.run(&[&["sessions", "--project", "-home-eve-billing"], blind].concat());
        assert_eq!(ran.code, 3, "{blind:?}: {}", ran.stdout);
    }
    assert_eq!(SHARED.run(&["show", "e7e00002", "--scope", "visible", "--team", "payments"]).code, 1);
}

#[test]
fn the_environment_names_the_viewer() {
    let call = |arguments: &[&str]| SHARED.call(arguments).env("AMPLIFIER_SESSIONS_TEAMS", "core,payments");
    let visible = call(&["show", "e7e00001"]).env("AMPLIFIER_SESSIONS_SCOPE", "visible").run();
    assert_eq!(visible.code, 0, "{}", visible.stderr);
    assert_eq!(call(&["show", "e7e00001", "--scope", "own"]).run().code, 1);
    let wrong = call(&["sessions"]).env("AMPLIFIER_SESSIONS_SCOPE", "mine").run();
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.stderr.starts_with("error: invalid value 'mine' for '--scope <SCOPE>'"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn sessions_of_others_cannot_be_changed() {
    for command in [
        &["edit", "e7e00001", "--name", "x"][..],
        &["tag", "e7e00001", "x"],
        &["share", "e7e00001", "--private"],
        &["rewind", "e7e00001", "--to-turn", "0", "--yes"],
        &["delete", "e7e00001", "--yes"],
    ] {
        let ran = SHARED.run(&[command, &["--scope", "all"]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{command:?}");
        assert!(ran.stderr.contains("no session matches e7e00001"), "{command:?}: {}", ran.stderr);
    }
}

#[test]
fn owners_are_named() {
    let as_member = |arguments: &[&'static str]| [arguments, &AS_MEMBER[..]].concat();
    terminal("scope_sessions_terminal", 100, &as_member(&["sessions", "--limit", "5"]));
    text("scope_sessions", &as_member(&["sessions", "--limit", "4"]));
    text("scope_tree", &["sessions", "--tree", "--limit", "5", "--scope", "all"]);
    terminal("scope_tree_terminal", 100, &["sessions", "--tree", "--limit", "9", "--scope", "all"]);
    terminal(
        "scope_search_terminal",
        100,
        &as_member(&["search", "refunds", "--mode", "full-text", "--limit", "2"]),
    );
    text("scope_search", &as_member(&["search", "refunds", "--mode", "full-text", "--limit", "1"]));
    terminal(
        "scope_recent_terminal",
        100,
        &["sessions", "--by", "project", "--since", "2020-01-01", "--scope", "all", "--limit", "1"],
    );
    text(
        "scope_recent",
        &["sessions", "--by", "project", "--since", "2020-01-01", "--scope", "all", "--limit", "1"],
    );
    terminal("scope_show_terminal", 100, &as_member(&["show", "e7e00001"]));
    terminal("scope_events_terminal", 100, &as_member(&["events", "--level", "warn"]));
    terminal("scope_sessions_terminal_narrow", 60, &as_member(&["sessions", "--limit", "3"]));
    terminal("scope_events_terminal_narrow", 60, &as_member(&["events", "--level", "warn"]));
    text("scope_events", &as_member(&["events", "--level", "warn"]));
}

#[test]
fn hints_repeat_the_options_of_the_command() {
    let home = Home::new();
    let store = format!("sqlite:{}", home.path().join("a b.sqlite").display());
    home.shows("error_missing_named_store", &["search", "x", "--store", &store]);
    text("error_unknown_session_in_scope", &["show", "ffffffff", "--scope", "all"]);
}
