//! Unreadable rows are left out and reported, also by the exit code.

use std::{fs, path::Path};

use amplifier_session_testkit::erasure::noise;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{call::Ran, support::Home};

const SESSION: &str = "d0000000-0000-4000-8000-000000000001";

/// A home folder with one session of nine messages and nine events. Event 4 is compressed, event 5 is in chunks.
fn home() -> Home {
    let home = Home::new();
    let lines = |line: &dyn Fn(usize) -> Value| (0..9).map(|n| format!("{}\n", line(n))).collect::<String>();
    let messages = lines(&|n| {
        json!({"role": if n % 2 == 0 { "user" } else { "assistant" }, "content": format!("zebra number {n}"),
            "timestamp": format!("2026-01-01T00:00:0{n}Z")})
    });
    let length = |n| match n {
        4 => 20_000,
        5 => 600_000,
        _ => 10,
    };
    let events = lines(&|n| {
        json!({"ts": format!("2026-01-01T00:00:0{n}Z"), "lvl": "INFO", "event": "tool:post",
            "data": {"tool_name": "bash", "filler": "filler ".repeat(length(n))}})
    });
    let folder = home.write_session("-home-dana-shop", SESSION, &messages);
    fs::write(folder.join("events.jsonl"), events).unwrap();
    fs::write(folder.join("metadata.json"), json!({"session_id": SESSION}).to_string()).unwrap();
    home
}

/// The damage of a store, which every command must find.
struct Damaged<'a> {
    home: &'a Home,
    store: String,
    messages: &'a [u32],
    /// Rows with unreadable fields.
    events: &'a [u32],
    /// Rows with unreadable lines.
    payloads: &'a [u32],
}

