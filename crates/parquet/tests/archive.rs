//! Archives written to Parquet and read back.

#![allow(clippy::unwrap_used)]

use std::{fs, path::Path};

use amplifier_session_core::{
    ErrorKind,
    model::{RawJson, TimeSource, Timestamp},
    storage::{ArchiveReader, ArchiveWriter, MessageRecord, Raw, Record},
};
use amplifier_session_parquet::{ParquetReader, ParquetWriter};
use serde_json::{Value, json};

fn archive() -> Record {
    Record::Archive { format: 1, writer: "test".to_owned(), checksums: true }
}

fn session(user: &str, id: &str, messages: u32, events: u32) -> Record {
    let record = json!({"record": "session", "session": {
        "session_id": id, "user_id": user, "host_id": "h", "project_slug": "p", "created": "2026-01-05T08:00:00.000001Z",
        "updated": "0001-01-01T00:00:00Z", "name": "caf\u{e9} \u{0} \u{2028}", "description": null, "bundle": null,
        "model": null, "turn_count": 1, "message_count": messages, "event_count": events, "parent_id": null,
        "forked_from_turn": null, "tags": ["a", ""], "visibility": "private", "org_id": null, "team_ids": [],
        "shared_at": null, "working_dir": null, "first_prompt": "", "edited": ["name"]},
        "metadata_files": [{"name": "metadata.json", "raw": "{\"a\": 1.10}\r\n"}],
        "skipped": [{"file": "events.jsonl", "line": 7, "reason": "broken"}], "sync_state": null});
    serde_json::from_value(record).unwrap()
}

fn message(sequence: u32, raw: impl Into<Vec<u8>>) -> Record {
    Record::Message(Box::new(MessageRecord {
        sequence,
        role: "assistant".parse().unwrap(),
        turn: sequence.checked_sub(1),
        ts: Timestamp::from_micros(i64::from(sequence) * 1_000_001 - 62_000_000_000_000_000),
        ts_source: if sequence % 2 == 1 { TimeSource::Interpolated } else { TimeSource::Stated },
        synced_at: Timestamp::from_micros(250_000_000_000_000_001),
        raw: Raw::from(RawJson::new(raw)),
        vectors: Vec::new(),
        vector_failure: None,
        turn_summary: None,
        turn_embeddings: Vec::new(),
    }))
}

fn event(sequence: u32, raw: Option<&str>) -> Record {
    let record = json!({"record": "event", "sequence": sequence, "event_id": format!("e{sequence}"), "event_type": "tool:post",
        "ts": "2026-01-05T08:00:00Z", "ts_estimated": false, "turn": null, "level": "WARN", "tool_name": "bash",
        "error_type": null, "model": null, "provider": null, "summary": {"n": 1.5, "deep": [{"a": null}]},
        "data_size_bytes": 6_000_000_000_u64, "digest": "00", "raw": raw});
    serde_json::from_value(record).unwrap()
}

fn records() -> Vec<Record> {
    let long = "x".repeat(600_000);
    vec![
        archive(),
        session("ana", "s", 3, 2),
        message(0, "{\"role\":\"user\",\"content\":\"<|endoftext|> \\u0000 \\ud800\"}"),
        message(1, &b"{\"a\":\"caf\xe9\"}\r"[..]),
        message(2, format!("{{\"content\":\"{long}\"}}")),
        event(0, Some("{\"event\": 1.10}")),
        event(1, None),
        Record::End { messages: 3, events: 2, checksum: None },
        session("ana", "empty", 0, 0),
        Record::End { messages: 0, events: 0, checksum: None },
        // The same id as above, in the next row.
        session("ben", "empty", 1, 0),
        message(0, "{}"),
        Record::End { messages: 1, events: 0, checksum: None },
        Record::Complete { sessions: 3, checksum: None },
    ]
}

fn write(folder: &Path, records: Vec<Record>) {
    let mut writer = ParquetWriter::new(folder);
    records.into_iter().for_each(|record| writer.put(record).unwrap());
    writer.finish().unwrap();
}

fn read(folder: &Path) -> amplifier_session_core::Result<Vec<Record>> {
    let mut reader = ParquetReader::open(folder)?;
    std::iter::from_fn(|| reader.next().transpose()).collect()
}

fn json_of(records: &[Record]) -> Vec<Value> {
    records.iter().map(|record| serde_json::to_value(record).unwrap()).collect()
}

#[test]
fn records_come_back() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), records());
    assert_eq!(json_of(&read(folder.path()).unwrap()), json_of(&records()));
}

