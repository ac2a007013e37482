//! A damaged file removes nothing from the store.

use std::{fs, sync::Arc};

use amplifier_session_core::{model::Message, storage::EventDetail};
use amplifier_session_sync::SyncReport;
use amplifier_session_testkit::{FakeEmbedding, lines};

use crate::fixture::{Fixture, NOW, set_modified};

const TRANSCRIPT: &str = "transcript.jsonl";

/// A transcript of user messages, one per line.
fn transcript(texts: &[&str]) -> Vec<u8> {
    texts.iter().flat_map(|text| [lines::user(text).raw().as_bytes(), b"\n"].concat()).collect()
}

fn log(types: &[&str]) -> Vec<u8> {
    types.iter().flat_map(|kind| [lines::logger_event(kind).raw().as_bytes(), b"\n"].concat()).collect()
}

/// The kept rows in a report: the file, its damage, messages and events.
fn kept(report: &SyncReport) -> Vec<(&str, &str, u64, u64)> {
    report.kept.iter().map(|kept| (&*kept.file, &*kept.reason, kept.messages, kept.events)).collect()
}

async fn accept(fixture: &Fixture) -> SyncReport {
    fixture.sync_with(fixture.options().with_accept_removals(true)).await
}

/// A session of four messages with vectors, whose transcript then becomes `damaged`.
async fn damaged(damaged: impl AsRef<[u8]>) -> (Fixture, Vec<Message>, SyncReport) {
    let fixture = Fixture::new().with_embedding(Arc::new(FakeEmbedding::new()));
    fixture.folder().file(TRANSCRIPT, transcript(&["one", "two", "three", "four"])).unwrap();
    fixture.sync().await;
    let before = fixture.messages("s").await;
    fixture.folder().file(TRANSCRIPT, damaged).unwrap();
    let report = fixture.sync().await;
    (fixture, before, report)
}

/// Checks that `missing` messages of a damaged transcript stay, with their vectors; that every sync reports them; that
/// the restored file changes nothing; and that `left` remain after accepting removals.
async fn keeps(content: &[u8], reason: &str, missing: u64, left: &[&str]) {
    let (fixture, before, report) = damaged(content).await;
    assert_eq!(kept(&report), [(TRANSCRIPT, reason, missing, 0)]);
    assert_eq!(
        (report.kept_rows, report.messages.written, report.messages.removed),
        (missing, 0, 0),
        "{reason}"
    );
    assert_eq!(fixture.messages("s").await, before, "{reason}");
    let (again, read) = fixture.sync_and_count().await;
    assert_eq!((kept(&again), read), (kept(&report), 0), "it is reported without being read again");

    fixture.folder().file(TRANSCRIPT, transcript(&["one", "two", "three", "four", "five"])).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.kept_rows, report.messages.written, report.messages.removed), (0, 1, 0), "{reason}");
    assert_eq!(report.vectors.values().sum::<u64>(), 1, "nothing else is embedded again");
    assert_eq!(fixture.messages("s").await[..4], before, "{reason}");

    fixture.folder().file(TRANSCRIPT, content).unwrap();
    fixture.sync().await;
    let report = accept(&fixture).await;
    assert_eq!((report.kept_rows, report.messages.removed), (0, 5 - left.len() as u64), "{reason}");
    assert_eq!(fixture.texts().await, left, "{reason}");
    let after = fixture.sync().await;
    assert_eq!((after.kept_rows, after.sessions.unchanged), (0, 1), "{reason}");
}