impl Damaged<'_> {
    fn run(&self, arguments: &[&str]) -> Ran {
        self.home.run(&[arguments, &["--store", &self.store]].concat())
    }

    /// Runs a command that must leave out rows. Returns its JSON.
    fn leaves_out(&self, arguments: &[&str], kind: &str, sequences: &[u32]) -> Value {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 1, "{arguments:?}: {}", ran.all());
        for sequence in sequences {
            let named = format!("damaged: {kind} {sequence} of session {SESSION}: ");
            assert_eq!(ran.stderr.matches(&named).count(), 1, "{arguments:?}: {}", ran.all());
        }
        assert!(ran.stderr.contains("of the store can't be read and w"), "{}", ran.all());
        let ran = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(ran.code, 1, "{}", ran.all());
        ran.json()
    }

    fn check(&self) {
        let but = |left_out: &[&[u32]]| {
            (0..9).filter(|n| !left_out.iter().any(|some| some.contains(n))).collect::<Vec<u32>>()
        };
        let of = |answer: &Value| (sequences(&answer["damaged"]), answer["damaged"][0]["session_id"].clone());
        let without_lines = [self.events, self.payloads].concat();

        let shown = self.leaves_out(&["show", SESSION], "message", self.messages);
        assert_eq!(sequences(&shown["messages"]), but(&[self.messages]));
        assert_eq!(of(&shown), (self.messages.to_vec(), json!(SESSION)));

        let shown = self.leaves_out(&["show", SESSION, "--events"], "event", self.events);
        assert_eq!(sequences(&shown["events"]), but(&[self.events]));
        let shown = self.leaves_out(&["show", SESSION, "--events", "--full"], "event", &without_lines);
        assert_eq!(sequences(&shown["events"]), but(&[&without_lines]));
        let around = self.leaves_out(
            &["show", "--context", &format!("{SESSION}#2"), "--before", "1", "--after", "2"],
            "message",
            &[3, 4],
        );
        assert_eq!((sequences(&around["messages"]), sequences(&around["damaged"])), (vec![1, 2], vec![3, 4]));
        // The content of an unreadable row is not used.
        let counted = self.run(&["stats", "--json"]).json();
        assert_eq!(counted["totals"]["events"], 9);
        assert_eq!(self.run(&["events", "--text", "zebra"]).code, 3);
        let found = self.leaves_out(&["events"], "event", self.events);
        assert_eq!(sequences(&found["events"]), but(&[self.events]));
        let found = self.leaves_out(&["events", "--full"], "event", &without_lines);
        assert_eq!(sequences(&found["events"]), but(&[&without_lines]));
        let mut expected = without_lines.clone();
        expected.sort_unstable();
        assert_eq!(of(&found), (expected, json!(SESSION)));
        self.check_search(&but(&[self.messages]));
        self.check_export(but(&[self.messages]).len(), but(&[&without_lines]).len());
    }

    /// The index still contains the unreadable message.
    fn check_search(&self, readable: &[u32]) {
        let search = ["search", "zebra", "--mode", "full-text", "--limit", "20", "--full", "--json"];
        let ran = self.run(&search);
        assert_eq!((ran.code, sequences(&ran.json()["results"]).as_slice()), (1, readable), "{}", ran.all());
        // Without the index, the rows are searched one by one. A search reads no digest before it shows a message.
        let file = self.store.split_once(':').unwrap().1;
        fs::remove_dir_all(format!("{file}.index")).unwrap();
        let ran = self.run(&search);
        let found = ran.json()["results"].as_array().unwrap().len();
        assert_eq!((ran.code, found), (1, readable.len()), "{}", ran.all());
    }

    /// The readable rows can be imported as a complete session.
    fn check_export(&self, messages: usize, events: usize) {
        let archive = self.home.path().join("archive.jsonl");
        let out = archive.to_str().unwrap();
        let report = self.leaves_out(&["export", "--out", out], "message", self.messages);
        assert_eq!((&report["messages"], &report["events"]), (&json!(messages), &json!(events)));
        let all = self.messages.len() + self.events.len() + self.payloads.len();
        assert_eq!(report["damaged"].as_array().unwrap().len(), all);
        let (other, home) = (format!("sqlite:{out}.sqlite"), self.home);
        let imported = home.json(&["import", out, "--store", &other]);
        assert_eq!((&imported["messages"], &imported["events"]), (&json!(messages), &json!(events)));
        let shown = home.json(&["show", SESSION, "--store", &other]);
        assert_eq!(shown["session"]["message_count"], json!(messages));
        fs::remove_file(&archive).unwrap();
        remove_store(Path::new(&format!("{out}.sqlite")));
    }
}

/// The sequences of messages, events or results, in order.
fn sequences(rows: &Value) -> Vec<u32> {
    let mut all: Vec<u32> =
        rows.as_array().unwrap().iter().map(|row| row["sequence"].as_u64().unwrap() as u32).collect();
    all.sort_unstable();
    all
}

fn remove_store(file: &Path) {
    fs::remove_file(file).unwrap();
    fs::remove_dir_all(format!("{}.index", file.display())).unwrap();
}

#[test]
fn damaged_rows_of_a_sqlite_store_do_not_block_the_rest() {
    let home = home();
    let file = home.path().join("kept.sqlite");
    let store = format!("sqlite:{}", file.display());
    home.ok(&["sync", "--store", &store]);
    let connection = Connection::open(&file).unwrap();
    let encodings: Vec<i64> = (0..9)
        .map(|n| {
            let sql = "SELECT encoding FROM events WHERE sequence = ?1";
            connection.query_row(sql, [n], |row| row.get(0)).unwrap()
        })
        .collect();
    assert_eq!(encodings, [1, 1, 1, 1, 2, 3, 1, 1, 1]);
    connection
        .execute_batch(
            "PRAGMA ignore_check_constraints = ON;
             UPDATE transcripts SET ts = 'yesterday' WHERE sequence = 0;
             UPDATE transcripts SET role = 'nobody' WHERE sequence = 3;
             UPDATE transcripts SET digest = 'text' WHERE sequence = 4;
             UPDATE transcripts SET turn = 'first' WHERE sequence = 8;
             UPDATE transcripts SET raw = 'xx garbage' WHERE sequence = 6;
             UPDATE events SET raw = replace(raw, 'bash', 'dash') WHERE sequence = 3;
             UPDATE events SET ts = 'yesterday' WHERE sequence = 1;
             UPDATE events SET summary = '{' WHERE sequence = 2;
             UPDATE events SET summary = x'ff' WHERE sequence = 7;
             UPDATE events SET level = 'LOUD' WHERE sequence = 8;
             UPDATE events SET raw = x'28b52ffd0000' WHERE sequence = 4;
             DELETE FROM event_chunks WHERE sequence = 5 AND chunk_index = 1;
             UPDATE events SET raw = 12 WHERE sequence = 6;",
        )
        .unwrap();
    drop(connection);
    let (messages, events, payloads) = (&[0, 3, 4, 6, 8], &[1, 2, 7, 8], &[3, 4, 5, 6]);
    Damaged { home: &home, store, messages, events, payloads }.check();
}

