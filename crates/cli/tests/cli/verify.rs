//! `verify` and `gaps`: every kind of damage to a store is found, named and repaired.

use std::{fs, path::PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{
    call::Ran,
    support::{Home, SYNCED},
};

const SESSION: &str = "d0000000-0000-4000-8000-000000000001";

/// A home folder with one session of nine messages and six events, which is synced. Event 4 is compressed, event 5 is
/// in chunks.
fn home() -> (Home, PathBuf) {
    let home = Home::new();
    let lines = |count, line: &dyn Fn(usize) -> Value| {
        (0..count).map(|n| format!("{}\n", line(n))).collect::<String>()
    };
    let messages = lines(9, &|n| {
        json!({"role": if n % 2 == 0 { "user" } else { "assistant" }, "content": format!("zebra number {n}"),
            "timestamp": format!("2026-01-01T00:00:0{n}Z")})
    });
    let length = |n| match n {
        4 => 20_000,
        5 => 600_000,
        _ => 10,
    };
    let events = lines(6, &|n| {
        json!({"ts": format!("2026-01-01T00:00:0{n}Z"), "lvl": "INFO", "event": "tool:post",
            "data": {"tool_name": "bash", "filler": "filler ".repeat(length(n))}})
    });
    let folder = home.write_session("-home-dana-shop", SESSION, &messages);
    fs::write(folder.join("events.jsonl"), events).unwrap();
    fs::write(folder.join("metadata.json"), json!({"session_id": SESSION}).to_string()).unwrap();
    home.ok(&["sync"]);
    (home, folder)
}

fn damage(home: &Home, sql: &str) {
    let connection = Connection::open(home.amplifier().join("sessions.sqlite")).unwrap();
    connection.execute_batch(&format!("PRAGMA ignore_check_constraints = ON; {sql}")).unwrap();
}

/// The differences as `kind: place and reason`.
fn differences(ran: &Ran, list: &str) -> Vec<String> {
    let report = ran.json();
    let text = |difference: &Value| {
        let of = |name: &str| match &difference[name] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        let place = ["file", "line", "row", "sequence", "last_sequence"].into_iter().filter_map(of);
        format!("{} {}", of("kind").unwrap(), place.collect::<Vec<_>>().join(" "))
    };
    report[list].as_array().unwrap().iter().map(text).collect()
}

/// Damages a store, expects these differences, and expects that a repair leaves none.
fn is_found_and_repaired(sql: &str, expected: &[&str]) {
    let (home, _) = home();
    damage(&home, sql);
    let ran = home.run_json(&["verify"]);
    assert_eq!((ran.code, differences(&ran, "differences")), (1, own(expected)), "{sql}: {}", ran.all());
    let ran = home.run_json(&["verify", "--repair"]);
    assert_eq!((ran.code, differences(&ran, "left")), (0, Vec::new()), "{sql}: {}", ran.all());
    assert_eq!(differences(&ran, "differences"), own(expected), "{sql}");
    let ran = home.run_json(&["verify"]);
    assert_eq!(ran.code, 0, "{sql}: {}", ran.all());
    let report = ran.json();
    assert_eq!((&report["messages"], &report["events"]), (&json!(9), &json!(6)), "{sql}");
    assert_eq!((&report["vectors"], &report["pending_vectors"]), (&json!(9), &json!(0)), "{sql}");
    assert_eq!(home.run(&["verify", "--gaps"]).code, 0);
}

fn own(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn damaged_lines_are_found_and_read_again() {
    is_found_and_repaired(
        "UPDATE transcripts SET raw = replace(raw, 'zebra', 'zebrb') WHERE sequence IN (2, 7);",
        &["damaged message 2", "damaged message 7"],
    );
    is_found_and_repaired(
        "UPDATE events SET raw = CAST(replace(CAST(raw AS TEXT), 'bash', 'dash') AS BLOB) WHERE sequence = 1;
         UPDATE events SET raw = x'28b52ffd0000' WHERE sequence = 4;",
        &["damaged event 1", "damaged event 4"],
    );
}

#[test]
fn unreadable_rows_are_found_and_read_again() {
    is_found_and_repaired(
        "UPDATE transcripts SET role = 'nobody' WHERE sequence = 3;
         UPDATE transcripts SET ts = 'yesterday' WHERE sequence = 5;
         UPDATE transcripts SET digest = 'text' WHERE sequence = 8;
         UPDATE events SET ts = 'yesterday' WHERE sequence = 0;
         UPDATE events SET digest = x'00' WHERE sequence = 2;
         UPDATE events SET summary = '{' WHERE sequence = 3;",
        &[
            "damaged message 3",
            "damaged message 5",
            "damaged message 8",
            "damaged event 0",
            "damaged event 2",
            "damaged event 3",
        ],
    );
}

#[test]
fn removed_rows_are_found_and_read_again() {
    is_found_and_repaired(
        "DELETE FROM transcripts WHERE sequence IN (3, 4); DELETE FROM events WHERE sequence = 2;",
        &[
            "gap message 3 4",
            "gap event 2",
            "vectors message 3",
            "vectors message 4",
            "not_stored transcript.jsonl 4",
            "not_stored transcript.jsonl 5",
            "not_stored events.jsonl 3",
            "index ",
            "index ",
            "index message 3",
            "index message 4",
            // The vector of the turn that it begins.
            "index message 4",
        ],
    );
}

#[test]
fn rows_that_are_missing_at_the_end_are_found() {
    let (home, _) = home();
    damage(
        &home,
        "DELETE FROM transcripts WHERE sequence >= 7; DELETE FROM transcript_vectors WHERE sequence >= 7;",
    );
    let ran = home.run(&["verify", "--gaps"]);
    assert_eq!((ran.code, ran.stdout), (1, format!("{SESSION}\tmessages\t7\t8\n")));
    let ran = home.run_json(&["verify", "--repair"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    assert_eq!(ran.json()["differences"][0]["kind"], "count");
    assert_eq!(home.json(&["verify", "--gaps"])["gaps"], json!([]));
}

#[test]
fn added_rows_are_found_and_removed() {
    is_found_and_repaired(
        "INSERT INTO transcripts (user_id, session_id, sequence, role, turn, ts, ts_estimated, synced_at, vectors, digest,
             revision, raw, ts_source)
         SELECT user_id, session_id, 12, role, turn, ts, ts_estimated, synced_at, 2, digest, revision, raw, ts_source
         FROM transcripts WHERE sequence = 0;",
        &[
            "gap message 9 11",
            "count ",
            "not_in_file transcript.jsonl message 12",
            "index message 12",
        ],
    );
}

#[test]
fn wrong_counts_and_turns_are_found_and_derived_again() {
    is_found_and_repaired(
        "UPDATE sessions SET message_count = 10, event_count = 2, turn_count = 77;",
        &["count ", "count ", "count "],
    );
    is_found_and_repaired("UPDATE transcripts SET turn = 3 WHERE sequence = 1;", &["turn message 1"]);
}

#[test]
fn wrong_and_missing_vectors_are_found_and_made_again() {
    is_found_and_repaired(
        "DELETE FROM transcript_vectors WHERE sequence = 2;
         UPDATE transcript_vectors SET vector = x'0000803f0000803f' WHERE sequence = 5;
         UPDATE transcript_vectors SET vector = x'00' WHERE sequence = 6;
         UPDATE transcript_vectors SET total_chunks = 2 WHERE sequence = 7;",
        &[
            "vectors message 2",
            "vectors message 5",
            "vectors message 6",
            "vectors message 7",
            "index message 5",
            "index ",
            "index message 6",
        ],
    );
}

#[test]
fn pieces_of_payloads_are_found_if_missing_or_left_over() {
    is_found_and_repaired(
        "DELETE FROM event_chunks WHERE sequence = 5 AND chunk_index = 1;",
        &["damaged event 5"],
    );
    is_found_and_repaired(
        "INSERT INTO event_chunks SELECT user_id, session_id, 99, 0, 1, x'00' FROM sessions;
         INSERT INTO event_chunks SELECT user_id, session_id, 4, 0, 1, x'00' FROM sessions;",
        &["chunks event 4", "chunks event 99"],
    );
    is_found_and_repaired(
        "UPDATE events SET encoding = 0, raw = NULL WHERE sequence = 1;",
        &["not_stored events.jsonl"],
    );
}

#[test]
fn a_session_without_its_record_is_read_again() {
    let (home, _) = home();
    damage(&home, "DELETE FROM sessions;");
    let ran = home.run_json(&["verify", "--repair"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let kinds: Vec<Value> =
        ran.json()["differences"].as_array().unwrap().iter().map(|of| of["kind"].clone()).collect();
    assert_eq!(kinds[..2], [json!("not_stored"), json!("no_session")]);
    let report = home.json(&["verify"]);
    assert_eq!((&report["messages"], &report["events"]), (&json!(9), &json!(6)));
    assert_eq!(home.json(&["show", SESSION])["session"]["project_slug"], "-home-dana-shop");
}

#[test]
fn a_removed_or_damaged_index_is_made_anew() {
    let (home, _) = home();
    let index = home.amplifier().join("sessions.sqlite.index");
    let largest = |folder: &str| {
        let files = fs::read_dir(index.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        files.max_by_key(|file| fs::metadata(file).unwrap().len()).unwrap()
    };
    let flip = |file: PathBuf| {
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(file, bytes).unwrap();
    };
    for step in 0..4 {
        match step {
            0 => fs::remove_dir_all(&index).unwrap(),
            1 => flip(largest("text")),
            2 => flip(largest("vectors")),
            _ => fs::write(index.join("text.json"), "{}").unwrap(),
        }
        let ran = home.run_json(&["verify"]);
        let found = differences(&ran, "differences");
        assert!(ran.code == 1 && found.iter().all(|of| of == "index "), "{step}: {}", ran.all());
        let in_a_pipe = home.run(&["verify"]).stdout;
        let on_a_terminal = home.call(&["verify"]).env("AMPLIFIER_SESSIONS_FORCE_TTY", "100").run().stdout;
        assert!(
            in_a_pipe.starts_with("-\t") && on_a_terminal.starts_with("(store)  "),
            "{step}: {in_a_pipe}"
        );
        let ran = home.run_json(&["verify", "--repair"]);
        assert_eq!((ran.code, differences(&ran, "left")), (0, vec![]), "{step}: {}", ran.all());
        assert_eq!(home.run(&["verify"]).code, 0, "{step}");
    }
}

#[test]
fn an_index_with_other_documents_is_made_anew() {
    let (home, folder) = home();
    // A message that the index has gets another row behind its back, and one that it has is gone.
    damage(
        &home,
        "UPDATE transcripts SET ts = '2026-01-01T01:00:00.000000Z', ts_source = 'stated' WHERE sequence = 1;
         UPDATE transcripts SET key = 100000 WHERE sequence = 2;",
    );
    let ran = home.run_json(&["verify", "--no-disk"]);
    let found = differences(&ran, "differences");
    assert!(found.contains(&"index message 1".to_owned()), "{}", ran.all());
    assert!(found.contains(&"index message 2".to_owned()), "{}", ran.all());
    assert!(ran.json()["differences"].to_string().contains("but not in the store"), "{}", ran.all());
    assert_eq!(home.run(&["verify", "--no-disk", "--repair"]).code, 0);
    drop(folder);
}

#[test]
fn what_only_the_files_have_cannot_be_repaired_without_them() {
    let (home, folder) = home();
    fs::remove_dir_all(folder).unwrap();
    assert_eq!(home.json(&["verify"])["known"]["without_folder"], 1);
    damage(
        &home,
        "UPDATE transcripts SET raw = replace(raw, 'zebra', 'zebrb') WHERE sequence = 2;
         DELETE FROM transcript_vectors WHERE sequence = 4;
         UPDATE sessions SET turn_count = 77;",
    );
    let ran = home.run_json(&["verify", "--repair"]);
    assert_eq!((ran.code, differences(&ran, "left")), (1, own(&["damaged message 2"])), "{}", ran.all());
    let ran = home.run(&["verify"]);
    assert_eq!(ran.code, 1);
    let line = format!("{SESSION}\tmessage 2: the database contains a line that can't be read\n");
    assert!(ran.stdout.starts_with(&line), "{}", ran.all());
    assert!(ran.stderr.contains("1 difference found") && ran.stderr.contains("--repair"), "{}", ran.all());
}

#[test]
fn samples_verify_clean() {
    let report = SYNCED.json(&["verify"]);
    assert_eq!((&report["sessions"], &report["on_disk"]), (&json!(12), &json!(12)));
    assert_eq!((&report["difference_count"], &report["left"]), (&json!(0), &Value::Null));
    assert_eq!(report["known"]["without_folder"], 0);
    assert!(report["lines"].as_u64().unwrap() > 500, "{report:#}");
}

#[cfg(feature = "duckdb-system")]
#[test]
fn samples_in_duckdb_verify_clean() {
    let home = Home::with_samples();
    let store = ["--store", "duckdb:~/sessions.duckdb"];
    home.ok(&[&["sync"], &store[..]].concat());
    let report = home.json(&[&["verify"], &store[..]].concat());
    assert_eq!((&report["sessions"], &report["on_disk"]), (&json!(12), &json!(12)));
    assert_eq!(home.run(&[&["verify", "--gaps"], &store[..]].concat()).code, 0);
}

#[test]
fn an_export_leaves_damaged_lines_out() {
    let (home, _) = home();
    damage(
        &home,
        "UPDATE transcripts SET raw = replace(raw, 'zebra', 'zebrb') WHERE sequence = 2;
         UPDATE events SET raw = CAST(replace(CAST(raw AS TEXT), 'bash', 'dash') AS BLOB) WHERE sequence = 1;
         UPDATE event_chunks SET chunk_data = x'28b52ffd0000' WHERE sequence = 5 AND chunk_index = 1;",
    );
    let out = home.path().join("archive.jsonl");
    let ran = home.run_json(&["export", "--out", out.to_str().unwrap()]);
    let report = ran.json();
    assert_eq!(
        (ran.code, &report["messages"], &report["events"]),
        (1, &json!(8), &json!(4)),
        "{}",
        ran.all()
    );
    let damaged = report["damaged"].as_array().unwrap();
    let of: Vec<u64> = damaged.iter().map(|row| row["sequence"].as_u64().unwrap()).collect();
    assert_eq!(of, [2, 1, 5]);
    let imported = home.json(&["import", out.to_str().unwrap(), "--store", "sqlite:~/other.sqlite"]);
    assert_eq!((&imported["messages"], &imported["events"]), (&json!(8), &json!(4)));
    let restored = home.path().join("restored");
    let ran = home.run_json(&["restore", "--to", restored.to_str().unwrap()]);
    assert_eq!((ran.code, ran.json()["damaged"].as_array().unwrap().len()), (1, 3), "{}", ran.all());
    let line =
        fs::read(restored.join("projects/-home-dana-shop/sessions").join(SESSION).join("transcript.jsonl"));
    assert_eq!(line.unwrap().split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count(), 8);
}

/// A session id that differs in one bit.
const OTHER: &str = "d0000000-0000-4000-8000-000000000003";

/// The kinds of the differences that a damaged store has. Expects that a sync that reads all files leaves nothing
/// missing, that a repair leaves no difference, and that nothing is left of the damage.
fn is_repaired(sql: &str) -> Vec<String> {
    let (home, _) = home();
    damage(&home, sql);
    home.ok(&["sync", "--verify"]);
    let (home, _) = self::home();
    damage(&home, sql);
    let ran = home.run_json(&["verify"]);
    let found = differences(&ran, "differences");
    assert_eq!(ran.code, 1, "{sql}: {}", ran.all());
    let ran = home.run_json(&["verify", "--repair"]);
    assert_eq!((ran.code, differences(&ran, "left")), (0, Vec::new()), "{sql}: {}", ran.all());
    let ran = home.run_json(&["verify"]);
    assert_eq!(ran.code, 0, "{sql}: {}", ran.all());
    let report = ran.json();
    assert_eq!((&report["sessions"], &report["vectors"]), (&json!(1), &json!(9)), "{sql}");
    assert_eq!((&report["messages"], &report["events"]), (&json!(9), &json!(6)), "{sql}");
    let connection = Connection::open(home.amplifier().join("sessions.sqlite")).unwrap();
    let ids = "SELECT count(*) FROM events WHERE event_id <> session_id || '_evt_' || sequence";
    let wrong: i64 = connection.query_row(ids, [], |row| row.get(0)).unwrap();
    assert_eq!(wrong, 0, "{sql}");
    found
}

#[test]
fn damaged_keys_of_events_are_found_and_repaired() {
    let found = is_repaired(&format!("UPDATE events SET session_id = '{OTHER}' WHERE sequence = 2;"));
    assert_eq!(found, ["gap event 2", "not_stored events.jsonl 3", "no_session "]);
    let found = is_repaired(&format!("UPDATE events SET session_id = '{OTHER}' WHERE sequence = 5;"));
    assert!(found.contains(&"no_session ".to_owned()), "{found:?}");
    let found = is_repaired("UPDATE events SET sequence = 66 WHERE sequence = 2;");
    assert_eq!(found[..4], ["damaged event 66", "gap event 2", "gap event 6 65", "count "], "{found:?}");
    for id in [format!("{SESSION}_evt_6"), format!("{SESSION}_evt_r"), format!("{OTHER}_evt_2")] {
        let found = is_repaired(&format!("UPDATE events SET event_id = '{id}' WHERE sequence = 2;"));
        assert_eq!(found, ["damaged event 2"], "{id}");
    }
    // The event whose id another one has is missing.
    is_repaired(&format!(
        "DELETE FROM events WHERE sequence = 3;
         UPDATE events SET event_id = '{SESSION}_evt_3' WHERE sequence = 2;"
    ));
    is_repaired(&format!("UPDATE event_chunks SET session_id = '{OTHER}' WHERE chunk_index = 1;"));
}

#[test]
fn damaged_keys_of_messages_and_vectors_are_found_and_repaired() {
    let found = is_repaired(&format!("UPDATE transcripts SET session_id = '{OTHER}' WHERE sequence = 4;"));
    assert_eq!(found[0], "gap message 4");
    assert!(found.contains(&"no_session ".to_owned()), "{found:?}");
    is_repaired("UPDATE transcripts SET sequence = 12 WHERE sequence = 4;");
    for set in [
        &format!("session_id = '{OTHER}'"),
        "sequence = 34",
        "generation = 4",
        "content_type = 'tool_output'",
        "chunk_index = 4, total_chunks = 5",
    ] {
        let found = is_repaired(&format!("UPDATE transcript_vectors SET {set} WHERE sequence = 2;"));
        assert!(found.contains(&"vectors message 2".to_owned()), "{set}: {found:?}");
    }
}

/// The positions of a text in the file of the database.
fn positions(home: &Home, text: &str) -> (PathBuf, Vec<usize>) {
    let file = home.amplifier().join("sessions.sqlite");
    let bytes = fs::read(&file).unwrap();
    let found = bytes.windows(text.len()).enumerate().filter(|(_, window)| *window == text.as_bytes());
    let found = found.map(|(at, _)| at).collect();
    (file, found)
}

#[test]
fn flipped_bits_in_keys_are_repaired_in_tables_and_indexes() {
    // The session and the id in the row of an event and in its indexes; the session of a message.
    let id = format!("{SESSION}_evt_3");
    for (text, at) in [(id.as_str(), id.len() - 1), (id.as_str(), SESSION.len() - 1)] {
        let count = positions(&home().0, text).1.len();
        assert!(count >= 2, "{count}");
        for place in 0..count {
            let (home, _) = home();
            let (file, places) = positions(&home, text);
            let mut bytes = fs::read(&file).unwrap();
            bytes[places[place] + at] ^= 4;
            fs::write(&file, bytes).unwrap();
            let what = format!("{text} at {place}, {at}");
            let ran = home.run_json(&["verify"]);
            assert_eq!(ran.code, 1, "{what}: {}", ran.all());
            let ran = home.run_json(&["verify", "--repair"]);
            assert_eq!((ran.code, differences(&ran, "left")), (0, Vec::new()), "{what}: {}", ran.all());
            let ran = home.run_json(&["verify"]);
            assert_eq!(ran.code, 0, "{what}: {}", ran.all());
            assert_eq!((&ran.json()["messages"], &ran.json()["events"]), (&json!(9), &json!(6)), "{what}");
        }
    }
}

#[test]
fn vectors_of_turns_are_compared_and_made_again() {
    is_found_and_repaired(
        "DELETE FROM message_embeddings WHERE sequence = 2;",
        &["vectors message 2", "index "],
    );
    is_found_and_repaired(
        "UPDATE message_embeddings SET vector = x'00' WHERE sequence = 0;
         UPDATE message_embeddings SET vector = zeroblob(8) WHERE sequence = 2;
         UPDATE message_embeddings SET content_used = 'User: x' WHERE sequence = 4;
         UPDATE message_embeddings SET sequence = 38 WHERE sequence = 6;",
        &[
            "vectors message 0",
            "vectors message 2",
            "vectors message 4",
            "vectors message 6",
            "vectors message 38",
            "index message 2",
            "index message 0",
            "index message 38",
        ],
    );
    // A message that is written again loses the vector of its turn.
    let (home, _) = home();
    let turns = || -> i64 {
        let connection = Connection::open(home.amplifier().join("sessions.sqlite")).unwrap();
        connection.query_row("SELECT count(*) FROM message_embeddings", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(turns(), 4);
    damage(&home, "UPDATE transcripts SET raw = replace(raw, 'zebra', 'zebrb') WHERE sequence IN (2, 5);");
    assert_eq!(home.run(&["verify", "--repair"]).code, 0);
    assert_eq!(turns(), 4);
}