#[tokio::test]
async fn a_damaged_transcript_removes_nothing() {
    let [one, two] = [&["one"][..], &["one", "two"]].map(transcript);
    let whole = transcript(&["one", "two", "three", "four"]);
    let noise: Vec<u8> = (0..20_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let nuls_in_the_middle = [&one[..], &[0; 60], b"\n", &transcript(&["four"])].concat();
    let one_unreadable = [&one[..], b"{\"role\":\"us\n", &transcript(&["three", "four"])].concat();
    let cases: [(&[u8], &str, u64, &[&str]); 10] = [
        (b"", "is empty", 4, &[]),
        (b"\n  \n\n", "has no readable line", 4, &[]),
        (b"   ", "ends in the middle of line 1", 4, &[]),
        (&[0; 5_000], "contains binary data in line 1", 4, &[]),
        (&noise, "contains binary data in line 1", 4, &[]),
        (b"{bad\n{worse\n{worst\n", "can't be read in line 1", 4, &[]),
        (&whole[..two.len() + 7], "ends in the middle of line 3", 2, &["one", "two"]),
        (&whole[..two.len() - 1], "ends without a newline in line 2", 2, &["one", "two"]),
        (&nuls_in_the_middle, "contains binary data in line 2", 2, &["one", "four"]),
        (&one_unreadable, "can't be read in line 2", 1, &["one", "three", "four"]),
    ];
    for (content, reason, missing, left) in cases {
        keeps(content, reason, missing, left).await;
    }
}

#[tokio::test]
async fn a_different_last_line_waits_for_its_newline() {
    let (fixture, before, report) =
        damaged([&transcript(&["one"])[..], lines::user("x").raw().as_bytes()].concat()).await;
    assert_eq!(kept(&report), [(TRANSCRIPT, "ends without a newline in line 2", 3, 0)]);
    assert_eq!(fixture.messages("s").await, before);
    fixture.folder().append(TRANSCRIPT, "\n").unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.kept_rows, report.messages.removed), (0, 2), "now it is a rewind");
    assert_eq!(fixture.texts().await, ["one", "x"]);
}

#[tokio::test]
async fn new_lines_after_damage_follow_the_kept_rows() {
    let content = [&transcript(&["one", "two"])[..], &[0; 99], b"\n", &transcript(&["five", "six"])].concat();
    let (fixture, before, report) = damaged(content).await;
    assert_eq!(kept(&report), [(TRANSCRIPT, "contains binary data in line 3", 2, 0)]);
    assert_eq!((report.messages.written, report.messages.removed), (2, 0));
    assert_eq!(fixture.texts().await, ["one", "two", "three", "four", "five", "six"]);
    assert_eq!(fixture.messages("s").await[..4], before);
    let turns: Vec<_> = fixture.messages("s").await.iter().map(|message| message.turn).collect();
    assert_eq!(turns, (1..=6).map(Some).collect::<Vec<_>>());

    fixture.folder().append_transcript([lines::user("seven")]).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.kept_rows, report.messages.written, report.messages.removed), (2, 1, 0));

    fixture
        .folder()
        .file(TRANSCRIPT, transcript(&["one", "two", "three", "four", "five", "six", "seven"]))
        .unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.kept_rows, report.messages.written, report.messages.removed), (0, 0, 0));
}

#[tokio::test]
async fn a_file_that_begins_otherwise_is_not_damaged() {
    // Whether a sync saw the empty file or not.
    for seen in [true, false] {
        let (fixture, _, _) = damaged(if seen { Vec::new() } else { transcript(&["five"]) }).await;
        fixture.folder().file(TRANSCRIPT, transcript(&["five", "six"])).unwrap();
        let report = fixture.sync().await;
        assert_eq!((report.kept_rows, report.messages.superseded), (0, if seen { 4 } else { 0 }));
        assert_eq!(fixture.texts().await, ["five", "six"]);
        assert_eq!(fixture.sync_and_count().await.1, 0);
    }
}

#[tokio::test]
async fn a_larger_file_with_another_beginning_replaces_the_rows() {
    let (fixture, _, report) = damaged(transcript(&["another beginning", "two", "three", "four"])).await;
    assert_eq!((report.kept_rows, report.messages.written), (0, 1));
    assert_eq!(fixture.texts().await, ["another beginning", "two", "three", "four"]);
}

