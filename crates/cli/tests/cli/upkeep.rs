//! Refreshes, deletions and kept rows.

use std::{fs, io::Write as _, path::PathBuf};

use serde_json::json;

use crate::support::Home;

fn transcript(home: &Home, session: &str) -> PathBuf {
    home.amplifier().join("projects/shop/sessions").join(session).join("transcript.jsonl")
}

fn line(text: &str) -> String {
    format!("{}\n", json!({"role": "user", "content": text}))
}

fn append(home: &Home, session: &str, text: &str) {
    let mut file = fs::File::options().append(true).open(transcript(home, session)).unwrap();
    file.write_all(line(text).as_bytes()).unwrap();
}

/// A home folder with the sessions `one` and `two`, of three messages each.
fn home() -> Home {
    let home = Home::new();
    for session in ["one", "two"] {
        home.write_session("shop", session, &["quokka", "wombat", "numbat"].map(line).concat());
    }
    home
}

/// A home folder with synced sessions.
fn synced() -> Home {
    let home = home();
    home.ok(&["sync"]);
    home
}

/// The exit code and stderr of a search for `word`.
fn search(home: &Home, word: &str, more: &[&str]) -> (i32, String) {
    let ran = home.run(&[&["search", word, "--mode", "full-text", "--project", "shop"], more].concat());
    (ran.code, ran.stderr)
}

#[test]
fn sync_kept() {
    let home = synced();
    fs::write(transcript(&home, "one"), "").unwrap();
    let whole = fs::read(transcript(&home, "two")).unwrap();
    fs::write(transcript(&home, "two"), &whole[..whole.len() / 2]).unwrap();
    home.shows("sync_kept", &["sync"]);
    let report = home.json(&["sync"]);
    assert_eq!((&report["kept_rows"], &report["kept"][0]["reason"].is_string()), (&json!(5), &true));
    assert_eq!(search(&home, "numbat", &[]).0, 0);
    let accepted = home.json(&["sync", "--accept-removals"]);
    assert_eq!((&accepted["kept_rows"], &accepted["messages"]["removed"]), (&json!(0), &json!(5)));
    assert_eq!(search(&home, "numbat", &[]).0, 3);
}

#[test]
fn changes_are_found_without_a_sync() {
    let home = synced();
    append(&home, "one", "okapi");
    assert_eq!(search(&home, "okapi", &["--no-refresh"]).0, 3);
    assert_eq!(search(&home, "okapi", &[]), (0, String::new()));
    let semantic = home.json(&["search", "okapi", "--mode", "semantic", "--limit", "1", "--no-refresh"]);
    assert_eq!(semantic["results"][0]["sequence"], 3, "its vector was made too");
    assert_eq!(semantic["incomplete"], json!([{"reason": "not_refreshed", "because": "turned_off"}]));
    assert!(home.json(&["search", "okapi"]).get("incomplete").is_none());
    append(&home, "two", "one more");
    let sessions = home.json(&["sessions"]);
    let counts: Vec<_> =
        sessions["sessions"].as_array().unwrap().iter().map(|s| &s["message_count"]).collect();
    assert_eq!(counts, [4, 4]);
}

#[test]
fn slow_commands_report_progress_on_stderr() {
    let home = synced();
    let many: String = (0..1_500).map(|n| line(&format!("{n} {}", "filler ".repeat(1_000)))).collect();
    fs::write(transcript(&home, "two"), many).unwrap();
    append(&home, "one", "okapi");
    let (code, stderr) = search(&home, "okapi", &[]);
    assert_eq!(code, 3);
    let note = "note: 2 sessions changed since the last sync; run `";
    assert!(stderr.starts_with(note) && stderr.contains(" sync`\n"), "{stderr}");
}