#[test]
fn a_damaged_session_does_not_block_an_export() {
    let home = Home::with_samples();
    home.ok(&["sync"]);
    let connection = Connection::open(home.amplifier().join("sessions.sqlite")).unwrap();
    let session: String = connection
        .query_row("SELECT session_id FROM sessions ORDER BY session_id LIMIT 1", [], |row| row.get(0))
        .unwrap();
    connection.execute("UPDATE sessions SET created = 'once' WHERE session_id = ?1", [&session]).unwrap();
    drop(connection);
    let archive = home.path().join("archive.jsonl");
    let ran = home.run(&["export", "--out", archive.to_str().unwrap()]);
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert_eq!(ran.stderr.matches(&format!("damaged: session {session}: ")).count(), 1, "{}", ran.all());
    assert!(ran.stdout.starts_with("11 sessions, "), "{}", ran.all());
}

#[test]
fn damaged_sessions_are_left_out_of_lists_and_reported() {
    let home = Home::with_samples();
    home.ok(&["sync"]);
    let file = home.amplifier().join("sessions.sqlite");
    let of = |sql: &str| -> String {
        Connection::open(&file).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let first = of("SELECT min(session_id) FROM sessions");
    let last = of("SELECT max(session_id) FROM sessions");
    let word = "SELECT raw FROM transcripts WHERE role = 'user' AND session_id = (SELECT max(session_id) FROM sessions)";
    let line: Value = serde_json::from_str(&of(word)).unwrap();
    let connection = Connection::open(&file).unwrap();
    connection.execute("UPDATE sessions SET tags = 'x' WHERE session_id = ?1", [&first]).unwrap();
    connection.execute("UPDATE sessions SET turn_count = 'x' WHERE session_id = ?1", [&last]).unwrap();
    drop(connection);
    let damaged = |answer: &Value| -> Vec<String> {
        let rows = answer["damaged"].as_array().unwrap().iter();
        rows.map(|row| row["session_id"].as_str().unwrap().to_owned()).collect()
    };
    for list in [
        &["sessions"][..],
        &["sessions", "--tree"],
        &["sessions", "--by", "project", "--days", "9999"],
        &["stats"],
    ] {
        let ran = home.run_json(list);
        assert_eq!(ran.code, 1, "{list:?}: {}", ran.all());
        let answer = ran.json();
        assert_eq!(damaged(&answer), [first.as_str(), &last], "{list:?}");
        if list == ["stats"] {
            assert_eq!(answer["totals"]["sessions"], 10);
        }
        let ran = home.run(list);
        assert_eq!((ran.code, ran.stdout.is_empty()), (1, false), "{list:?}: {}", ran.all());
        for session in [&first, &last] {
            let named = format!("damaged: session {session}: ");
            assert_eq!(ran.stderr.matches(&named).count(), 1, "{}", ran.all());
        }
    }
    assert_eq!(home.run(&["embeddings", "backfill"]).code, 1);
    let text = line["content"].as_str().unwrap_or_default().to_owned();
    let ran = home.run_json(&["search", &text, "--limit", "100"]);
    let found = ran.json();
    let of_damaged =
        found["results"].as_array().unwrap().iter().find(|one| one["session_id"] == last.as_str());
    assert!(ran.code == 0 && of_damaged.is_some_and(|one| one["title"].is_null()), "{}", ran.all());
    let notices = found["notices"].to_string();
    assert!(notices.contains(&first) && notices.contains(&last), "{notices}");
    assert!(ran.stderr.contains("can't be read and were skipped"), "{}", ran.all());
}

/// Overwrites the page with the first rows of the table of messages.
fn zero_first_page_of_messages(file: &Path) {
    let connection = Connection::open(file).unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap() as usize;
    let size = number("PRAGMA page_size");
    let root = number("SELECT rootpage FROM sqlite_master WHERE name = 'transcripts'");
    drop(connection);
    let mut bytes = fs::read(file).unwrap();
    let root = &bytes[(root - 1) * size..root * size];
    // https://www.sqlite.org/fileformat.html: an inner page of a table, and the page of its first cell.
    assert_eq!(root[0], 5);
    let cell = usize::from(u16::from_be_bytes([root[12], root[13]]));
    let first = u32::from_be_bytes(root[cell..cell + 4].try_into().unwrap()) as usize;
    bytes[(first - 1) * size..first * size].fill(0);
    fs::write(file, bytes).unwrap();
}

#[test]
fn messages_on_an_unreadable_page_are_named() {
    let home = Home::new();
    let messages: String = (0..9)
        .map(|n| {
            format!("{}\n", json!({"role": "user", "content": format!("zebra {n} {}", noise(n, 5_000))}))
        })
        .collect();
    home.write_session("-home-dana-shop", SESSION, &messages);
    home.ok(&["sync", "--embedding", "none"]);
    zero_first_page_of_messages(&home.amplifier().join("sessions.sqlite"));
    for found in
        [&["search", "zebra", "--no-refresh"][..], &["search", "zebra", "--no-refresh", "--session", SESSION]]
    {
        let ran = home.run(&[found, &["--embedding", "none"]].concat());
        assert_eq!(ran.code, 1, "{}", ran.all());
        assert!(ran.stderr.contains(&format!("damaged: message 0 of session {SESSION}: ")), "{}", ran.all());
        assert!(ran.stdout.contains("#8"), "{}", ran.all());
    }
    // Messages on other pages can still be shown.
    assert!(home.ok(&["show", SESSION, "--from", "7", "--limit", "2"]).contains("zebra 8"));
    assert!(home.ok(&["show", &format!("{SESSION}#8")]).contains("zebra 8"));
    assert_eq!(home.run(&["show", SESSION]).code, 1);
}

/// Without an index, a search reads the vectors themselves.
#[test]
fn a_search_says_that_vectors_cannot_be_read() {
    let home = home();
    home.ok(&["sync"]);
    let file = home.amplifier().join("sessions.sqlite");
    let search = ["search", "zebra", "--mode", "semantic", "--no-refresh"];
    assert_eq!(home.run(&search).code, 0);
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch("UPDATE transcript_vectors SET vector = x'00' WHERE sequence = 3;").unwrap();
    for (damaged, note) in
        [(1, "1 vector can't be read and was left out"), (9, "9 vectors can't be read and were")]
    {
        let sql = format!(
            "UPDATE transcript_vectors SET vector = x'00' WHERE sequence < {damaged} OR sequence = 3;"
        );
        if damaged > 1 {
            connection.execute_batch(&sql).unwrap();
        }
        fs::remove_dir_all(home.amplifier().join("sessions.sqlite.index")).unwrap();
        for _ in 0..2 {
            let ran = home.run(&search);
            assert!(ran.stderr.contains(note) && ran.stderr.contains("verify --repair"), "{}", ran.all());
        }
        fs::create_dir_all(home.amplifier().join("sessions.sqlite.index")).unwrap();
    }
    home.ok(&["verify", "--repair"]);
    assert!(!home.run(&search).stderr.contains("can't be read"));
}
