//! Turns: searches for them, one in full, and summaries.

use std::fs;

use serde_json::Value;

use crate::{
    output::{json, terminal, text},
    support::{Home, SYNCED},
};

const FLAKY: [&str; 5] = ["search", "why is the checkout test flaky", "--unit", "turn", "--limit=3"];

#[test]
fn output() {
    text("search_turns", &FLAKY);
    json("search_turns_json", &FLAKY);
    terminal("search_turns_terminal", 100, &[&FLAKY[..], &["--color", "never"]].concat());
    let ungrouped = ["--color", "never", "--group", "none"];
    terminal("search_turns_ungrouped_terminal", 100, &[&FLAKY[..], &ungrouped].concat());
    text("search_turns_nothing", &["search", "xyzzyplugh", "--unit", "turn", "--mode", "full-text"]);
    text("search_turns_grouped", &[&FLAKY[..], &["--group", "session"]].concat());
    text("turn", &["show", "38e6d1f5#4", "--turn"]);
    text("turn_unknown", &["show", "38e6d1f5", "--turn", "99"]);
    text("turn_of_nothing", &["show", "38e6d1f5", "--turn"]);
}

/// The results have the fields of messages, and both ids. None has a vector.
#[test]
fn results_have_both_messages() {
    let found = SYNCED.json(&FLAKY);
    assert_eq!((found["unit"].as_str(), found["mode"].as_str()), (Some("turn"), Some("hybrid")));
    let result = &found["results"][0];
    for field in
        ["user_id", "session_id", "project", "sequence", "turn", "role", "content_type", "score", "snippet"]
    {
        assert!(!result[field].is_null(), "{field}: {result}");
    }
    let turn = SYNCED.json(&["show", result["address"].as_str().unwrap(), "--turn"]);
    assert_eq!(turn["user"]["message_id"], result["user_message_id"]);
    assert_eq!(turn["assistant"]["message_id"], result["assistant_message_id"]);
    let embedding = &turn["embedding"];
    let content = embedding["content_used"].as_str().unwrap();
    assert!(content.starts_with("User: ") && content.contains("\nAssistant: "), "{content}");
    assert_eq!((embedding["provider"].as_str(), embedding["dim"].as_u64()), (Some("local"), Some(256)));
    assert!(!format!("{found}{turn}").contains("\"vector\""));
}

fn turns(report: &Value) -> u64 {
    report["turns"].as_u64().unwrap()
}

/// Turns are embedded by a sync, or later by a backfill, and only once.
#[test]
fn turns_are_embedded_once() {
    let home = Home::with_samples();
    assert_eq!(turns(&home.json(&["sync", "--no-turns"])), 0);
    let note = home.run(&["search", "cache", "--unit", "turn"]).stderr;
    assert!(note.contains("backfill --turns"), "{note}");
    let made = turns(&home.json(&["embeddings", "backfill"]));
    assert!(made > 20, "{made}");
    for again in [&["embeddings", "backfill", "--turns"][..], &["sync"]] {
        assert_eq!(turns(&home.json(again)), 0, "{again:?}");
    }
    let other = Home::with_samples();
    assert_eq!(turns(&other.json(&["sync"])), made);
    assert_eq!(turns(&other.json(&["embeddings", "backfill", "--no-turns"])), 0);
}

/// Writes a file of summaries and imports it.
fn import(home: &Home, lines: &str) -> crate::call::Ran {
    let file = home.path().join("summaries.jsonl");
    fs::write(&file, lines).unwrap();
    home.run(&["import", "--summaries", file.to_str().unwrap()])
}

/// Imported summaries are found, shown, and refresh only their turns. A sync keeps them.
#[test]
fn summaries_are_imported() {
    let home = Home::with_samples();
    home.ok(&["sync"]);
    let lines = "{\"message_id\": \"38e6d1f5#4\", \"text\": \"A quokka slowed the address form\"}\n\n\
        {\"message_id\": \"38e6d1f5-c290-4a7b-8f14-d6b93e0a5c72_msg_12\", \"text\": \"Counted\", \"by\": \"x\"}\n";
    let ran = import(&home, lines);
    assert_eq!(ran.all(), "exit code 0\n--- stdout\nsummaries  2\nturns      2 embedded\n--- stderr\n");
    home.ok(&["sync", "--verify"]);
    home.shows("search_summaries", &["search", "quokka", "--unit", "turn", "--mode", "full-text"]);
    home.shows("turn_summary", &["show", "38e6d1f5#12", "--turn"]);
    let again = import(&home, lines).stdout;
    assert_eq!(again, "summaries  0 (2 unchanged)\nturns      0 embedded\n");
}

/// A wrong line is named, and nothing is stored.
#[test]
fn wrong_summaries_are_refused() {
    let home = Home::with_samples();
    home.ok(&["sync", "--no-turns"]);
    let good = "{\"message_id\": \"38e6d1f5#4\", \"text\": \"about a quokka\"}";
    for (wrong, expected) in [
        ("{\"message_id\": \"38e6d1f5#4\"}", "line 2: missing field `text`"),
        ("no JSON", "line 2: expected"),
        (
            "{\"message_id\": \"38e6d1f5#4\", \"text\": \" \"}",
            "line 2: must have 1 to 10000 characters (text)",
        ),
        ("{\"message_id\": \"38e6d1f5#9999\", \"text\": \"x\"}", "line 2:"),
        ("{\"message_id\": \"nothing_msg_1\", \"text\": \"x\"}", "line 2:"),
    ] {
        let ran = import(&home, &format!("{good}\n{wrong}\n"));
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.all());
        assert!(ran.stderr.contains("summaries.jsonl, ") && ran.stderr.contains(expected), "{}", ran.stderr);
        assert!(ran.stderr.contains("nothing was stored"), "{}", ran.stderr);
    }
    assert_eq!(home.run(&["search", "quokka", "--unit", "turn", "--mode", "full-text"]).code, 3);
    let missing = home.run(&["import", "--summaries", "nowhere.jsonl"]);
    assert!(missing.code == 1 && missing.stderr.contains("can't read nowhere.jsonl"), "{}", missing.all());
}

/// Exports contain summaries, and with vectors the embeddings; copies contain both.
#[test]
fn turns_travel() {
    let home = Home::with_samples();
    let made = turns(&home.json(&["sync"]));
    import(&home, "{\"message_id\": \"38e6d1f5#4\", \"text\": \"about a quokka\"}\n");
    let url = |name: &str| format!("sqlite:{}", home.path().join(name).display());
    let archive = home.path().join("archive.jsonl").display().to_string();
    let exported = home.json(&["export", "--vectors", "--out", &archive]);
    assert_eq!((turns(&exported), exported["summaries"].as_u64()), (made, Some(1)));
    let imported = home.json(&["--store", &url("imported.sqlite"), "import", &archive]);
    assert_eq!((turns(&imported), imported["summaries"].as_u64()), (made, Some(1)));
    let copied = home.json(&["copy", "--to", &url("copied.sqlite")]);
    assert_eq!((turns(&copied), copied["summaries"].as_u64()), (made, Some(1)));
    for name in ["imported.sqlite", "copied.sqlite"] {
        let url = url(name);
        assert_eq!(turns(&home.json(&["--store", &url, "backfill"])), 0, "{name}");
        let found =
            home.json(&["--store", &url, "search", "quokka", "--unit", "turn", "--mode", "full-text"]);
        assert_eq!(found["results"][0]["summary"]["text"], "about a quokka", "{name}");
    }
}
