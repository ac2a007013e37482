//! Transcripts, which writers replace, and which are compared line by line.

use std::fs;

use amplifier_session_core::model::Timestamp;
use amplifier_session_testkit::lines;

use crate::fixture::{Fixture, NOW, set_modified, skipped};

#[tokio::test]
async fn all_files_of_a_new_session_are_stored() {
    let fixture = Fixture::new();
    fixture
        .folder()
        .metadata(r#"{"name":"Basket"}"#)
        .unwrap()
        .transcript([lines::user("Hello"), lines::thinking("Hm.", "Hi!")])
        .unwrap()
        .events([lines::logger_event("session:start")])
        .unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.sessions.found, report.sessions.new), (1, 1));
    assert_eq!((report.messages.written, report.events.written), (2, 1));
    let by_type: Vec<(String, u64)> =
        report.messages.by_content_type.iter().map(|(kind, count)| (kind.to_string(), *count)).collect();
    let expected = [("user_query", 1), ("assistant_response", 1), ("assistant_thinking", 1)];
    assert_eq!(by_type, expected.map(|(kind, count)| (kind.to_owned(), count)));
    let session = fixture.stored("s").await.unwrap().session;
    assert_eq!((session.name.as_deref(), session.project_slug.as_str()), (Some("Basket"), "p"));
    assert_eq!((session.message_count, session.turn_count, session.event_count), (2, 1, 1));
}

#[tokio::test]
async fn the_same_sync_twice_changes_nothing() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("Hello")]).unwrap();
    fixture.sync().await;
    let before = fixture.stored("s").await.unwrap();
    let (report, read) = fixture.sync_and_count().await;
    assert_eq!((report.sessions.unchanged, report.messages.written, read), (1, 0, 0));
    assert_eq!(fixture.stored("s").await.unwrap(), before);
}

#[tokio::test]
async fn only_lines_that_differ_are_written_or_removed() {
    let cases: [(&[&str], u64, u64); 3] = [
        (&["one", "two", "three", "four", "five"], 1, 0),
        (&["one", "TWO", "three", "four"], 1, 0),
        // A rewind.
        (&["one", "other"], 1, 2),
    ];
    for (texts, written, removed) in cases {
        let fixture = Fixture::new();
        let folder = fixture.folder();
        let path = folder.path().join("transcript.jsonl");
        folder.transcript(["one", "two", "three", "four"].map(lines::user)).unwrap();
        set_modified(&path, "2026-01-05T08:00:00Z");
        fixture.sync().await;
        folder.transcript(texts.iter().map(|text| lines::user(text))).unwrap();
        set_modified(&path, "2026-01-05T08:00:01Z");
        let report = fixture.sync().await;
        let counts = (report.sessions.changed, report.messages.written, report.messages.removed);
        assert_eq!(counts, (1, written, removed), "{texts:?}");
        assert_eq!(fixture.texts().await, texts);
        let session = fixture.stored("s").await.unwrap().session;
        let count = texts.len() as u32;
        assert_eq!((session.message_count, session.turn_count), (count, count));
    }
}

#[tokio::test]
async fn a_file_replaced_by_an_identical_one_writes_no_message() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.transcript(["one", "two"].map(lines::user)).unwrap();
    fixture.sync().await;
    let before = fixture.messages("s").await;
    folder.file("new", fs::read(folder.path().join("transcript.jsonl")).unwrap()).unwrap();
    fs::rename(folder.path().join("new"), folder.path().join("transcript.jsonl")).unwrap();
    let (report, read) = fixture.sync_and_count().await;
    assert!(read > 0, "another file must be read");
    assert_eq!((report.sessions.unchanged, report.messages.written), (1, 0));
    assert_eq!(fixture.messages("s").await, before);
    assert_eq!(fixture.sync_and_count().await.1, 0);
}

#[tokio::test]
async fn invalid_lines_are_reported_and_have_no_sequence() {
    let fixture = Fixture::new();
    let good = |text| lines::user(text).raw().to_text().into_owned();
    let content = format!("{}\n\n{{bad\n{}\n{{\"role\":\"ghost\"}}\n", good("one"), good("two"));
    fixture.folder().file("transcript.jsonl", content).unwrap();
    let report = fixture.sync().await;
    let expected = [(Some("transcript.jsonl"), Some(3)), (Some("transcript.jsonl"), Some(5))];
    assert_eq!(skipped(&report), expected);
    assert_eq!((report.skipped_count, report.sessions.new, report.failures.len()), (2, 1, 0));
    assert_eq!(report.skipped[0].session.as_deref(), Some("s"));
    assert!(!report.skipped[0].reason.is_empty());
    let sequences: Vec<u32> = fixture.messages("s").await.iter().map(|message| message.sequence).collect();
    assert_eq!(sequences, [0, 1]);
    assert_eq!(
        fixture.noted().await,
        [("transcript.jsonl".to_owned(), 3), ("transcript.jsonl".to_owned(), 5)]
    );
}

