//! Lines that a file has lost without an explanation are superseded: they stay in the store, and only those who ask for
//! them see them. `docs/sync.md` lists the cases; each has a test here.

use amplifier_session_core::{
    backend::SupersededQuery,
    model::{LineKind, Message, RawJson, SupersededReason},
    storage::SupersededLine,
};
use amplifier_session_sync::SyncReport;
use amplifier_session_testkit::{
    Operation,
    lines::{self, Line},
};
use serde_json::json;

use crate::fixture::{Fixture, scope, set_modified};

const TRANSCRIPT: &str = "transcript.jsonl";
const EVENTS: &str = "events.jsonl";

/// Two turns of two messages each, and a third one of one message.
const MESSAGES: [&str; 5] = ["ask one", "answer one", "ask two", "answer two", "ask three"];

fn line(text: &str) -> Line {
    if text.starts_with("ask") { lines::user(text) } else { lines::assistant(text) }
}

fn content(lines: impl IntoIterator<Item = Line>) -> Vec<u8> {
    lines.into_iter().flat_map(|line| [line.raw().as_bytes(), b"\n"].concat()).collect()
}

fn transcript(texts: &[&str]) -> Vec<u8> {
    content(texts.iter().map(|text| line(text)))
}

fn log(types: &[&str]) -> Vec<u8> {
    content(types.iter().map(|kind| lines::logger_event(kind)))
}

async fn superseded_lines(fixture: &Fixture) -> Vec<SupersededLine> {
    let mut reader = fixture.storage.superseded().superseded_lines(SupersededQuery::new(scope()));
    let mut found = Vec::new();
    while let Some(lines) = reader.next().await.unwrap() {
        found.extend(lines);
    }
    found
}

/// The superseded lines: sequence, reason, and the text of a message or the type of an event.
async fn superseded(fixture: &Fixture) -> Vec<(u32, SupersededReason, String)> {
    let text = |line: &SupersededLine| {
        let object = line.raw.parse_object().unwrap();
        let field = if line.kind == LineKind::Message { "content" } else { "event" };
        object[field].as_str().unwrap().to_owned()
    };
    let lines = superseded_lines(fixture).await;
    let was_row = |line: &&SupersededLine| line.reason != SupersededReason::Unreadable;
    lines.iter().filter(was_row).map(|line| (line.sequence, line.reason, text(line))).collect()
}

fn expected(lines: &[(u32, SupersededReason, &str)]) -> Vec<(u32, SupersededReason, String)> {
    lines.iter().map(|(sequence, reason, text)| (*sequence, *reason, (*text).to_owned())).collect()
}

fn counts(report: &SyncReport) -> (u64, u64) {
    (report.messages.superseded, report.events.superseded)
}

/// A session with [`MESSAGES`] and five events that was synced.
async fn synced() -> Fixture {
    let fixture = Fixture::new();
    fixture.folder().file(TRANSCRIPT, transcript(&MESSAGES)).unwrap();
    fixture.folder().file(EVENTS, log(&["a", "b", "c", "d", "e"])).unwrap();
    fixture.sync().await;
    fixture
}

/// Replaces the transcript, syncs, and checks what was superseded; and that the store has what the transcript has.
async fn becomes(texts: &[&str], lost: &[(u32, SupersededReason, &str)]) -> Fixture {
    let fixture = synced().await;
    fixture.folder().file(TRANSCRIPT, transcript(texts)).unwrap();
    // The size may be the same, and on some systems so is the time of two writes in a row.
    set_modified(&fixture.folder().path().join(TRANSCRIPT), "2026-01-05T08:00:01Z");
    let report = fixture.sync().await;
    assert_eq!(counts(&report), (lost.len() as u64, 0), "{texts:?}");
    assert_eq!(fixture.texts().await, texts);
    assert_eq!(superseded(&fixture).await, expected(lost), "{texts:?}");
    let again = fixture.sync().await;
    assert_eq!((again.sessions.unchanged, counts(&again)), (1, (0, 0)));
    fixture
}