#[test]
fn a_refresh_needs_the_configured_store_user_and_root() {
    let home = synced();
    append(&home, "one", "okapi");
    let store = format!("sqlite:{}/sessions.sqlite", home.amplifier().display());
    assert_eq!(search(&home, "okapi", &["--store", &store]).0, 3, "a store that is typed");
    assert_eq!(search(&home, "okapi", &["--user", "eve"]).0, 3, "another user");
    for (variable, value) in [("AMPLIFIER_SESSIONS_ROOT", "/nowhere"), ("AMPLIFIER_SESSIONS_REFRESH", "off")]
    {
        let call = home.call(&["search", "okapi", "--mode", "full-text"]);
        assert_eq!(call.env(variable, value).run().code, 3, "{variable}");
    }
    home.configure("refresh = false\n");
    assert_eq!(search(&home, "okapi", &[]).0, 3, "turned off");
    home.configure("root = '/nowhere'\n");
    assert_eq!(
        search(&home, "okapi", &[]),
        (3, "note: no message matches\n".to_owned()),
        "a root that is not there"
    );
    home.configure(&format!("store = '{store}'\nroot = '~/.amplifier'\n"));
    assert_eq!(search(&home, "okapi", &[]).0, 0, "both stand in the file");
}

#[test]
fn a_refresh_makes_no_paid_calls() {
    let home = synced();
    append(&home, "one", "okapi");
    // A call would fail: there is no key and no service.
    home.configure("embedding = 'openai'\n[openai]\nbase_url = 'http://127.0.0.1:9/v1'\n");
    assert_eq!(search(&home, "okapi", &[]).0, 0);
}

#[test]
fn sync_uses_the_configuration_file() {
    let home = home();
    let log = "{\"event\":\"tool:pre\",\"ts\":\"2026-01-05T10:00:00Z\",\"data\":{\"tool\":\"bash\"}}\n";
    fs::write(transcript(&home, "one").with_file_name("events.jsonl"), log).unwrap();
    home.configure(
        "exclude = ['*/two']\nevents = 'summary'\norg = 'acme'\nteams = ['payments']\n[cosmos]\nkey_file = '~/none'\n",
    );
    assert_eq!(home.json(&["sync"])["sessions"]["found"], 1);
    let events = home.json(&["events", "--session", "one", "--full"]);
    assert!(events["events"][0]["line"].is_null(), "{events}");
    home.ok(&["sync", "--events", "full"]);
    assert!(home.json(&["events", "--session", "one", "--full"])["events"][0]["line"].is_object());
    // A team in the file has an effect only with --scope visible.
    assert_eq!(home.run(&["sessions"]).code, 0);
    home.ok(&["share", "one", "--team", "payments"]);
    let visible = home.json(&["sessions", "--user", "eve", "--scope", "visible"]);
    assert_eq!(visible["sessions"][0]["session_id"], "one");
}

#[test]
fn a_note_counts_missing_vectors_and_names_the_command_to_make_them() {
    let home = synced();
    append(&home, "one", "okapi");
    home.ok(&["sync", "--embedding", "none"]);
    let note = |arguments: &[&str]| {
        let ran = home.run(&[arguments, &["search", "quokka", "--no-refresh"]].concat());
        ran.stderr.lines().next().unwrap_or_default().replace("amplifier-sessions", "as")
    };
    assert_eq!(note(&[]), "note: 1 of 7 messages have no vectors yet; run `as embeddings backfill`");
    assert_eq!(
        home.run(&["search", "quokka", "--no-refresh", "--session", "two"]).stderr,
        "note: 1 of 7 messages have no vectors yet (counted without the filters); run `amplifier-sessions embeddings backfill`\n"
    );
    assert_eq!(
        note(&["--scope", "all", "--user", "eve"]),
        "note: 1 of 7 messages have no vectors yet; they belong to other users, who can run `embeddings backfill`"
    );
    assert!(
        note(&["--scope", "all"]).contains("; run `as --scope all embeddings backfill`"),
        "{}",
        note(&["--scope", "all"])
    );
}

#[test]
fn a_refresh_reports_damaged_files_whose_rows_are_kept() {
    let home = synced();
    fs::write(transcript(&home, "one"), "").unwrap();
    let (code, stderr) = search(&home, "numbat", &[]);
    assert_eq!((code, stderr.matches("kept: shop/one/transcript.jsonl").count()), (0, 1), "{stderr}");
    assert!(stderr.contains("amplifier-sessions sync --accept-removals`\n"), "{stderr}");
}