#[tokio::test]
async fn a_repaired_line_gets_its_place() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    let good = |text| lines::user(text).raw().to_text().into_owned();
    folder.file("transcript.jsonl", format!("{}\n{{bad\n{}\n", good("one"), good("three"))).unwrap();
    fixture.sync().await;
    folder.transcript(["one", "two", "three"].map(lines::user)).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.skipped_count, report.messages.written), (0, 2));
    assert_eq!(fixture.texts().await, ["one", "two", "three"]);
    assert!(fixture.noted().await.is_empty());
}

#[tokio::test]
async fn an_incomplete_last_line_waits_until_it_is_complete() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder
        .transcript([lines::user("one")])
        .unwrap()
        .append("transcript.jsonl", r#"{"role":"user","con"#)
        .unwrap();
    set_modified(&folder.path().join("transcript.jsonl"), "2026-01-05T08:00:00Z");
    fixture.clock.set("2026-01-05T08:10:00Z");
    let report = fixture.sync().await;
    assert_eq!((report.skipped_count, report.messages.written), (0, 1));
    folder.append("transcript.jsonl", "tent\":\"two\"}\n").unwrap();
    assert_eq!(fixture.sync().await.messages.written, 1);
    assert_eq!(fixture.texts().await, ["one", "two"]);
}

#[tokio::test]
async fn a_last_line_without_newline_is_stored() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.file("transcript.jsonl", lines::user("one").raw().as_bytes()).unwrap();
    assert_eq!(fixture.sync().await.messages.written, 1);
    folder.append("transcript.jsonl", "\n").unwrap().append_transcript([lines::user("two")]).unwrap();
    assert_eq!(fixture.sync().await.messages.written, 1);
    assert_eq!(fixture.texts().await, ["one", "two"]);
}

#[tokio::test]
async fn an_invalid_last_line_without_newline_is_reported() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("one")]).unwrap().append("transcript.jsonl", "[]").unwrap();
    assert_eq!(skipped(&fixture.sync().await), [(Some("transcript.jsonl"), Some(2))]);
    assert_eq!(fixture.noted().await, [("transcript.jsonl".to_owned(), 2)]);
}

#[tokio::test]
async fn while_an_append_is_pending_the_backup_is_read() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder
        .transcript(["one", "two", "do not trust"].map(lines::user))
        .unwrap()
        .file("transcript.jsonl.append-pending", "")
        .unwrap();
    let backup = ["one", "two"].map(|text| lines::user(text).raw().to_text().into_owned() + "\n").concat();
    folder.file("transcript.jsonl.backup", backup).unwrap();
    fixture.sync().await;
    assert_eq!(fixture.texts().await, ["one", "two"]);
    assert_eq!(fixture.sync().await.sessions.unchanged, 1);
    folder.remove("transcript.jsonl.append-pending").unwrap();
    fixture.sync().await;
    assert_eq!(fixture.texts().await, ["one", "two", "do not trust"]);
    // The backup is used again: the transcript that was read in between must not hide it. An older one removes nothing.
    folder.file("transcript.jsonl.append-pending", "").unwrap();
    fixture.sync().await;
    assert_eq!(fixture.texts().await, ["one", "two", "do not trust"]);
    let backup = ["one", "two", "three"].map(|text| lines::user(text).raw().to_text().into_owned() + "\n");
    folder.file("transcript.jsonl.backup", backup.concat()).unwrap();
    fixture.sync().await;
    assert_eq!(fixture.texts().await, ["one", "two", "three"]);
}

#[tokio::test]
async fn invalid_lines_of_the_backup_are_removed_with_it() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.transcript([lines::user("one")]).unwrap().file("transcript.jsonl.append-pending", "").unwrap();
    folder.file("transcript.jsonl.backup", "{bad\n").unwrap();
    fixture.sync().await;
    assert_eq!(fixture.noted().await, [("transcript.jsonl.backup".to_owned(), 1)]);
    folder.remove("transcript.jsonl.append-pending").unwrap();
    fixture.sync().await;
    assert!(fixture.noted().await.is_empty());
}

#[tokio::test]
async fn a_pending_append_without_backup_leaves_the_transcript_as_stored() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.transcript(["one", "two"].map(lines::user)).unwrap();
    fixture.sync().await;
    folder.transcript([lines::user("other")]).unwrap().file("transcript.jsonl.append-pending", "").unwrap();
    let report = fixture.sync().await;
    assert_eq!(skipped(&report), [(Some("transcript.jsonl"), None)]);
    assert_eq!(fixture.texts().await, ["one", "two"]);
}