#[tokio::test]
async fn a_transcript_that_is_cut_off_within_a_turn() {
    let lost = [(3, SupersededReason::CutOff, "answer two"), (4, SupersededReason::CutOff, "ask three")];
    let fixture = becomes(&MESSAGES[..3], &lost).await;
    let lines = superseded_lines(&fixture).await;
    let turns: Vec<_> = lines.iter().map(|line| line.turn).collect();
    assert_eq!(turns, [Some(2), Some(3)]);
    assert_eq!(lines[0].raw, line("answer two").raw());
    // Other reads do not return them, and a longer transcript does not bring them back twice.
    fixture.folder().file(TRANSCRIPT, transcript(&MESSAGES)).unwrap();
    assert_eq!(counts(&fixture.sync().await), (0, 0));
    assert_eq!(fixture.texts().await, MESSAGES);
    fixture.folder().file(TRANSCRIPT, transcript(&MESSAGES[..3])).unwrap();
    fixture.sync().await;
    assert_eq!(superseded(&fixture).await, expected(&lost));
}

#[tokio::test]
async fn a_transcript_that_is_cut_off_within_a_line_is_damaged() {
    let fixture = synced().await;
    let whole = transcript(&MESSAGES);
    fixture.folder().file(TRANSCRIPT, &whole[..whole.len() - 70]).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.kept_rows, counts(&report)), (2, (0, 0)));
    assert_eq!(fixture.texts().await, MESSAGES);
    // The rows leave their place when this is accepted, and are superseded.
    let report = fixture.sync_with(fixture.options().with_accept_removals(true)).await;
    assert_eq!((report.kept_rows, counts(&report)), (0, (2, 0)));
    assert_eq!(fixture.texts().await, MESSAGES[..3]);
}

#[tokio::test]
async fn a_transcript_that_is_cut_off_within_a_turn_and_continued() {
    let lost = [(1, SupersededReason::CutOff, "answer one"), (2, SupersededReason::CutOff, "ask two")];
    let lost = [
        &lost[..],
        &[(3, SupersededReason::CutOff, "answer two"), (4, SupersededReason::CutOff, "ask three")],
    ]
    .concat();
    becomes(&["ask one", "another answer", "ask more"], &lost).await;
}

#[tokio::test]
async fn a_transcript_that_loses_its_head() {
    let lost = [(0, SupersededReason::HeadLost, "ask one"), (1, SupersededReason::HeadLost, "answer one")];
    becomes(&MESSAGES[2..], &lost).await;
    becomes(&["ask two", "answer two", "ask three", "answer three", "ask four", "answer four"], &lost).await;
    let all: Vec<_> = (0..).zip(MESSAGES).map(|(at, text)| (at, SupersededReason::HeadLost, text)).collect();
    becomes(&["ask something else"], &all).await;
}

#[tokio::test]
async fn an_edited_middle_line() {
    let lost = [(1, SupersededReason::Edited, "answer one")];
    becomes(&["ask one", "an edited answer", "ask two", "answer two", "ask three"], &lost).await;
    becomes(&["ask one", "an edited answer", "ask two", "answer two", "ask three", "answer three"], &lost)
        .await;
    becomes(&["ask one", "ask two", "answer two", "ask three"], &lost).await;
    // At the beginning of a turn, too.
    let lost = [(2, SupersededReason::Edited, "ask two")];
    becomes(&["ask one", "answer one", "ask something else", "answer two", "ask three"], &lost).await;
    // Nothing is lost by an insertion.
    becomes(&["ask one", "answer one", "and", "ask two", "answer two", "ask three"], &[]).await;
}

