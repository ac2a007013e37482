//! Output of searches with the syntax of queries, for the samples.

use crate::output::{json, terminal, text};

#[test]
fn phrases_and_words() {
    let full_text = |name: &str, query: &str| {
        text(name, &["search", query, "--mode", "full-text", "--limit", "2"]);
    };
    full_text("search_phrase", r#""unique constraint""#);
    full_text("search_phrase_of_other_words", r#""constraint unique" dashboard"#);
    full_text("search_excluded_word", "idempotency -webhook");
    full_text("search_all_excluded", "idempotency -idempotency");
    full_text("search_typo", "deadlck");
}

#[test]
fn fields() {
    text("search_role", &["search", "deadlock role:user", "--limit", "2"]);
    text("search_only_fields", &["search", "tool:grep", "--limit", "2"]);
    text("search_project", &["search", "deadlock project:brewery"]);
}

#[test]
fn fields_that_are_text() {
    let full_text = |name: &str, query: &[&str]| {
        text(name, &[&["search"], query, &["--mode", "full-text", "-n", "1"]].concat());
    };
    full_text("search_unknown_role", &["deadlock role:admin"]);
    full_text("search_excluded_role", &["deadlock -role:user"]);
    full_text("search_words_as_fields", &["deadlock after:hours session:new turn:left in:place"]);
    full_text("search_field_finds_nothing", &["tool:bash zzzz"]);
    text("error_search_role_option", &["search", "deadlock", "--role", "admin"]);
}

#[test]
fn fields_that_nothing_meets() {
    for (name, typed) in [
        ("search_two_roles", &["deadlock role:assistant", "--role", "user"][..]),
        ("search_two_role_fields", &["deadlock role:assistant role:user"]),
        ("search_impossible_period", &["deadlock after:2026-03-01 before:2026-02-01"]),
        ("search_period_of_field_and_option", &["deadlock", "after:2026-03-01", "--until", "2026-02-01"]),
        ("search_unknown_session", &["deadlock session:3a7c1e90"]),
        ("search_unknown_project", &["deadlock project:nothing"]),
    ] {
        text(name, &[&["search"], typed].concat());
    }
    json("search_two_role_fields_json", &["search", "role:user role:tool", "--mode", "full-text"]);
    text("timeline_impossible_period", &["timeline", "deadlock after:2026-03-01 before:2026-02-01"]);
}

#[test]
fn queries_without_quotes() {
    for (name, typed) in [
        ("search_unquoted", "search delete -rf tables -n 1 --mode full-text"),
        ("search_unquoted_excluded", "search idempotency -webhook -n2 --mode full-text"),
        ("error_search_unquoted_option", "search git reset --hard --limit 3"),
        ("error_search_mistyped_option", "search deadlock --limt 3"),
        ("error_search_short_option", "search grep -n foo"),
        ("error_timeline_unquoted_option", "timeline git reset --hard"),
    ] {
        text(name, &typed.split(' ').collect::<Vec<_>>());
    }
}

#[test]
fn sessions_one_on_a_line() {
    text("search_list", &["search", "-l", "deadlock", "-n", "3"]);
    text("search_list_of_everyone", &["search", "deadlock", "-l", "--scope", "all"]);
    terminal("search_list_terminal", 80, &["search", "deadlock", "-l", "-n", "3"]);
    text("search_project_short", &["search", "-l", "deadlock", "-p", "brewery"]);
    text("sessions_short_options", &["sessions", "-p", "brewery", "-n", "1"]);
    text("search_list_of_turns", &["search", "deadlock", "-l", "-n", "2", "--unit", "turn"]);
}

#[test]
fn exact_texts_and_files() {
    text("search_exact", &["search", "--exact", "hooks.py:141", "--limit", "2"]);
    text("search_file", &["search", "--file", "app/ledger/transfer.py", "retry", "--limit", "2"]);
    text("search_file_of_no_session", &["search", "--file", "app/none.py", "retry"]);
}