#[tokio::test]
async fn a_line_that_was_always_broken_is_not_damage() {
    let fixture = Fixture::new();
    let with_broken =
        |before: &[&str], after: &[&str]| [&transcript(before)[..], b"{bad\n", &transcript(after)].concat();
    fixture.folder().file(TRANSCRIPT, with_broken(&["one"], &["two", "three"])).unwrap();
    fixture.sync().await;
    fixture.folder().file(TRANSCRIPT, with_broken(&["one"], &["other"])).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.kept_rows, report.messages.removed), (0, 1));
    assert_eq!(fixture.texts().await, ["one", "other"]);
    // A new one at the end has nothing stored after it.
    fixture.folder().append(TRANSCRIPT, "{new\n").unwrap().append_transcript([lines::user("more")]).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.kept_rows, report.messages.written, report.skipped_count), (0, 1, 2));
    assert_eq!(fixture.texts().await, ["one", "other", "more"]);
}

#[tokio::test]
async fn a_broken_line_counts_as_damage_after_the_file_changes() {
    let content = |more: &[&str]| [&transcript(&["one"])[..], b"{bad\n", &transcript(more)].concat();
    let (fixture, _, _) = damaged(content(&["three", "four"])).await;
    fixture.folder().file(TRANSCRIPT, content(&["other"])).unwrap();
    assert_eq!(kept(&fixture.sync().await), [(TRANSCRIPT, "can't be read in line 2", 3, 0)]);
    assert_eq!(fixture.texts().await, ["one", "two", "three", "four", "other"]);
}

#[tokio::test]
async fn complete_lines_are_a_rewind_even_if_they_are_few() {
    let (fixture, _, report) = damaged(transcript(&["one"])).await;
    assert_eq!((report.kept_rows, report.messages.removed), (0, 3));
    assert_eq!(fixture.texts().await, ["one"]);
    let (fixture, _, report) = damaged(transcript(&["one", "other", "more"])).await;
    assert_eq!((report.kept_rows, report.messages.written, report.messages.removed), (0, 2, 1));
    assert_eq!(fixture.texts().await, ["one", "other", "more"]);
}

#[tokio::test]
async fn damage_of_a_recently_written_file_is_reported() {
    let (fixture, before, _) = damaged("").await;
    set_modified(&fixture.folder().path().join(TRANSCRIPT), NOW);
    assert_eq!(kept(&fixture.sync().await), [(TRANSCRIPT, "is empty", 4, 0)]);
    assert_eq!(fixture.messages("s").await, before);
    assert_eq!(accept(&fixture).await.messages.removed, 4);
}

#[tokio::test]
async fn damage_is_reported_when_another_file_of_the_session_changes() {
    let (fixture, before, _) = damaged("").await;
    fixture.folder().events([lines::logger_event("a")]).unwrap();
    let report = fixture.sync().await;
    assert_eq!((kept(&report).len(), report.events.written), (1, 1));
    // The events give the times.
    let lines: Vec<_> = before.iter().map(|message| message.raw.to_text().into_owned()).collect();
    assert_eq!(fixture.transcript().await, lines);
}

#[tokio::test]
async fn a_folder_in_the_place_of_a_file_removes_nothing() {
    let fixture = Fixture::new();
    fixture.folder().file(TRANSCRIPT, transcript(&["one", "two"])).unwrap();
    fixture.sync().await;
    fs::remove_file(fixture.folder().path().join(TRANSCRIPT)).unwrap();
    fs::create_dir(fixture.folder().path().join(TRANSCRIPT)).unwrap();
    for _ in 0..2 {
        let report = fixture.sync().await;
        assert_eq!((report.sessions.failed, report.messages.removed), (1, 0));
        assert_eq!(fixture.texts().await, ["one", "two"]);
    }
}

#[tokio::test]
async fn readable_lines_of_a_damaged_new_session_are_stored() {
    let fixture = Fixture::new();
    let content = [&transcript(&["one"])[..], &[0; 60], b"\n", &transcript(&["two"])].concat();
    fixture.folder().file(TRANSCRIPT, content).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.kept_rows, report.messages.written, report.skipped_count), (0, 2, 1));
}