#[tokio::test]
async fn a_line_that_occurs_several_times_is_lost_once() {
    let fixture = synced().await;
    fixture.folder().file(TRANSCRIPT, transcript(&["ask", "ok", "ask", "ok", "ask", "ok"])).unwrap();
    fixture.sync().await;
    let before = superseded(&fixture).await.len();
    fixture.folder().file(TRANSCRIPT, transcript(&["ask", "ok", "ask", "no", "ask", "ok"])).unwrap();
    // The size is the same, and on some systems so is the time of two writes in a row.
    set_modified(&fixture.folder().path().join(TRANSCRIPT), "2026-01-05T08:00:01Z");
    assert_eq!(counts(&fixture.sync().await), (1, 0));
    assert_eq!(superseded(&fixture).await.len(), before + 1);
}

#[tokio::test]
async fn as_many_lines_with_other_content() {
    // The last turn has one message, and another one is in its place.
    let lost = [(4, SupersededReason::Edited, "ask three")];
    becomes(&["ask one", "answer one", "ask two", "answer two", "ask THREE"], &lost).await;
    // The size of the file is the same, too.
    let fixture = synced().await;
    let path = fixture.folder().path().join(TRANSCRIPT);
    let same = transcript(&["ask 111", "answer 111", "ask 222", "answer 222", "ask 33333"]);
    assert_eq!(same.len(), transcript(&MESSAGES).len());
    fixture.folder().file(TRANSCRIPT, same).unwrap();
    set_modified(&path, "2026-01-05T08:00:01Z");
    assert_eq!(counts(&fixture.sync().await), (5, 0));
    let texts: Vec<String> = superseded(&fixture).await.into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(texts, MESSAGES);
}

#[tokio::test]
async fn a_rewind_to_an_earlier_turn() {
    let last = [(4, SupersededReason::Rewound, "ask three")];
    becomes(&MESSAGES[..4], &last).await;
    let turns = [
        (2, SupersededReason::Rewound, "ask two"),
        (3, SupersededReason::Rewound, "answer two"),
        (4, SupersededReason::Rewound, "ask three"),
    ];
    becomes(&MESSAGES[..2], &turns).await;
    becomes(&["ask one", "answer one", "ask again"], &turns).await;
    becomes(&["ask one", "answer one", "ask again", "answer", "ask", "more", "ask still more"], &turns).await;
    // A removed line that is still there is no rewind.
    let lost = [(2, SupersededReason::Edited, "ask two"), (3, SupersededReason::Edited, "answer two")];
    becomes(&["ask one", "answer one", "ask again", "ask three"], &lost).await;
}

#[tokio::test]
async fn a_rewound_transcript_that_is_being_appended_to_is_a_rewind() {
    let fixture = synced().await;
    let torn = [&transcript(&["ask one", "answer one", "ask again"])[..], b"{\"role\":\"assi"].concat();
    fixture.folder().file(TRANSCRIPT, torn).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.kept_rows, counts(&report)), (0, (3, 0)));
    assert_eq!(fixture.texts().await, ["ask one", "answer one", "ask again"]);
}

#[tokio::test]
async fn a_transcript_that_becomes_shorter_and_grows_back() {
    let fixture = synced().await;
    let before = fixture.messages("s").await;
    for round in 0..2 {
        fixture.folder().file(TRANSCRIPT, transcript(&MESSAGES[..2])).unwrap();
        fixture.sync().await;
        assert_eq!((fixture.texts().await.len(), superseded(&fixture).await.len()), (2, 3), "{round}");
        fixture.folder().file(TRANSCRIPT, transcript(&MESSAGES)).unwrap();
        fixture.sync().await;
        let after = fixture.messages("s").await;
        let rows = |messages: &[Message]| -> Vec<_> {
            messages.iter().map(|message| (message.sequence, message.turn, message.raw.clone())).collect()
        };
        assert_eq!(rows(&after), rows(&before), "{round}");
    }
    // The same lines are superseded once.
    assert_eq!(superseded(&fixture).await.len(), 3);
}

