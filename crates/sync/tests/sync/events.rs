//! Event logs: appended, large, and read from the last position.

use std::{
    fs::{self, File},
    sync::Arc,
};

use amplifier_session_core::{ErrorKind, storage::EventDetail};
use amplifier_session_sync::{Progress, sync};
use amplifier_session_testkit::{FlakyBackend, Operation, lines};
use serde_json::json;

use crate::fixture::{Fixture, NOW, set_modified, skipped};

fn events<const N: usize>(types: [&str; N]) -> [lines::Line; N] {
    types.map(lines::logger_event)
}

#[tokio::test]
async fn only_the_new_part_of_a_log_is_read() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.events(events(["a", "b"])).unwrap();
    fixture.sync().await;
    let before = fs::metadata(folder.path().join("events.jsonl")).unwrap().len();
    folder.append_events(events(["c"])).unwrap();
    let after = fs::metadata(folder.path().join("events.jsonl")).unwrap().len();
    let (report, read) = fixture.sync_and_count().await;
    assert_eq!((report.events.written, report.bytes, read), (1, after - before, after - before));
    assert_eq!(fixture.event_types().await, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_log_that_does_not_continue_is_compared_from_its_beginning() {
    let cases: [(&[&str], u64, u64); 3] = [
        // Truncated.
        (&["a", "x"], 1, 1),
        // Longer, with another line where the last one was.
        (&["w", "x", "y", "z"], 4, 0),
        // Changed in place.
        (&["x", "b", "c"], 1, 0),
    ];
    for (types, written, removed) in cases {
        let fixture = Fixture::new();
        let folder = fixture.folder();
        let path = folder.path().join("events.jsonl");
        folder.events(events(["a", "b", "c"])).unwrap();
        set_modified(&path, "2026-01-05T08:00:00Z");
        fixture.sync().await;
        folder.events(types.iter().map(|name| lines::logger_event(name))).unwrap();
        set_modified(&path, "2026-01-05T08:00:01Z");
        let report = fixture.sync().await;
        assert_eq!((report.events.written, report.events.removed), (written, removed), "{types:?}");
        assert_eq!(fixture.event_types().await, types);
    }
}

#[tokio::test]
async fn a_replaced_log_with_the_same_beginning_is_continued() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.events(events(["a", "b"])).unwrap();
    fixture.sync().await;
    fs::rename(folder.path().join("events.jsonl"), folder.path().join("old")).unwrap();
    folder.events(events(["a", "b", "c"])).unwrap();
    let (report, read) = fixture.sync_and_count().await;
    assert_eq!(report.events.written, 1);
    assert!(read < fs::metadata(folder.path().join("events.jsonl")).unwrap().len());
}

#[tokio::test]
async fn an_incomplete_last_event_is_stored_when_complete() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.events(events(["a"])).unwrap().append("events.jsonl", r#"{"event":"b","#).unwrap();
    set_modified(&fixture.folder().path().join("events.jsonl"), "2026-01-05T08:00:00Z");
    fixture.clock.set("2026-01-05T08:10:00Z");
    let report = fixture.sync().await;
    assert_eq!((report.events.written, report.skipped_count), (1, 0));
    folder.append("events.jsonl", "\"data\":{}}\n").unwrap();
    assert_eq!(fixture.sync().await.events.written, 1);
    assert_eq!(fixture.event_types().await, ["a", "b"]);
}

#[tokio::test]
async fn a_last_event_without_newline_is_stored_once() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder
        .events(events(["a"]))
        .unwrap()
        .append("events.jsonl", lines::logger_event("b").raw().as_bytes())
        .unwrap();
    assert_eq!(fixture.sync().await.events.written, 2);
    folder.append("events.jsonl", "\n{bad\n").unwrap().append_events(events(["c"])).unwrap();
    let report = fixture.sync().await;
    assert_eq!(report.events.written, 1);
    assert_eq!(skipped(&report), [(Some("events.jsonl"), Some(3))], "the newline began no line");
    assert_eq!(fixture.event_types().await, ["a", "b", "c"]);
}