/// A session of four events, whose log then becomes `content`.
async fn damaged_log(content: &[u8]) -> (Fixture, SyncReport) {
    let fixture = Fixture::new();
    fixture.folder().file("events.jsonl", log(&["a", "b", "c", "d"])).unwrap();
    fixture.sync().await;
    fixture.folder().file("events.jsonl", content).unwrap();
    let report = fixture.sync().await;
    (fixture, report)
}

#[tokio::test]
async fn a_damaged_event_log_removes_nothing() {
    let whole = log(&["a", "b", "c", "d"]);
    let half = &whole[..whole.len() / 2 + 5];
    let nuls = [&log(&["a"])[..], &[0; 300], b"\n", &log(&["d"])].concat();
    let cases = [
        (&b""[..], "is empty", 4),
        (&b"\n\n"[..], "has no readable line", 4),
        (&[0; 700][..], "contains binary data in line 1", 4),
        (half, "ends in the middle of line 3", 2),
        (&whole[..log(&["a"]).len() - 1], "ends without a newline in line 1", 3),
        (&nuls, "contains binary data in line 2", 2),
    ];
    for (content, reason, missing) in cases {
        let (fixture, report) = damaged_log(content).await;
        assert_eq!(kept(&report), [("events.jsonl", reason, 0, missing)]);
        assert_eq!(fixture.event_types().await, ["a", "b", "c", "d"], "{reason}");
        let (again, read) = fixture.sync_and_count().await;
        assert_eq!((kept(&again), read), (kept(&report), 0));
        // A repaired file is compared from its beginning, and then appended to.
        fixture.folder().file("events.jsonl", log(&["a", "b", "c", "d", "e"])).unwrap();
        let report = fixture.sync().await;
        assert_eq!((report.kept_rows, report.events.written, report.events.removed), (0, 1, 0), "{reason}");
        fixture.folder().append("events.jsonl", log(&["f"])).unwrap();
        assert_eq!(fixture.sync_and_count().await.1, log(&["f"]).len() as u64);
    }
}

#[tokio::test]
async fn removals_of_events_can_be_accepted() {
    let (fixture, _) = damaged_log(b"").await;
    let report = accept(&fixture).await;
    assert_eq!((report.kept_rows, report.events.removed), (0, 4));
    assert_eq!(fixture.sync_and_count().await.1, 0);
}

#[tokio::test]
async fn a_log_that_continues_after_lost_events_is_appended() {
    let content = [&log(&["a", "b"])[..], &[0; 300], &log(&["e"]), &log(&["f"])].concat();
    let (fixture, report) = damaged_log(&content).await;
    assert_eq!(kept(&report), [("events.jsonl", "contains binary data in line 3", 0, 2)]);
    assert_eq!(fixture.event_types().await, ["a", "b", "c", "d", "f"]);
    fixture.folder().append_events([lines::logger_event("g")]).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.kept_rows, report.events.written), (2, 1));
    assert_eq!(fixture.event_types().await, ["a", "b", "c", "d", "f", "g"]);
}

#[tokio::test]
async fn a_log_that_is_damaged_when_payloads_are_wanted_keeps_its_events() {
    let mut fixture = Fixture::new();
    fixture.keep_events(EventDetail::Summary);
    fixture.folder().file("events.jsonl", log(&["a", "b", "c"])).unwrap();
    fixture.sync().await;
    fixture.keep_events(EventDetail::Full);
    fixture.folder().file("events.jsonl", [&log(&["a"])[..], b"{bad\n", &log(&["c"])].concat()).unwrap();
    assert_eq!(fixture.sync().await.kept_rows, 1);
    assert_eq!(fixture.event_types().await, ["a", "b", "c"]);
    fixture.folder().file("events.jsonl", log(&["a", "b", "c"])).unwrap();
    assert_eq!(fixture.sync().await.kept_rows, 0);
    assert!(fixture.events("s").await.iter().all(|event| event.raw.is_some()));
}
