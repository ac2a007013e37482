//! The interface for scripts: exit codes, stdout and stderr, and JSON fields.

use std::{io::Read, process::Stdio, sync::LazyLock};

use serde_json::Value;

use crate::support::{Home, SYNCED};

fn code(arguments: &[&str]) -> i32 {
    SYNCED.run(arguments).code
}

#[track_caller]
fn has_fields(value: &Value, fields: &[&str]) {
    let object = value.as_object().unwrap();
    for field in fields {
        assert!(object.contains_key(*field), "no {field} in {value}");
    }
}

#[test]
fn exit_codes() {
    assert_eq!(code(&["search", "charged twice"]), 0);
    assert_eq!(code(&["sessions"]), 0);
    assert_eq!(code(&["--help"]), 0);
    assert_eq!(code(&["--version"]), 0);
    assert_eq!(code(&[]), 2);
    assert_eq!(code(&["search", "xyzzyplugh", "--mode", "full-text"]), 3);
    assert_eq!(code(&["timeline", "charged twice"]), 0);
    assert_eq!(code(&["timeline", "xyzzyplugh", "--mode", "full-text"]), 3);
    assert_eq!(code(&["sessions", "--since", "2100-01-01"]), 3);
    assert_eq!(code(&["show", "38e6d1f5", "--from", "999"]), 3);
}