/// A session of three turns, each with an event for its prompt and one for its answer.
async fn with_turns() -> (Fixture, Vec<Line>, Vec<Line>) {
    let fixture = Fixture::new();
    let at = |n: usize| format!("2026-01-05T08:00:{n:02}Z");
    let messages = (0..6).map(|n| match n % 2 {
        0 => lines::user(&format!("ask {n}")).at(at(10 * n)),
        _ => lines::assistant(&format!("answer {n}")).at(at(10 * n)),
    });
    let events = (0..6).map(|n| match n % 2 {
        0 => lines::logger_event("prompt:submit").at(at(10 * n)).data(json!({"prompt": format!("ask {n}")})),
        _ => lines::logger_event("llm:response").at(at(10 * n)),
    });
    let (messages, events): (Vec<Line>, Vec<Line>) = (messages.collect(), events.collect());
    fixture.folder().transcript(messages.clone()).unwrap().events(events.clone()).unwrap();
    fixture.sync().await;
    (fixture, messages, events)
}

#[tokio::test]
async fn a_log_that_is_rewound_with_its_transcript() {
    // Exactly as far; further; and not at all.
    for (events_left, lost) in [(4, 2), (3, 3), (6, 0)] {
        let (fixture, messages, events) = with_turns().await;
        fixture.folder().transcript(messages[..4].to_vec()).unwrap();
        fixture.folder().events(events[..events_left].to_vec()).unwrap();
        let report = fixture.sync().await;
        assert_eq!((report.messages.removed, counts(&report)), (2, (2, lost)), "{events_left}");
        assert_eq!(fixture.event_types().await.len(), events_left);
    }
    // In a later sync, nothing explains why the log is shorter.
    let (fixture, messages, events) = with_turns().await;
    fixture.folder().transcript(messages[..4].to_vec()).unwrap();
    fixture.sync().await;
    fixture.folder().events(events[..4].to_vec()).unwrap();
    assert_eq!(counts(&fixture.sync().await), (0, 2));
}

#[tokio::test]
async fn a_compacted_log() {
    let cases: [(&[&str], &[&str], SupersededReason); 5] = [
        (&["d", "e"], &["a", "b", "c"], SupersededReason::Compacted),
        (&["a", "e"], &["b", "c", "d"], SupersededReason::Compacted),
        (&["a", "b"], &["c", "d", "e"], SupersededReason::Compacted),
        (&["summary"], &["a", "b", "c", "d", "e"], SupersededReason::Compacted),
        (&["a", "changed", "c", "d", "e", "f"], &["b"], SupersededReason::Edited),
    ];
    for (types, lost, reason) in cases {
        let fixture = synced().await;
        fixture.folder().file(EVENTS, log(types)).unwrap();
        let report = fixture.sync().await;
        assert_eq!((report.kept_rows, counts(&report)), (0, (0, lost.len() as u64)), "{types:?}");
        assert_eq!(fixture.event_types().await, types);
        let found = superseded(&fixture).await;
        assert!(found.iter().all(|(_, why, _)| *why == reason), "{found:?}");
        assert!(found.iter().map(|(_, _, kind)| kind).eq(lost), "{found:?}");
        // The log grows from there.
        fixture.folder().append(EVENTS, log(&["later"])).unwrap();
        let (report, read) = fixture.sync_and_count().await;
        assert_eq!((report.events.written, read), (1, log(&["later"]).len() as u64));
    }
}

#[tokio::test]
async fn an_emptied_file_that_is_written_again() {
    let fixture = synced().await;
    fixture.folder().file(TRANSCRIPT, "").unwrap().file(EVENTS, "").unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.kept_rows, counts(&report)), (10, (0, 0)), "an empty file is damaged");
    let started = [&log(&["x"])[..], b"{\"ev"].concat();
    fixture.folder().file(TRANSCRIPT, transcript(&["ask anew"])).unwrap().file(EVENTS, started).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.kept_rows, counts(&report)), (0, (5, 5)));
    assert_eq!(
        (fixture.texts().await, fixture.event_types().await),
        (vec!["ask anew".into()], vec!["x".into()])
    );
    assert_eq!(superseded(&fixture).await.len(), 10);
}