#[tokio::test]
async fn invalid_lines_are_recorded_until_they_are_repaired() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.events(events(["a"])).unwrap().append("events.jsonl", "{bad\n").unwrap();
    fixture.sync().await;
    folder.append_events(events(["c"])).unwrap().append("events.jsonl", "[]\n").unwrap();
    assert_eq!(skipped(&fixture.sync().await), [(Some("events.jsonl"), Some(4))]);
    assert_eq!(fixture.noted().await, [("events.jsonl".to_owned(), 2), ("events.jsonl".to_owned(), 4)]);
    folder.events(events(["a", "b", "c", "d"])).unwrap();
    assert_eq!(fixture.sync().await.skipped_count, 0);
    assert_eq!(fixture.event_types().await, ["a", "b", "c", "d"]);
    assert!(fixture.noted().await.is_empty());
}

#[tokio::test]
async fn logs_with_windows_line_endings_and_a_byte_order_mark_are_continued() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    let line = |kind| lines::logger_event(kind).raw().to_text().into_owned();
    folder.file("events.jsonl", format!("\u{feff}{}\r\n", line("a"))).unwrap();
    fixture.sync().await;
    folder.append("events.jsonl", format!("{}\r\n", line("b"))).unwrap();
    let (report, read) = fixture.sync_and_count().await;
    assert_eq!((report.events.written, read), (1, line("b").len() as u64 + 2));
    let kept: Vec<String> = fixture
        .events("s")
        .await
        .into_iter()
        .map(|event| event.raw.unwrap().to_text().into_owned())
        .collect();
    assert_eq!(kept, [line("a"), line("b")]);
}

#[tokio::test]
async fn a_growing_log_is_read_from_the_last_position() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    let path = folder.path().join("events.jsonl");
    folder.events(events(["a", "b"])).unwrap();
    set_modified(&path, NOW);
    fixture.sync().await;
    assert_eq!(fixture.sync_and_count().await.1, 0, "only lines after the last position are read");
    folder.append_events(events(["c"])).unwrap();
    assert_eq!(fixture.sync().await.events.written, 1);
}

#[tokio::test]
async fn the_sessions_own_log_is_the_first_one_unless_empty() {
    let fixture = Fixture::new();
    let other = lines::context_event("other").raw().to_text().into_owned() + "\n";
    fixture
        .folder()
        .events(events(["own"]))
        .unwrap()
        .file("context-intelligence/events.jsonl", &other)
        .unwrap();
    let empty = fixture.session("p", "t");
    empty.file("events.jsonl", "").unwrap().file("context-intelligence/events.jsonl", &other).unwrap();
    fixture.sync().await;
    assert_eq!(fixture.event_types().await, ["own", "other"]);
    assert_eq!(fixture.events("t").await[0].event.event_type, "other");
}

/// Lines of 600 KB that can't be compressed below a half.
fn large_events(count: usize) -> Vec<lines::Line> {
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:016x}", state)
    };
    let mut line = |n| {
        let text: String = (0..37_500).map(|_| noise()).collect();
        lines::logger_event(&format!("e{n}")).data(json!({"text": text}))
    };
    (0..count).map(&mut line).collect()
}

#[tokio::test]
async fn an_interrupted_sync_of_a_large_log_continues() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.events(large_events(130)).unwrap();
    let size = fs::metadata(folder.path().join("events.jsonl")).unwrap().len();
    // The first 16 MB are written, then the disk is full.
    let progress = FullAfterOneWrite(fixture.backend.clone());
    let error = sync(&fixture.storage, &fixture.options(), &progress).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageIo);
    assert_eq!(error.context("synced"), Some("0 of 1 session"));
    fixture.backend.recover();
    let stored = fixture.stored("s").await.unwrap().session.event_count;
    assert!(stored > 20 && stored < 130, "{stored} events");

    let (report, read) = fixture.sync_and_count().await;
    assert_eq!(report.events.written, u64::from(130 - stored));
    assert!(read < size - u64::from(stored - 4) * 600_000, "{read} of {size} bytes");
    let expected = large_events(130);
    for (event, line) in fixture.events("s").await.into_iter().zip(expected) {
        assert_eq!(event.raw.unwrap(), line.raw());
    }
    assert_eq!(fixture.sync_and_count().await.1, 0);
}