#[test]
fn every_error_has_a_code_and_a_hint_and_leaves_stdout_alone() {
    let failures = [
        &["show", "ffffffff"][..],
        &["--store", "sqlite:/missing/x.sqlite", "sessions"],
        &["search", "x", "--mode", "semantic", "--embedding", "none"],
        &["sync", "--root", "/missing"],
    ];
    let wrong = [
        &["serch"][..],
        &["search"],
        &["timeline"],
        &["timeline", "x", "--by", "year"],
        &["timeline", "x", "--plot", "x.png"],
        &["search", "x", "--mode", "fuzzy"],
        &["search", "x", "--limit", "0"],
        &["search", "x", "--limit", "1001"],
        &["search", "x", "--mmr-lambda", "1.5"],
        &["search", "x", "--min-similarity", "-2"],
        &["search", "x", "--in", "nothing"],
        &["search", "x", "--role", "boss"],
        &["search", "x", "--since", "soon"],
        &["search", "x", "--embedding", "huge"],
        &["--user", "", "sessions"],
        &["show", ""],
        &["show", "--context", "38e6d1f5"],
        &["show", "--context", "38e6d1f5", "--turn", "1", "--message", "1"],
        &["--store", "mysql:x", "sessions"],
        &["--store", "cosmos:x", "sessions"],
    ];
    for (code, all) in [(1, &failures[..]), (2, &wrong[..])] {
        for arguments in all {
            let ran = SYNCED.run(arguments);
            assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{arguments:?}: {}", ran.stderr);
            assert!(ran.stderr.starts_with("error: "), "{arguments:?}: {}", ran.stderr);
            assert!(ran.stderr.contains("\nhint: "), "{arguments:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn without_results_the_list_is_empty() {
    for (arguments, list) in [
        (&["search", "xyzzyplugh", "--mode", "full-text"][..], "results"),
        (&["timeline", "xyzzyplugh", "--mode", "full-text"][..], "periods"),
        (&["sessions", "--until", "2000-01-01"][..], "sessions"),
    ] {
        let ran = SYNCED.run_json(arguments);
        assert_eq!((ran.code, &ran.json()[list]), (3, &serde_json::json!([])));
    }
}

#[test]
fn filters_narrow() {
    let all = |arguments: &[&str], field: &str| {
        let found = SYNCED.json(&[&["search", "order retry test"], arguments].concat());
        let values: Vec<String> =
            found["results"].as_array().unwrap().iter().map(|result| result[field].to_string()).collect();
        assert!(!values.is_empty(), "{arguments:?}");
        values
    };
    let only = |arguments: &[&str], field: &str, value: &str| {
        assert!(all(arguments, field).iter().all(|found| found == &format!("{value:?}")), "{arguments:?}");
    };
    only(&["--project", "-home-dana-payments-api"], "project", "-home-dana-payments-api");
    only(&["--session", "38e6d1f5"], "session_id", "38e6d1f5-c290-4a7b-8f14-d6b93e0a5c72");
    only(&["--role", "user"], "role", "user");
    only(&["--in", "thinking"], "content_type", "assistant_thinking");
    only(&["--in", "tool", "--mode", "full_text"], "source", "full_text");
    assert!(all(&["--since", "2026-11-18"], "ts").iter().all(|ts| ts.as_str() >= "\"2026-11-18"));
    assert!(all(&["--until", "2026-11-05"], "ts").iter().all(|ts| ts.as_str() < "\"2026-11-06"));
    assert_eq!(all(&["--limit", "2"], "ts").len(), 2);
}

/// Snapshots show the other fields.
#[test]
fn json_has_the_documented_fields() {
    let list = SYNCED.json(&["sessions"]);
    assert_eq!(list["has_more"], false);
    let sessions = list["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 12);
    for session in sessions {
        assert_ne!(session["title"], session["session_id"], "named by what was asked first");
    }
    let events = SYNCED.json(&["show", "38e6d1f5", "--events", "--limit", "1"]);
    assert!(events["events"][0].get("line").is_none());
    let context = SYNCED.json(&["show", "--context", "38e6d1f5", "--turn", "1"]);
    has_fields(&context, &["session", "turn", "messages", "has_more_before", "has_more_after"]);
    let quickstart = Home::new().json(&["quickstart"]);
    has_fields(&quickstart, &["source", "available", "sync", "searches"]);
    assert_eq!(
        (&quickstart["source"], quickstart["searches"].as_array().unwrap().len()),
        (&"samples".into(), 3)
    );
}

#[test]
fn quickstart_reads_the_newest_sessions_and_reports_the_rest() {
    let home = Home::new();
    for n in 0..205 {
        let line = |role: &str, text: &str| format!("{{\"role\":\"{role}\",\"content\":\"{text}\"}}\n");
        let lines = line("user", &format!("Why does invoice {n} fail?"))
            + &line("assistant", "The invoice has no total.");
        home.write_session("p", &format!("s{n}"), &lines);
    }
    let shown = home.ok(&["quickstart"]);
    assert!(shown.starts_with("Reading the newest 200 of 205 sessions in "), "{shown}");
    assert!(shown.contains("sessions  200 (200 new)"), "{shown}");
    assert_eq!(shown.matches(" search --in assistant 'Why does invoice ").count(), 3, "{shown}");
    assert!(!shown.contains(" · user · "), "{shown}");
    assert!(shown.contains("read the other 5 sessions"), "{shown}");
    home.ok(&["sync"]);
    assert_eq!(home.json(&["sessions", "--limit", "500"])["sessions"].as_array().unwrap().len(), 205);
}

#[test]
fn json_output_has_the_original_line() {
    let home = Home::new();
    let line = r#"{"role":"user","z":1.10,"content":"café \ud83d","a":12345678901234567890123}"#;
    home.write_session("p", "s1", &format!("{line}\n"));
    home.ok(&["sync"]);
    assert!(home.ok(&["show", "s1", "--json"]).contains(&format!(r#""message":{line}"#)));
}

#[test]
fn skipped_lines_are_reported_without_failing() {
    let home = Home::new();
    let lines: String =
        (0..15).map(|n| format!("{{\"role\":\"user\",\"content\":\"ok {n}\"}}\nbroken {n}\n")).collect();
    home.write_session("p", "s1", &lines);
    let ran = home.run(&["sync"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("skipped: p/s1/transcript.jsonl:2: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("… and 5 more"), "{}", ran.stderr);
    let report = home.json(&["sync", "--root", home.amplifier().to_str().unwrap()]);
    assert_eq!(report["sessions"]["unchanged"], 1);
}

#[test]
fn reading_creates_no_store() {
    let home = Home::new();
    for command in
        [&["search", "x"][..], &["sessions"], &["show", "x"], &["show", "--context", "x", "--turn", "1"]]
    {
        let ran = home.run(command);
        assert_eq!(ran.code, 1);
        assert!(ran.stderr.contains("no store at"), "{}", ran.stderr);
        assert!(!home.amplifier().exists());
    }
    home.run(&["sync", "--dry-run"]);
    assert!(!home.amplifier().exists());
}

#[test]
fn deleting_warns_about_another_user_unless_named() {
    let as_bob = |arguments: &[&str]| {
        let ran = SYNCED.call(arguments).env("USER", "bob").run();
        (ran.code, ran.stderr)
    };
    let (code, stderr) = as_bob(&["sessions"]);
    assert_eq!(code, 3);
    assert!(stderr.starts_with("warning: the store belongs to dana, but you are bob\nhint: "), "{stderr}");
    assert_eq!(as_bob(&["sessions", "--user", "dana"]), (0, String::new()));
    assert!(!as_bob(&["sessions", "--user", "bob"]).1.contains("warning"));
}

#[test]
fn colours_are_only_for_terminals_unless_forced() {
    let shown = |color: &str| SYNCED.ok(&["show", "38e6d1f5", "--limit", "1", "--color", color]);
    assert!(!shown("auto").contains('\x1b'));
    assert!(!shown("never").contains('\x1b'));
    assert!(shown("always").contains('\x1b'));
}

#[test]
fn a_terminal_that_understands_no_escape_sequences_gets_none() {
    let shown = |term: Option<&str>, arguments: &[&str]| {
        let call = SYNCED.call(arguments).env("AMPLIFIER_SESSIONS_FORCE_TTY", "100");
        let call = match term {
            Some(term) => call.env("TERM", term),
            None => call.env_remove("TERM"),
        };
        // A process has one log.
        let ran = if arguments.contains(&"-v") { call.run_process() } else { call.run() };
        ran.stdout + &ran.stderr
    };
    for arguments in [
        &["search", "charged twice", "--mode", "full-text"][..],
        &["timeline", "charged"],
        &["show", "38e6d1f5"],
        &["stats", "--all"],
        &["sessions", "--by", "project"],
        &["sessions", "-v"],
        &["doctor"],
        &["sync", "--dry-run"],
        &["help", "search"],
    ] {
        for term in [None, Some(""), Some("dumb")] {
            let shown = shown(term, arguments);
            assert!(!shown.contains('\x1b'), "{arguments:?}, {term:?}: {shown:?}");
        }
    }
    assert!(shown(Some("xterm"), &["sessions"]).contains('\x1b'));
    assert!(shown(Some("dumb"), &["sessions", "--color", "always"]).contains('\x1b'));
}

/// Most tests call the library.
#[test]
fn the_program_does_the_same_as_the_library() {
    for (code, arguments) in [
        (0, &["sessions"][..]),
        (0, &["show", "38e6d1f5", "--json"]),
        (0, &["--version"]),
        (0, &["--help"]),
        (0, &["search", "-h"]),
        (1, &["show", "no-such-session"]),
        (2, &[]),
        (2, &["serch"]),
        (2, &["sessions", "--limit", "few"]),
        (3, &["sessions", "--project", "no-such-project"]),
    ] {
        let (library, program) = (SYNCED.run(arguments), SYNCED.call(arguments).run_process());
        assert_eq!((library.code, library.all()), (code, program.all()), "{arguments:?}");
    }
}

#[test]
fn runs_at_the_same_time_do_not_mix() {
    LazyLock::force(&SYNCED);
    std::thread::scope(|scope| {
        for user in ["ana", "bob", "eve", "mira"] {
            scope.spawn(move || {
                let ran = SYNCED.run(&["sessions", "--user", user]);
                let messages: Vec<&str> = ran.stderr.lines().collect();
                assert_eq!((ran.code, messages.len()), (3, 2), "{}", ran.all());
                assert!(messages[1].starts_with(&format!("hint: {user} has no sessions ")), "{}", ran.all());
            });
        }
    });
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = SYNCED
        .process(&["show", "38e6d1f5", "--full"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn the_command_line_overrides_the_environment() {
    let home = Home::new();
    let run = |arguments: &[&str]| {
        let call = home.call(arguments).env("AMPLIFIER_SESSIONS_STORE", "sqlite:~/other/one.sqlite");
        call.env("AMPLIFIER_SESSIONS_USER", "eve").env("AMPLIFIER_SESSIONS_EMBEDDING", "none").run()
    };
    home.write_session("p", "s1", "{\"role\":\"user\",\"content\":\"hello there\"}\n");
    assert_eq!(run(&["sync"]).code, 0);
    assert!(home.path().join("other/one.sqlite").exists());
    let found = run(&["search", "hello", "--json"]).json();
    assert_eq!((&found["mode"], &found["results"][0]["user_id"]), (&"full_text".into(), &"eve".into()));
    assert_eq!(run(&["sessions", "--user", "ana"]).code, 3);
}

#[test]
fn pages_of_events_are_contiguous() {
    let events = |arguments: &[&str]| SYNCED.json(&[&["events", "--category", "tool"], arguments].concat());
    let ids = |page: &Value| {
        let events = page["events"].as_array().unwrap().iter();
        events.map(|event| event["event_id"].to_string()).collect::<Vec<_>>()
    };
    let all = events(&["--limit", "500"]);
    has_fields(&all, &["events", "has_more", "next"]);
    assert_eq!((&all["has_more"], &all["next"]), (&false.into(), &Value::Null));
    let all = ids(&all);
    let half = all.len().div_ceil(2);
    let first = events(&["--limit", &half.to_string()]);
    assert_eq!(first["has_more"], true);
    let next = first["next"].as_str().unwrap();
    let second = events(&["--limit", &(all.len() - half).to_string(), "--after", next]);
    assert_eq!((&second["has_more"], ids(&second).len()), (&false.into(), all.len() - half));
    assert_eq!([ids(&first), ids(&second)].concat(), all);
}

#[test]
fn terminal_output_can_be_forced_in_a_pipe() {
    let run = |columns: &str| {
        let mut command = SYNCED.process(&["sessions", "--limit", "1"]);
        let output = command.env("AMPLIFIER_SESSIONS_FORCE_TTY", columns).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run("80").contains("\x1b[") && run("80").contains("changed"));
    assert!(!run("").contains("\x1b["));
}

#[test]
fn help_of_a_command_is_the_same_with_help_and_as_an_option() {
    assert_eq!(SYNCED.ok(&["help", "events"]), SYNCED.ok(&["events", "--help"]));
    assert!(SYNCED.ok(&["events", "-h"]).lines().count() < SYNCED.ok(&["events", "--help"]).lines().count());
}
