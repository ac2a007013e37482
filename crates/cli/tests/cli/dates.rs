//! Dates that sessions state, and dates of their files.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use serde_json::Value;

use crate::{support::Home, terminal::Terminal};

/// Sets the modification time of all files below a folder.
fn touch(folder: &Path, year: u64) {
    const YEAR: u64 = 31_557_600;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs((year - 1970) * YEAR + YEAR / 2);
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            touch(&entry.path(), year);
        } else {
            fs::File::options().write(true).open(entry.path()).unwrap().set_modified(time).unwrap();
        }
    }
}

/// The output of a command, without location and size of the store.
fn printed(home: &Home, arguments: &[&str]) -> String {
    let stdout = home.ok(arguments);
    stdout.lines().filter(|line| !line.starts_with("place\t")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn copied_files_show_the_same_dates() {
    let (original, copy) = (Home::with_samples(), Home::with_samples());
    for (home, year) in [(&original, 2020), (&copy, 2022)] {
        touch(&home.amplifier(), year);
        home.ok(&["sync"]);
    }
    let check = |arguments: &[&str]| {
        let shown = printed(&original, arguments);
        assert_eq!(printed(&copy, arguments), shown, "{arguments:?}");
        assert!(!shown.contains("2020-") && !shown.is_empty(), "{arguments:?}: {shown}");
        shown
    };
    let commands: [&[&str]; 6] = [
        &["sessions"],
        &["search", "the", "--mode", "full-text", "--limit", "100"],
        &["events", "--limit", "1000"],
        &["stats"],
        &["stats", "--by", "day"],
        &["stats", "--by", "week,month"],
    ];
    for command in commands {
        let all = check(command);
        for period in [
            &["--since", "2026-11-10"][..],
            &["--until", "2026-11-09"],
            &["--since", "2026-10-20T15:00", "--until", "2026-11-10T09:17"],
        ] {
            assert_ne!(check(&[command, period].concat()), all, "{command:?} {period:?}");
        }
    }
    let all = check(&["sessions", "--by", "project", "--since", "2026-01-01"]);
    assert_ne!(check(&["sessions", "--by", "project", "--since", "2026-11-12"]), all);
    check(&["sessions", "--by", "project", "--since", "2026-01-01", "--json"]);
    check(&["sessions", "--tree"]);
    let sessions = original.json(&["sessions"]);
    assert_eq!(copy.json(&["sessions"]), sessions);
    for session in sessions["sessions"].as_array().unwrap() {
        assert_eq!(session["dates_estimated"], false);
        check(&["show", session["session_id"].as_str().unwrap(), "--limit", "1000"]);
    }
}

/// A home folder with two sessions: `stated` states its times, `silent` does not.
fn with_a_silent_session() -> Home {
    let home = Home::new();
    for (session, line) in [
        ("stated", r#"{"role":"user","content":"Why?","timestamp":"2021-03-01T08:00:00Z"}"#),
        ("silent", r#"{"role":"user","content":"How?"}"#),
    ] {
        home.write_session("p", session, &format!("{line}\n"));
    }
    touch(&home.amplifier(), 2020);
    home.ok(&["sync"]);
    home
}

#[test]
fn dates_of_files_are_shown_as_estimates() {
    let home = with_a_silent_session();
    let terminal = |arguments: &[&str]| {
        let arguments = [arguments, &["--color", "never"]].concat();
        Terminal::new(&home).with_columns(100).run(&arguments).stdout
    };
    let line = |text: &str, part: &str| text.lines().find(|line| line.contains(part)).unwrap().to_owned();
    for list in [
        terminal(&["sessions"]),
        terminal(&["sessions", "--tree"]),
        terminal(&["sessions", "--by", "project", "--days", "9999"]),
    ] {
        assert!(line(&list, "How?").contains(" ~2020-07-02"), "{list}");
        assert!(line(&list, "Why?").contains(" 2021-03-01"), "{list}");
    }
    let heads = ["silent", "stated"].map(|session| line(&terminal(&["show", session]), "time "));
    assert!(heads[0].contains("~2020-07-02") && heads[0].contains("to ~2020-07-02"), "{heads:?}");
    assert!(!heads[1].contains('~'), "{heads:?}");
    let estimated = |session: &Value| session["dates_estimated"].as_bool().unwrap();
    let list = home.json(&["sessions"]);
    let sessions: Vec<bool> = list["sessions"].as_array().unwrap().iter().map(estimated).collect();
    assert_eq!(sessions, [false, true]);
    let recent = home.json(&["sessions", "--by", "project", "--days", "9999"]);
    assert!(estimated(&recent["projects"][0]["newest"][1]));
    assert!(estimated(&home.json(&["show", "silent"])["session"]));
    assert!(estimated(&home.json(&["show", "--context", "silent#0"])["session"]));
}