#[test]
fn many_rows_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = vec![archive(), session("ana", "s", 5_000, 3_000)];
    records.extend((0..5_000).map(|n| message(n, format!("{{\"content\":{n}}}"))));
    records.extend((0..3_000).map(|n| event(n, Some("{}"))));
    records.extend([
        Record::End { messages: 5_000, events: 3_000, checksum: None },
        Record::Complete { sessions: 1, checksum: None },
    ]);
    write(folder.path(), records.clone());
    // `assert_eq` would print thousands of rows.
    assert!(json_of(&read(folder.path()).unwrap()) == json_of(&records));
}

#[test]
fn a_session_can_be_read_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = records();
    // More rows than are read at a time.
    records.truncate(records.len() - 1);
    records.push(session("cay", "long", 200, 100));
    records.extend((0..200).map(|sequence| message(sequence, format!("{{\"n\":{sequence}}}"))));
    records.extend((0..100).map(|sequence| event(sequence, None)));
    records.push(Record::End { messages: 200, events: 100, checksum: None });
    records.push(Record::Complete { sessions: 4, checksum: None });
    write(folder.path(), records.clone());

    let mut reader = ParquetReader::open(folder.path()).unwrap();
    let mut found = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        found.push(record.clone());
        if matches!(record, Record::Session(_)) {
            assert!(reader.mark());
            while !matches!(reader.next().unwrap(), Some(Record::End { .. })) {}
            reader.go_back().unwrap();
        }
    }
    assert!(json_of(&found) == json_of(&records));
}

#[test]
fn repeated_rows_count_once() {
    let folder = tempfile::tempdir().unwrap();
    let whole = records();
    let mut records =
        vec![archive(), session("ana", "s", 9, 9), message(0, "{}"), event(0, None), Record::Again];
    records.extend(whole.iter().skip(1).cloned());
    write(folder.path(), records);
    assert_eq!(json_of(&read(folder.path()).unwrap()), json_of(&whole));
}

#[test]
fn an_empty_archive_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let empty = vec![archive(), Record::Complete { sessions: 0, checksum: None }];
    write(folder.path(), empty.clone());
    assert_eq!(json_of(&read(folder.path()).unwrap()), json_of(&empty));
}

#[test]
fn misplaced_rows_are_named() {
    let [folder, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    write(folder.path(), records());
    let mut strangers = records();
    strangers.splice(
        1..1,
        [session("eve", "s", 1, 0), message(0, "{}"), Record::End { messages: 1, events: 0, checksum: None }],
    );
    write(other.path(), strangers);
    fs::copy(other.path().join("messages.parquet"), folder.path().join("messages.parquet")).unwrap();
    let mut reader = ParquetReader::open(folder.path()).unwrap();
    let errors: Vec<_> = std::iter::from_fn(|| reader.next().transpose()).filter_map(Result::err).collect();
    let error = errors.last().unwrap();
    assert_eq!(error.kind(), ErrorKind::Validation);
    assert!(error.to_string().contains("does not belong to any session"), "{error}");
    assert_eq!(error.context("messages.parquet"), Some("1"));
}

#[test]
fn a_row_that_was_changed_is_noticed_at_the_end_of_its_session() {
    let [folder, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    write(folder.path(), records());
    let mut changed = records();
    changed[11] = message(0, "[]");
    write(other.path(), changed);
    fs::copy(other.path().join("messages.parquet"), folder.path().join("messages.parquet")).unwrap();
    let mut reader = ParquetReader::open(folder.path()).unwrap();
    let read: Vec<_> = std::iter::repeat_with(|| reader.next()).take(records().len()).collect();
    let failed: Vec<_> = read.iter().enumerate().filter(|(_, record)| record.is_err()).collect();
    assert_eq!(failed.len(), 1);
    let error = failed[0].1.as_ref().unwrap_err();
    assert!(failed[0].0 == 12 && error.to_string().contains("checksum does not match"), "{error}");
    assert!(matches!(read[13], Ok(Some(Record::Complete { .. }))));
}

#[test]
fn missing_and_broken_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), records());
    fs::write(folder.path().join("events.parquet"), "PAR1 and so on").unwrap();
    let error = read(folder.path()).unwrap_err();
    assert!(error.kind() == ErrorKind::StorageIo && error.to_string().contains("events.parquet"), "{error}");
    fs::remove_file(folder.path().join("events.parquet")).unwrap();
    assert!(read(folder.path()).unwrap_err().to_string().contains("events.parquet"));
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_access_the_archive() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), records());
    for file in amplifier_session_parquet::FILES {
        assert_eq!(fs::metadata(folder.path().join(file)).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