#[tokio::test]
async fn a_pending_append_of_a_new_session_stores_nothing() {
    let fixture = Fixture::new();
    fixture
        .folder()
        .transcript([lines::user("one")])
        .unwrap()
        .file("transcript.jsonl.append-pending", "")
        .unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.sessions.found, report.sessions.unchanged, report.skipped_count), (1, 1, 1));
    assert!(fixture.stored("s").await.is_none());
}

#[tokio::test]
async fn messages_stay_in_the_store_if_the_transcript_is_gone() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.transcript([lines::user("one")]).unwrap().events([lines::logger_event("a")]).unwrap();
    fixture.sync().await;
    folder.remove("transcript.jsonl").unwrap().append_events([lines::logger_event("b")]).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.messages.removed, report.events.written), (0, 1));
    assert_eq!(fixture.texts().await, ["one"]);
}

#[tokio::test]
async fn sessions_stay_in_the_store_if_their_folder_is_gone() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.transcript([lines::user("one")]).unwrap();
    fixture.session("p", "other").transcript([lines::user("two")]).unwrap();
    fixture.sync().await;
    fs::remove_dir_all(folder.path()).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.sessions.found, report.sessions.unchanged), (1, 1));
    assert_eq!(fixture.texts().await, ["one"]);
}

#[tokio::test]
async fn a_file_that_has_just_changed_is_read_again() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    let path = folder.path().join("transcript.jsonl");
    folder.transcript([lines::user("one")]).unwrap();
    set_modified(&path, NOW);
    fixture.sync().await;
    // The same size and time, as on a file system with times in seconds.
    folder.file("transcript.jsonl", fs::read_to_string(&path).unwrap().replace("one", "two")).unwrap();
    set_modified(&path, NOW);
    fixture.clock.advance(3_000_000);
    assert_eq!(fixture.sync().await.messages.written, 1);
    assert_eq!(fixture.texts().await, ["two"]);
    assert_eq!(fixture.sync_and_count().await.1, 0, "it has settled by now");
}

#[tokio::test]
async fn lines_without_a_time_keep_that_of_the_file() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    let path = folder.path().join("transcript.jsonl");
    folder.transcript([lines::user("one"), lines::user("two")]).unwrap();
    set_modified(&path, "2026-01-05T10:00:00Z");
    fixture.sync().await;
    folder.append_transcript([lines::user("three")]).unwrap();
    set_modified(&path, "2026-01-05T11:00:00Z");
    fixture.sync().await;
    let times: Vec<_> = fixture.messages("s").await.iter().map(|m| (m.ts, m.ts_estimated())).collect();
    let at = |time| Timestamp::parse(time).unwrap();
    let expected = [
        (at("2026-01-05T10:00:00Z"), true),
        (at("2026-01-05T10:00:00Z"), true),
        (at("2026-01-05T11:00:00Z"), true),
    ];
    assert_eq!(times, expected);
}

#[tokio::test]
async fn lines_are_kept_byte_for_byte_without_endings_and_byte_order_mark() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    let kept = [
        r#"{"role":"user","content":"caf\u00e9 \ud800 \u0000 \\","n":1.50,"z":1,"a":2}"#,
        "{ \"role\":\"user\",\t\"content\":\"tab and space \u{2028}\" }",
        r#"{"content":"role last","role":"assistant","unknown":{"x":[1e3]}}"#,
    ];
    let content = format!("\u{feff}{}\r\n\r\n  \n{}\n{}", kept[0], kept[1], kept[2]);
    folder.file("transcript.jsonl", content).unwrap();
    assert_eq!(fixture.sync().await.skipped_count, 0);
    assert_eq!(fixture.transcript().await, kept);
}

#[tokio::test]
async fn lines_of_600_kb_are_stored() {
    let fixture = Fixture::new();
    let text = "long ".repeat(120_000);
    fixture.folder().transcript([lines::user("one"), lines::tool(&text), lines::user("two")]).unwrap();
    assert_eq!(fixture.sync().await.messages.written, 3);
    assert_eq!(fixture.texts().await[1], text);
}

#[tokio::test]
async fn other_files_in_the_folder_are_not_read() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.transcript([lines::user("one")]).unwrap();
    for name in
        ["config.md", "transcript.jsonl.backup", "metadata.json.bak-1", ".transcript_x.tmp", "notes.jsonl"]
    {
        folder.file(name, "{not ours").unwrap();
    }
    assert_eq!(fixture.sync().await.skipped_count, 0);
    folder.file("config.md", "changed").unwrap().file("transcript.jsonl.backup", "changed").unwrap();
    assert_eq!(fixture.sync().await.sessions.unchanged, 1);
}
