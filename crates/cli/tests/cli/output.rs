//! Output of the program for the samples.

use crate::{
    support::{Home, SYNCED},
    terminal::Terminal,
};

/// Replaces what differs between runs and machines.
fn filters(home: &Home) -> Vec<(String, &'static str)> {
    let program = env!("CARGO_BIN_EXE_amplifier-sessions").replace('.', r"\.");
    vec![
        (program, "amplifier-sessions"),
        (home.path().display().to_string().replace('.', r"\."), "[HOME]"),
        (r"\d+\.\d seconds?".to_owned(), "[SECONDS] seconds"),
        (r"(?m)^seconds +[\d.]+$".to_owned(), "seconds   [SECONDS]"),
        (r#""seconds": [\d.e-]+"#.to_owned(), r#""seconds": "[SECONDS]""#),
        (r#""host_id": "[^"]+""#.to_owned(), r#""host_id": "[HOST]""#),
        (r"(?m)^(machine\s+)\S+$".to_owned(), "$1[HOST]"),
        // The order of results is enough: scores change with every weight.
        (r#""(score|text_score|similarity)": -?\d+\.\d+"#.to_owned(), r#""$1": "[SCORE]""#),
        (r"(?m)^[01]\.\d{3}\t".to_owned(), "[SCORE]\t"),
        (r"(?m)· [01]\.\d\d(\x1b\[0m)?$".to_owned(), "· [SCORE]$1"),
        (r"(?m)^(store|index) +[\d.]+ [KMG]?B  ".to_owned(), "$1 [SIZE]  "),
        (r"(?m)^(place\t\w+\t)\d+".to_owned(), "$1[BYTES]"),
        (r#""bytes": \d+"#.to_owned(), r#""bytes": "[BYTES]""#),
        (r"(?m)^(first shared\s+)2\d{3}-.*$".to_owned(), "$1[NOW]"),
        (r#""shared_at": "[^"]+""#.to_owned(), r#""shared_at": "[NOW]""#),
        (r#"superseded_at": "[^"]+""#.to_owned(), r#"superseded_at": "[NOW]""#),
        (r"superseded 2\d{3}-\d\d-\d\d \d\d:\d\d".to_owned(), "superseded [NOW]"),
    ]
}

pub(crate) fn check(name: &str, home: &Home, text: &str) {
    let filters = filters(home);
    let filters: Vec<(&str, &str)> =
        filters.iter().map(|(pattern, with)| (pattern.as_str(), *with)).collect();
    insta::with_settings!({ filters => filters, omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, text);
    });
}

impl Home {
    /// Compares the output of a command with a snapshot.
    pub(crate) fn shows(&self, name: &str, arguments: &[&str]) {
        check(name, self, &self.run(arguments).all());
    }

    /// The same with `--json`.
    pub(crate) fn shows_json(&self, name: &str, arguments: &[&str]) {
        let ran = self.run_json(arguments);
        check(name, self, &format!("exit code {}\n{:#}\n--- stderr\n{}", ran.code, ran.json(), ran.stderr));
    }
}

impl Terminal<'_> {
    /// Compares the output of a command with a snapshot.
    pub(crate) fn shows(&self, name: &str, arguments: &[&str]) {
        check(name, self.home, &self.run(arguments).all());
    }
}

pub(crate) fn text(name: &str, arguments: &[&str]) {
    SYNCED.shows(name, arguments);
}

pub(crate) fn terminal(name: &str, columns: u16, arguments: &[&str]) {
    Terminal::new(&SYNCED).with_columns(columns).shows(name, arguments);
}

pub(crate) fn json(name: &str, arguments: &[&str]) {
    SYNCED.shows_json(name, arguments);
}

#[test]
fn help() {
    text("help", &["--help"]);
    text("help_short", &["-h"]);
    text("help_short_events", &["events", "-h"]);
    for command in [
        "quickstart",
        "sync",
        "search",
        "timeline",
        "sessions",
        "show",
        "files",
        "events",
        "sql",
        "export",
        "import",
        "copy",
        "restore",
        "backup",
        "verify",
        "salvage",
        "doctor",
        "completions",
    ] {
        text(&format!("help_{command}"), &[command, "--help"]);
    }
    text("help_init", &["config", "init", "--help"]);
}

#[test]
fn verify() {
    text("verify", &["verify"]);
    text("verify_session", &["verify", "7f3c9a52", "--no-disk"]);
    text("gaps", &["verify", "--gaps"]);
    json("gaps_json", &["verify", "--gaps", "7f3c9a52"]);
}

#[test]
fn sync() {
    let home = Home::with_samples();
    home.shows("sync_dry_run", &["sync", "--dry-run"]);
    assert!(!home.amplifier().join("sessions.sqlite").exists());
    Terminal::new(&home).with_columns(60).shows("sync_dry_run_terminal", &["sync", "--dry-run"]);
    home.shows("sync_first", &["sync"]);
    home.shows("sync_again", &["sync"]);
    check("sync_json", &home, &format!("{:#}", home.json(&["sync"])));
}

#[test]
fn init() {
    let home = Home::new();
    home.shows("init", &["config", "init"]);
    assert!(home.amplifier().join("sessions.sqlite").exists());
    check("init_json", &home, &format!("{:#}", home.json(&["config", "init"])));
    home.shows("error_init_with_rls", &["config", "init", "--with-rls"]);
}

#[test]
fn quickstart() {
    let home = Home::new();
    home.shows("quickstart_samples", &["quickstart"]);
    let question = |color| ["quickstart", "product", "page", "slow", "--color", color];
    Terminal::new(&home).with_columns(60).shows("quickstart_terminal_narrow", &question("never"));
    home.shows("quickstart_question_coloured", &question("always"));
    Home::with_samples().shows("quickstart_own", &["quickstart"]);
}

#[test]
fn search() {
    text("search", &["search", "why were customers charged twice", "--limit", "4"]);
    text("search_full", &["search", "idempotency key", "--limit", "1", "--mode", "full-text", "--full"]);
    text("search_nothing", &["search", "xyzzyplugh", "--mode", "full-text"]);
    json("search_json", &["search", "nightly job killed exit code 137", "--limit", "2"]);
    json("search_nothing_json", &["search", "xyzzyplugh", "--mode", "full-text"]);
}

#[test]
fn sessions() {
    text("sessions", &["sessions"]);
    text("sessions_of_project", &["sessions", "--project", "-home-dana-payments-api", "--limit", "2"]);
    text("sessions_of_unknown_project", &["sessions", "--project", "brewery"]);
    json("sessions_json", &["sessions", "--limit", "1"]);
}

#[test]
fn show() {
    text("show", &["show", "38e6d1f5", "--limit", "6"]);
    text("show_events", &["show", "7f3c9a52", "--events", "--limit", "8"]);
    text("show_beyond_the_end", &["show", "38e6d1f5", "--from", "500"]);
    text("show_no_such_message", &["show", "38e6d1f5#500"]);
    for typed in [&["show", "38e6d1f5#500", "--context"][..], &["show", "38e6d1f5#500", "--turn"]] {
        assert_eq!(SYNCED.run(typed).all(), SYNCED.run(&["show", "38e6d1f5#500"]).all());
    }
    text("show_no_such_event", &["show", "38e6d1f5", "--events", "--from", "500"]);
    json("show_json", &["show", "2b6e0d94", "--from", "1", "--limit", "2"]);
    json("show_events_json", &["show", "6c1f9e80", "--events", "--from", "1", "--limit", "1", "--full"]);
}

#[test]
fn context() {
    text("context_turn", &["show", "--context", "c1d84e7a", "--turn", "2", "--before", "0", "--after", "0"]);
    text("context_message", &["show", "--context", "38e6d1f5#5", "--before", "1", "--after", "1"]);
    let without = SYNCED.ok(&["show", "38e6d1f5#5", "--context", "--no-tools", "--no-thinking"]);
    let all = SYNCED.ok(&["show", "38e6d1f5#5", "--context"]);
    assert!(!without.contains("Thinking") && without.len() < all.len(), "{without}");
    json("context_json", &["show", "--context", "38e6d1f5#5", "--before", "0", "--after", "0"]);
}

#[test]
fn errors() {
    text("error_unknown_session", &["show", "ffffffff"]);
    text("error_bad_mode", &["search", "x", "--mode", "fuzzy"]);
    text("error_bad_date", &["sessions", "--since", "tomorrow"]);
    text("error_bad_limit", &["search", "x", "--limit", "0"]);
    text("error_bad_level", &["events", "--level", "loud"]);
    text("error_bad_cursor", &["events", "--after", "x"]);
    text("error_bad_project", &["sessions", "--project", ""]);
    text("error_until_before_since", &["sessions", "--since", "2026-11-02", "--until", "2026-11-01"]);
    text("error_since_in_the_future", &["events", "--since", "2100-01-01"]);
    text("error_turns", &["search", "x", "--min-turns", "5", "--max-turns", "2"]);
    text("error_team_without_scope", &["sessions", "--team", "payments"]);
    text("error_bad_content_type", &["search", "x", "--in", "answers"]);
    text("error_unknown_store", &["--store", "mysql:x", "sessions"]);
    text("error_password_in_url", &["--store", "postgres://ana:quondam@db/x", "sessions"]);
    text("error_unknown_turn", &["show", "--context", "38e6d1f5", "--turn", "99"]);
    text("error_no_embedding", &["search", "x", "--mode", "semantic", "--embedding", "none"]);
    text("error_unknown_command", &["serch", "x"]);
    let home = Home::new();
    home.shows("error_missing_store", &["search", "x"]);
    home.shows("error_missing_root", &["sync"]);
    for session in ["abc-1", "abc-2"] {
        let line = r#"{"role":"user","content":"x","timestamp":"2026-01-05T08:00:00Z"}"#;
        home.write_session("p", session, &format!("{line}\n"));
    }
    home.ok(&["sync"]);
    home.shows("error_ambiguous_session", &["show", "abc"]);
}
