//! `secrets`, and masking secrets in the store.

use amplifier_session_testkit::erasure::files_with;

use crate::{output::text, support::Home, terminal::Terminal};

const ONE: &str = "38e6d1f5-c290-4a7b-8f14-d6b93e0a5c72";
const TWO: &str = "c1d84e7a-52b6-4f09-a3e8-7d90b4f1c6a5";

/// A token that is put together at run time.
fn token() -> String {
    ["gh", "p_", "9aB3xK7mQ2wE5rT8yU", "1iO4pL6zC0vN3sD7fG"].concat()
}

/// A transcript of one message.
fn message(text: &str) -> String {
    let metadata = serde_json::json!({"timestamp": "2026-01-05T08:00:00Z"});
    serde_json::json!({"role": "user", "content": text, "metadata": metadata}).to_string() + "\n"
}

/// A home with two sessions, of which one has secrets: in a message, and in an event within escaped JSON.
fn home() -> Home {
    let home = Home::new();
    let folder = home.write_session("shop", ONE, &message(&format!("Why is {} refused?", token())));
    let inner = serde_json::json!({"env": {"DB_PASSWORD": "aB3!dE6#gH9$"}}).to_string();
    let event = serde_json::json!({"ts": "2026-01-05T08:00:01Z", "event": "tool:post", "data": {"result": {"output": inner}}});
    std::fs::write(folder.join("events.jsonl"), format!("{event}\n")).unwrap();
    home.write_session("blog", TWO, &message("How do I rotate a key?"));
    home
}

#[test]
fn help() {
    text("help_secrets", &["secrets", "--help"]);
}

#[test]
fn secrets_are_listed() {
    let home = home();
    home.ok(&["sync", "--embedding", "none"]);
    home.shows("secrets", &["secrets"]);
    home.shows_json("secrets_json", &["secrets"]);
    Terminal::new(&home).shows("secrets_terminal", &["secrets", "--color", "never"]);
    home.shows("secrets_of_session", &["secrets", "c1d84e7a"]);
    home.shows("secrets_of_project", &["secrets", "--project", "blog"]);
    home.shows("secrets_off", &["secrets", "--redact", "off"]);
    home.shows("error_secrets_unknown", &["secrets", "ffff"]);
    home.shows("error_redact", &["sync", "--redact", "perhaps"]);
}

#[test]
fn masked_secrets_are_not_in_any_file_of_the_store() {
    let home = home();
    let synced = home.json(&["sync", "--redact", "mask", "--embedding", "none"]);
    assert_eq!(synced["secrets_masked_in_store"], 2);
    let masked = |home: &Home| {
        assert_eq!(home.run(&["secrets"]).code, 3);
        home.ok(&["verify"]);
        assert_eq!(home.run(&["search", &token(), "--mode", "full-text"]).code, 3);
        let shown = home.ok(&["show", "38e6d1f5"]);
        assert!(shown.contains(&format!("Why is {} refused?", "*".repeat(40))), "{shown}");
        let events = home.ok(&["events", "--session", "38e6d1f5", "--full", "--json"]);
        assert!(!events.contains("aB3!") && events.contains("************"), "{events}");
        for secret in [token().as_str(), "aB3!dE6#gH9$"] {
            let found = files_with(&home.amplifier(), secret.as_bytes());
            assert!(found.iter().all(|file| file.starts_with("projects/")), "{found:?}");
        }
    };
    masked(&home);
    // Commands that choose nothing follow the store.
    let again = home.json(&["sync", "--embedding", "none"]);
    assert_eq!((&again["messages"]["written"], &again["events"]["written"]), (&0.into(), &0.into()));
    masked(&home);
    // What was masked comes back from the files, and can be masked again.
    let marked = home.json(&["sync", "--redact", "mark", "--embedding", "none"]);
    assert_eq!((&marked["messages"]["written"], &marked["events"]["written"]), (&1.into(), &1.into()));
    assert_eq!(home.json(&["secrets"])["count"], 2);
    let refused = home.run(&["sync", "--redact", "mask", "--embedding", "none"]);
    assert_eq!(refused.code, 2);
    assert_eq!(home.json(&["secrets"])["count"], 2);
    home.ok(&["sync", "--redact", "mask", "--yes", "--embedding", "none"]);
    masked(&home);
}