/// Lets every write fail as soon as there was one.
struct FullAfterOneWrite(Arc<FlakyBackend>);

impl Progress for FullAfterOneWrite {
    fn advance(&self, _bytes: u64) {
        if self.0.calls(Operation::Write) > 0 {
            self.0.break_operation(Operation::Write, ErrorKind::StorageIo);
        }
    }
}

#[tokio::test]
async fn a_failed_comparison_of_a_shorter_log_still_removes_the_tail() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.events((0..200).map(|n| lines::logger_event(&format!("old{n}")))).unwrap();
    fixture.sync().await;
    folder.events(large_events(60)).unwrap();
    fixture.backend.reset_counts();
    let progress = FullAfterOneWrite(fixture.backend.clone());
    sync(&fixture.storage, &fixture.options(), &progress).await.unwrap_err();
    fixture.backend.recover();
    assert_eq!(fixture.stored("s").await.unwrap().session.event_count, 200);
    fixture.sync().await;
    let types = fixture.event_types().await;
    assert_eq!((types.len(), types[59].as_str()), (60, "e59"));
}

#[tokio::test]
async fn lines_above_64_mb_are_skipped_and_reported() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.events(events(["a"])).unwrap();
    let path = folder.path().join("events.jsonl");
    // A hole in the file: 65 MB of NUL without a newline.
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() + 65 * 1024 * 1024).unwrap();
    folder.append("events.jsonl", "\n").unwrap().append_events(events(["b"])).unwrap();
    let report = fixture.sync().await;
    assert_eq!(skipped(&report), [(Some("events.jsonl"), Some(2))]);
    assert!(report.skipped[0].reason.contains("67.1 MB"));
    assert_eq!(fixture.event_types().await, ["a", "b"]);
    folder.append_events(events(["c"])).unwrap();
    assert_eq!(fixture.sync().await.events.written, 1);
}

#[tokio::test]
async fn with_events_turned_off_none_are_stored() {
    let mut fixture = Fixture::new();
    fixture.keep_events(EventDetail::None);
    fixture.folder().transcript([lines::user("one")]).unwrap().events(events(["a", "b"])).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.events.written, report.messages.written), (0, 1));
    assert_eq!(fixture.sync().await.sessions.unchanged, 1);
    // With events turned on later, all are stored.
    fixture.keep_events(EventDetail::Full);
    assert_eq!(fixture.sync().await.events.written, 2);
    // With events turned off again, the stored ones stay.
    fixture.keep_events(EventDetail::None);
    fixture.folder().append_events(events(["c"])).unwrap();
    assert_eq!(fixture.sync().await.sessions.unchanged, 1);
    assert_eq!(fixture.event_types().await, ["a", "b"]);
}

#[tokio::test]
async fn payloads_can_be_added_later() {
    let mut fixture = Fixture::new();
    fixture.keep_events(EventDetail::Summary);
    fixture.folder().events(events(["a", "b"])).unwrap();
    fixture.sync().await;
    assert!(fixture.events("s").await.iter().all(|event| event.raw.is_none()));
    fixture.keep_events(EventDetail::Full);
    assert_eq!(fixture.sync().await.events.written, 2);
    assert!(fixture.events("s").await.iter().all(|event| event.raw.is_some()));
    assert_eq!(fixture.sync().await.sessions.unchanged, 1);
    // Storing less from now on removes nothing.
    fixture.keep_events(EventDetail::Summary);
    assert_eq!(fixture.sync().await.sessions.unchanged, 1);
}