#[tokio::test]
async fn a_fork_with_a_copied_prefix() {
    let fixture = synced().await;
    let fork = fixture.session("p", "fork");
    fork.file(TRANSCRIPT, transcript(&["ask one", "answer one", "ask otherwise"])).unwrap();
    fork.metadata(r#"{"parent_id":"s","forked_from_turn":1}"#).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.sessions.new, counts(&report)), (1, (0, 0)));
    assert_eq!(
        (fixture.texts().await, fixture.messages("fork").await.len()),
        (MESSAGES.map(String::from).to_vec(), 3)
    );
    assert!(superseded(&fixture).await.is_empty());
}

#[tokio::test]
async fn the_backup_while_an_append_is_pending() {
    let fixture = synced().await;
    let folder = fixture.folder();
    // An older state, which ends within a turn or after one; then the same state; then the append.
    folder.file("transcript.jsonl.append-pending", "").unwrap();
    for count in [3, 4, 5] {
        folder.file("transcript.jsonl.backup", transcript(&MESSAGES[..count])).unwrap();
        let report = fixture.sync().await;
        assert_eq!((report.kept_rows, counts(&report), report.messages.removed), (0, (0, 0), 0), "{count}");
        assert_eq!(fixture.texts().await, MESSAGES);
    }
    folder.append_transcript([line("answer three")]).unwrap();
    folder.remove("transcript.jsonl.append-pending").unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.messages.written, counts(&report)), (1, (0, 0)));
    assert_eq!(fixture.texts().await[..5], MESSAGES);
    assert!(superseded(&fixture).await.is_empty());
}

#[tokio::test]
async fn a_mirror_keeps_nothing_that_the_disk_does_not_have() {
    let mirror = async |fixture: &Fixture| fixture.sync_with(fixture.options().with_mirror(true)).await;
    let fixture = synced().await;
    fixture.folder().file(TRANSCRIPT, transcript(&MESSAGES[1..])).unwrap().file(EVENTS, log(&["e"])).unwrap();
    let report = mirror(&fixture).await;
    assert_eq!((report.kept_rows, counts(&report)), (0, (0, 0)));
    assert_eq!(
        (fixture.texts().await, fixture.event_types().await),
        (MESSAGES[1..].iter().map(|text| (*text).to_owned()).collect(), vec!["e".to_owned()])
    );
    // Rows of a damaged file, too, whether a sync has kept them before or not.
    fixture.folder().file(TRANSCRIPT, "").unwrap();
    assert_eq!(fixture.sync().await.kept_rows, 4);
    assert_eq!(mirror(&fixture).await.messages.removed, 4);
    assert!(fixture.texts().await.is_empty() && superseded(&fixture).await.is_empty());
    // A session whose folder is gone stays.
    fixture.session("p", "other").file(TRANSCRIPT, transcript(&MESSAGES)).unwrap();
    fixture.sync().await;
    std::fs::remove_dir_all(fixture.session("p", "other").path()).unwrap();
    mirror(&fixture).await;
    assert_eq!(fixture.messages("other").await.len(), 5);
}

#[tokio::test]
async fn summaries_of_events_are_superseded_as_such() {
    let mut fixture = Fixture::new();
    fixture.keep_events(amplifier_session_core::storage::EventDetail::Summary);
    fixture.folder().file(EVENTS, log(&["a", "b", "c"])).unwrap();
    fixture.sync().await;
    fixture.folder().file(EVENTS, log(&["c"])).unwrap();
    assert_eq!(counts(&fixture.sync().await), (0, 2));
    let found = superseded_lines(&fixture).await;
    let types: Vec<_> = found.iter().map(|line| (line.is_summary, line.event_type.as_deref())).collect();
    assert_eq!(types, [(true, Some("a")), (true, Some("b"))]);
    assert_eq!(found[0].raw.parse_object().unwrap()["event_type"], json!("a"));
}

