//! Output of searches with the syntax of queries, for the samples.

use crate::output::text;

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
    text("error_search_two_roles", &["search", "deadlock role:assistant", "--role", "user"]);
    text("error_search_two_role_fields", &["search", "deadlock role:assistant role:user"]);
    text("error_search_unknown_role", &["search", "deadlock role:foo"]);
    text("error_search_excluded_role", &["search", "deadlock -role:user"]);
}

#[test]
fn exact_texts_and_files() {
    text("search_exact", &["search", "--exact", "hooks.py:141", "--limit", "2"]);
    text("search_file", &["search", "--file", "app/ledger/transfer.py", "retry", "--limit", "2"]);
    text("search_file_of_no_session", &["search", "--file", "app/none.py", "retry"]);
}
