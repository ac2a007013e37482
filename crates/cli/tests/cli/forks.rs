//! Forks, copies and compacted logs in `stats`, `timeline` and `search`.

use std::fs;

use serde_json::Value;

use crate::support::Home;

const TRANSCRIPT: &str = concat!(
    r#"{"role":"user","content":"bake the sourdough","timestamp":"2026-01-05T08:00:00Z"}"#,
    "\n",
    r#"{"role":"assistant","content":"the sourdough rests","timestamp":"2026-01-05T08:00:05Z"}"#,
    "\n",
);

/// A log with a call that costs 0.50 and a use of a tool.
fn log(session: &str) -> String {
    let line = |event: &str, second: u32, data: &str| {
        format!(
            "{{\"ts\":\"2026-01-05T08:00:{second:02}.123456789Z\",\"lvl\":\"INFO\",\"event\":\"{event}\",\
             \"session_id\":\"{session}\",\"data\":{{{data}}}}}\n"
        )
    };
    [
        line("session:start", 0, r#""parent_id":null"#),
        line("prompt:submit", 0, r#""prompt":"bake the sourdough""#),
        line("tool:pre", 2, r#""tool_name":"oven","tool_call_id":"t1""#),
        line("llm:response", 5, r#""model":"m","usage":{"input_tokens":10,"cost_usd":"0.50"}"#),
    ]
    .concat()
}

fn write(home: &Home, session: &str, transcript: &str, log: &str, metadata: &str) {
    let folder = home.write_session("p", session, transcript);
    fs::write(folder.join("events.jsonl"), log).unwrap();
    fs::write(folder.join("metadata.json"), metadata).unwrap();
}

fn sync(home: &Home) {
    home.ok(&["sync", "--embedding", "none"]);
}

/// Cost and messages of all sessions.
fn totals(answer: &Value) -> (String, u64) {
    (answer["usage"]["cost"].to_string(), answer["totals"]["messages"].as_u64().unwrap())
}

#[test]
fn forks_and_copies_count_once() {
    let home = Home::new();
    write(&home, "original", TRANSCRIPT, &log("original"), "{}");
    // A copied folder, a fork by a web host, and a fork of that.
    write(&home, "copy", TRANSCRIPT, &log("original"), "{}");
    let fork = r#"{"parent_id":null,"status":"forked","fork":{"source_session_id":"original","through_user_turn":1}}"#;
    write(&home, "fork", TRANSCRIPT, &log("fork"), fork);
    let of_fork = r#"{"fork":{"source_session_id":"fork","before_user_turn":2}}"#;
    write(&home, "of-fork", TRANSCRIPT, &log("of-fork"), of_fork);
    sync(&home);
    let answer = home.json(&["stats"]);
    assert_eq!(totals(&answer), ("0.5".to_owned(), 2), "{answer}");
    assert_eq!(answer["left_out"]["sessions"], 3);
    assert_eq!(answer["left_out"]["usage"]["cost"].to_string(), "1.5");
    assert_eq!(answer["tools"][0]["uses"], 1);
    assert_eq!(totals(&home.json(&["stats", "--session", "of-fork"])), ("0.5".to_owned(), 2));
    assert_eq!(home.json(&["sessions", "--tree"])["sessions"].as_array().map(Vec::len), Some(2));
    assert_eq!(home.json(&["timeline", "sourdough"])["matches"], 2);
    assert_eq!(home.json(&["search", "rests"])["results"].as_array().map(Vec::len), Some(1));
    let text = home.ok(&["stats"]);
    assert!(text.contains("left_out\tsessions\t3\n") && text.contains("total\tcost\t0.5\n"), "{text}");
    home.ok(&["delete", "original", "--yes"]);
    assert_eq!(totals(&home.json(&["stats"])), ("0.5".to_owned(), 2));
}

/// Deleting a session leaves its text in the sessions that were copied from it.
#[test]
fn what_keeps_the_text_of_a_deleted_session_is_named() {
    let home = Home::new();
    write(&home, "original", TRANSCRIPT, &log("original"), "{}");
    write(&home, "copy", TRANSCRIPT, &log("original"), "{}");
    let fork = r#"{"fork":{"source_session_id":"original","through_user_turn":1}}"#;
    write(&home, "fork", TRANSCRIPT, &log("fork"), fork);
    let other = TRANSCRIPT.replace("sourdough", "brioche");
    write(&home, "agent", &other, "", r#"{"parent_id":"original"}"#);
    write(&home, "agent-of-agent", &other.replace("bake", "proof"), "", r#"{"parent_id":"agent"}"#);
    write(&home, "unrelated", &other.replace("bake", "eat"), "", "{}");
    sync(&home);
    let kept = |arguments: &[&str]| -> Vec<(String, String)> {
        let answer = home.json(&[&["delete"], arguments].concat());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let listed = answer["keep_text"].as_array().unwrap().iter();
        let mut kept: Vec<_> = listed.map(|one| (text(&one["session_id"]), text(&one["relation"]))).collect();
        kept.sort();
        kept
    };
    let expected = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(id, relation)| ((*id).to_owned(), (*relation).to_owned())).collect()
    };
    let of_original =
        [("agent", "sub_agent"), ("agent-of-agent", "sub_agent"), ("copy", "copy"), ("fork", "fork")];
    assert_eq!(kept(&["original", "--dry-run"]), expected(&of_original));
    assert_eq!(kept(&["fork", "--dry-run"]), expected(&[("copy", "copy"), ("original", "original")]));
    assert_eq!(kept(&["unrelated", "--dry-run"]), []);
    assert_eq!(kept(&["--all", "--dry-run"]), []);
    let ran = home.run(&["delete", "agent", "--dry-run"]);
    let note = "note: 1 other session contains text of these and stays in the store: sub-agent agent-of\n";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    let refused = home.run(&["delete", "original"]);
    assert!(refused.code == 2 && refused.stderr.contains("4 other sessions contain"), "{}", refused.stderr);
    assert_eq!(kept(&["original", "copy", "fork", "--yes"]), expected(&of_original[..2]));
}

#[test]
fn a_compacted_log_keeps_its_counts_and_times() {
    let home = Home::new();
    let transcript = TRANSCRIPT.replace(",\"timestamp\":\"2026-01-05T08:00:05Z\"", "");
    write(&home, "s", &transcript, &log("s"), "{}");
    sync(&home);
    let (before, times) = (home.json(&["stats"]), home.json(&["show", "s"]));
    let file = home.amplifier().join("projects/p/sessions/s/events.jsonl");
    let rest: String = log("s").lines().take(1).map(|line| format!("{line}\n")).collect();
    fs::write(file, rest).unwrap();
    sync(&home);
    let after = home.json(&["stats"]);
    for field in ["usage", "tools", "models", "event_types", "totals"] {
        assert_eq!(before[field], after[field], "{field}");
    }
    assert_eq!((&before["compacted_events"], &after["compacted_events"]), (&0.into(), &3.into()));
    assert!(home.ok(&["stats"]).contains("total\tcompacted_events\t3\n"));
    assert_eq!(home.json(&["show", "s"])["messages"], times["messages"]);
}

#[test]
fn a_log_that_was_appended_again_counts_once() {
    let home = Home::new();
    write(&home, "s", TRANSCRIPT, &(log("s") + &log("s")), "{}");
    sync(&home);
    let answer = home.json(&["stats"]);
    assert_eq!(totals(&answer), ("0.5".to_owned(), 2));
    assert_eq!((&answer["totals"]["events"], &answer["left_out"]["events"]), (&4.into(), &4.into()));
}