#[test]
fn the_first_masking_of_a_store_asks() {
    let home = home();
    home.ok(&["sync", "--embedding", "none"]);
    home.shows("error_first_masking", &["sync", "--redact", "mask", "--embedding", "none"]);
    let masking = ["sync", "--redact", "mask", "--embedding", "none", "--color", "never"];
    Terminal::new(&home).with_typed("n\n").shows("first_masking_declined", &masking);
    // A watcher has nobody to ask.
    let watched = home.run(&["watch", "--redact", "mask", "--embedding", "none"]);
    assert!(watched.code == 1 && watched.stderr.contains("are not masked yet"), "{}", watched.all());
    assert_eq!(home.json(&["secrets"])["count"], 2);
    // Without secrets in stored lines, there is nothing to ask.
    let other = Home::new();
    other.write_session("blog", TWO, &message("How do I rotate a key?"));
    other.ok(&["sync", "--embedding", "none"]);
    other.ok(&["sync", "--redact", "mask", "--embedding", "none"]);
    // Nor if the store has no lines yet, or masks already.
    other.write_session("shop", ONE, &message(&format!("Why is {} refused?", token())));
    other.ok(&["sync", "--redact", "mask", "--embedding", "none"]);
    assert_eq!(other.run(&["secrets"]).code, 3);
}

#[test]
fn the_secrets_of_one_message_are_purged() {
    let home = home();
    home.ok(&["sync", "--embedding", "none"]);
    let address =
        home.json(&["secrets"])["sessions"][0]["secrets"][0]["address"].as_str().unwrap().to_owned();
    assert!(home.ok(&["show", &address]).contains(&token()));
    home.shows("error_purge", &["secrets", "--purge", &address]);
    home.shows("purge", &["secrets", "--purge", &address, "--yes"]);
    let is_gone = || {
        assert!(!home.ok(&["show", &address]).contains(&token()));
        assert_eq!(home.run(&["search", &token(), "--mode", "full-text"]).code, 3);
        let found = files_with(&home.amplifier(), token().as_bytes());
        assert!(found.iter().all(|file| file.starts_with("projects/")), "{found:?}");
        assert_eq!(home.json(&["secrets"])["count"], 1);
    };
    is_gone();
    // The file still has the secret.
    home.ok(&["sync", "--verify", "--embedding", "none"]);
    home.ok(&["verify"]);
    is_gone();
    home.shows("purge_nothing", &["secrets", "--purge", &address, "--yes"]);
}

#[test]
fn harmless_findings_are_ignored() {
    let home = home();
    home.ok(&["sync", "--embedding", "none"]);
    home.shows("ignore", &["secrets", "--ignore", "38e6d1f5#0"]);
    home.shows("secrets_ignored", &["secrets"]);
    home.shows_json("ignore_json", &["secrets", "--unignore", "38e6d1f5#0"]);
    assert_eq!(home.json(&["secrets"])["count"], 2);
}

#[test]
fn a_copy_remembers_what_was_purged_and_ignored() {
    let home = home();
    home.ok(&["sync", "--embedding", "none"]);
    let found = home.json(&["secrets"])["sessions"][0]["secrets"].clone();
    let [purged, ignored] = [0, 1].map(|at| found[at]["address"].as_str().unwrap().to_owned());
    home.ok(&["secrets", "--purge", &purged, "--yes"]);
    home.ok(&["secrets", "--ignore", &ignored]);
    let other = ["--store", "sqlite:~/other.sqlite", "--embedding", "none"];
    home.ok(&["copy", "--to", "sqlite:~/other.sqlite"]);
    let nothing = || assert_eq!(home.run(&[&["secrets"], &other[..]].concat()).code, 3);
    nothing();
    // The files still have both.
    home.ok(&[&["sync", "--verify"], &other[..]].concat());
    nothing();
}

#[test]
fn an_import_masks_too() {
    let home = home();
    home.ok(&["sync", "--embedding", "none"]);
    let archive = home.path().join("archive.jsonl");
    home.ok(&["export", "--out", archive.to_str().unwrap()]);
    let other = ["--store", "sqlite:~/other.sqlite", "--embedding", "none"];
    home.ok(&[&["import", archive.to_str().unwrap(), "--redact", "mask"], &other[..]].concat());
    assert_eq!(home.run(&[&["secrets"], &other[..]].concat()).code, 3);
    let shown = home.ok(&[&["show", "38e6d1f5"], &other[..]].concat());
    assert!(shown.contains(&format!("Why is {} refused?", "*".repeat(40))), "{shown}");
}