/// Every line is in the store once, whenever the sync is interrupted: in its session or among the superseded lines.
#[tokio::test]
async fn an_interrupted_sync_loses_nothing_and_supersedes_nothing_twice() {
    // More than one transaction.
    let large = |name: String| lines::logger_event(&name).data(json!({"text": noise(name.len(), 3_000_000)}));
    let before: Vec<Line> = (0..9).map(|n| large(format!("old{n}"))).collect();
    let after: Vec<Line> =
        before[6..].iter().cloned().chain((0..4).map(|n| large(format!("new{n}")))).collect();
    let texts = |range: std::ops::Range<usize>| range.map(|n| format!("ask {n}")).collect::<Vec<_>>();
    let as_lines = |texts: &[String]| texts.iter().map(|text| line(text)).collect::<Vec<_>>();
    for failing in 0..6 {
        let fixture = Fixture::new();
        let folder = fixture.folder();
        folder.transcript(as_lines(&texts(0..12))).unwrap().events(before.clone()).unwrap();
        fixture.sync().await;
        folder.transcript(as_lines(&texts(7..20))).unwrap().events(after.clone()).unwrap();
        fixture.backend.fail_after(Operation::Write, failing);
        // A failed write is repeated, or the sync ends.
        let _ = fixture.try_sync().await;
        fixture.backend.recover();
        fixture.sync().await;
        assert_eq!(fixture.texts().await, texts(7..20), "{failing}");
        let raw: Vec<RawJson> = fixture.events("s").await.into_iter().filter_map(|event| event.raw).collect();
        assert!(raw.into_iter().eq(after.iter().cloned().map(Line::raw)), "{failing}");
        let found: Vec<String> = superseded(&fixture).await.into_iter().map(|(_, _, text)| text).collect();
        let lost: Vec<String> = (0..6).map(|n| format!("old{n}")).chain(texts(0..7)).collect();
        assert_eq!(found, lost, "{failing}");
    }
}

/// The same on a store that is interrupted within a write.
#[tokio::test]
async fn an_interrupted_write_loses_nothing_and_supersedes_nothing_twice() {
    use std::sync::Arc;

    use amplifier_session_core::SessionStorage;
    use amplifier_session_sync::{NoProgress, sync};
    use amplifier_session_testkit::MemoryBackend;

    let texts = |range: std::ops::Range<usize>| range.map(|n| format!("ask {n}")).collect::<Vec<_>>();
    for batches in 0..9 {
        let mut fixture = Fixture::new();
        let backend = MemoryBackend::new();
        let clock = fixture.clock.function();
        fixture.storage = SessionStorage::new(Arc::new(backend.clone())).with_clock(clock);
        let folder = fixture.folder();
        folder.transcript(texts(0..12).iter().map(|text| line(text))).unwrap();
        fixture.sync().await;
        folder.transcript(texts(7..20).iter().map(|text| line(text))).unwrap();
        backend.interrupt_after(Some(batches));
        let _ = sync(&fixture.storage, &fixture.options(), &NoProgress).await;
        backend.interrupt_after(None);
        fixture.sync().await;
        assert_eq!(fixture.texts().await, texts(7..20), "{batches}");
        let found: Vec<String> = superseded(&fixture).await.into_iter().map(|(_, _, text)| text).collect();
        assert_eq!(found, texts(0..7), "{batches}");
    }
}

/// Text that does not compress.
fn noise(seed: usize, length: usize) -> String {
    amplifier_session_testkit::erasure::noise(seed, length)
}
