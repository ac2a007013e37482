//! A line that is appended to a long session costs no more than in a short one, and the result is the same as if
//! everything were read again.

use std::{
    fs::{self, File},
    io::{Seek as _, SeekFrom, Write as _},
    path::Path,
    sync::Arc,
};

use amplifier_session_core::{
    SessionStorage,
    backend::{SessionChange, StorageBackendExt as _, StoredSyncState},
    model::{Message, SessionKey},
    storage::RewindOptions,
};
use amplifier_session_sync::{NoProgress, sync};
use amplifier_session_testkit::{MemoryBackend, Operation, SessionFolder as Folder};
use serde_json::{Value, json};

use crate::fixture::{Fixture, scope, set_modified, user};

const TRANSCRIPT: &str = "transcript.jsonl";
const EVENTS: &str = "events.jsonl";
/// The number of turns of a long session: its transcript has more than 2 MB.
const TURNS: usize = 400;
/// More than a turn, and much less than the files.
const FEW_BYTES: u64 = 20_000;

/// Changes the content of a file.
type Edit<'a> = &'a dyn Fn(&Path, String);

/// The lines and the events of a turn.
fn turn(n: usize) -> [Vec<Value>; 2] {
    let at = |second: usize| {
        let seconds = n * 40 + second;
        format!("2026-01-05T{:02}:{:02}:{:02}Z", seconds / 3_600, seconds / 60 % 60, seconds % 60)
    };
    let (prompt, call) = (format!("Question {n}? {}", "why ".repeat(1_400)), format!("toolu_{n:08}"));
    let lines = vec![
        json!({"role": "user", "content": prompt}),
        json!({"role": "assistant", "content": [{"type": "tool_call", "id": call, "name": "bash"}]}),
        json!({"role": "tool", "tool_call_id": call, "content": "done"}),
        json!({"role": "assistant", "content": format!("Answer {n}.")}),
    ];
    let event = |second, name: &str, data: Value| json!({"ts": at(second), "event": name, "data": data});
    let events = vec![
        event(0, "prompt:submit", json!({"prompt": prompt})),
        event(5, "llm:response", json!({"model": "m"})),
        event(6, "tool:pre", json!({"tool_name": "bash", "tool_call_id": call})),
        event(9, "tool:post", json!({"tool_name": "bash", "tool_call_id": call})),
        event(20, "llm:response", json!({"model": "m"})),
    ];
    [lines, events]
}

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Session `s` with these turns, which was synced.
async fn long() -> (Fixture, Folder) {
    let fixture = Fixture::with_atomic_writes();
    let folder = fixture.folder();
    folder.metadata(r#"{"created":"2026-01-05T00:00:00Z"}"#).unwrap();
    for n in 0..TURNS {
        let [lines, events] = turn(n);
        folder.append(TRANSCRIPT, text(&lines)).unwrap().append(EVENTS, text(&events)).unwrap();
    }
    fixture.sync().await;
    (fixture, folder)
}

/// The session as it is stored.
async fn dump(storage: &SessionStorage) -> Vec<String> {
    let id = "s".parse().unwrap();
    let messages = storage.reading().get_transcript_lines(&scope(), &id, None, usize::MAX).await.unwrap();
    let key = SessionKey::new(user(), id);
    let session = storage.backend().get_session(&key).await.unwrap().unwrap().session;
    let rows = storage.backend().session_rows(&key).await.unwrap();
    let message =
        |m: &Message| format!("{} {:?} {} {:?} {}", m.sequence, m.turn, m.ts, m.ts_source, m.raw.to_text());
    let mut dump: Vec<String> = messages.iter().map(message).collect();
    dump.push(format!("{:?} {:?}", rows.messages, rows.events));
    dump.push(serde_json::to_string(&session).unwrap());
    dump
}

/// Checks that the store is equal to one that reads everything now.
async fn is_as_if_read_now(fixture: &Fixture) {
    let fresh = SessionStorage::new(Arc::new(MemoryBackend::new())).with_clock(fixture.clock.function());
    sync(&fresh, &fixture.options(), &NoProgress).await.unwrap();
    let (found, expected) = (dump(&fixture.storage).await, dump(&fresh).await);
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

/// Syncs, and returns the number of messages and events that were written. Few bytes may be read, and no list of all
/// messages.
async fn appended(fixture: &Fixture) -> (u64, u64) {
    fixture.backend.reset_counts();
    let (report, read) = fixture.sync_and_count().await;
    assert!(read < FEW_BYTES, "{read} bytes");
    assert_eq!(report.bytes, read);
    assert_eq!(fixture.backend.calls(Operation::MessageStates), 0);
    (report.messages.written, report.events.written)
}

#[tokio::test]
async fn lines_that_are_appended_to_a_long_session_are_all_that_is_read() {
    let (fixture, folder) = long().await;
    // The log is ahead of the transcript, then the transcript is, and so on, a line at a time.
    for n in TURNS..TURNS + 5 {
        let [lines, events] = turn(n);
        for (at, event) in events.iter().enumerate() {
            folder.append(EVENTS, text(std::slice::from_ref(event))).unwrap();
            assert_eq!(appended(&fixture).await, (0, 1));
            if let Some(line) = lines.get(at) {
                folder.append(TRANSCRIPT, text(std::slice::from_ref(line))).unwrap();
                assert_eq!(appended(&fixture).await, (1, 0));
            }
        }
        folder.metadata(r#"{"created":"2026-01-05T00:00:00Z","updated":"2026-01-06T00:00:00Z"}"#).unwrap();
        assert_eq!(appended(&fixture).await, (0, 0));
    }
    is_as_if_read_now(&fixture).await;
}

#[tokio::test]
async fn a_transcript_may_be_whole_turns_behind_its_log() {
    let (fixture, folder) = long().await;
    for n in TURNS..TURNS + 3 {
        folder.append(EVENTS, text(&turn(n)[1])).unwrap();
        assert_eq!(appended(&fixture).await, (0, 5));
    }
    for n in TURNS..TURNS + 3 {
        folder.append(TRANSCRIPT, text(&turn(n)[0])).unwrap();
        assert_eq!(appended(&fixture).await, (4, 0));
        is_as_if_read_now(&fixture).await;
    }
}

#[tokio::test]
async fn what_changes_earlier_times_is_resolved_completely() {
    let cases: [Value; 4] = [
        // An event that was logged late, and one of a call that has an event already.
        json!({"ts": "2026-01-05T00:00:30Z", "event": "prompt:submit", "data": {"prompt": "x"}}),
        json!({"ts": "2026-01-07T00:00:00Z", "event": "tool:post",
            "data": {"tool_name": "bash", "tool_call_id": "toolu_00000003"}}),
        // A clock that jumped back, and one that jumped ahead.
        json!({"ts": "2020-01-01T00:00:00Z", "event": "llm:response", "data": {}}),
        json!({"ts": "2090-01-01T00:00:00Z", "event": "llm:response", "data": {}}),
    ];
    for event in cases {
        let (fixture, folder) = long().await;
        folder.append(EVENTS, text(&[event])).unwrap();
        assert_eq!(fixture.sync().await.events.written, 1);
        is_as_if_read_now(&fixture).await;
        let [lines, events] = turn(TURNS);
        folder.append(EVENTS, text(&events)).unwrap().append(TRANSCRIPT, text(&lines)).unwrap();
        fixture.sync().await;
        is_as_if_read_now(&fixture).await;
    }
}

/// Overwrites bytes of a file, and restores its modification time.
fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    let mut file = File::options().write(true).open(path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(bytes).unwrap();
    file.set_modified(modified).unwrap();
}

/// The offset of a text in a file.
fn find(path: &Path, wanted: &str) -> u64 {
    fs::read_to_string(path).unwrap().find(wanted).unwrap() as u64
}

#[tokio::test]
async fn a_long_transcript_that_was_not_only_appended_to_is_read_completely() {
    let [lines, _] = turn(TURNS);
    let replace = |path: &Path, content: &str| {
        let other = path.with_extension("tmp");
        fs::write(&other, content).unwrap();
        fs::rename(&other, path).unwrap();
    };
    let edits: [(&str, Edit<'_>); 4] = [
        ("the file was replaced", &|path, content| replace(path, &content.replace("Answer 7.", "Answer X."))),
        ("a line was made longer", &|path, content| {
            fs::write(path, content.replace("Answer 7.", "Answer seven.")).unwrap();
        }),
        ("the first line was edited", &|path, content| {
            fs::write(path, content.replace("Question 0?", "Question X?")).unwrap();
        }),
        ("the last line was edited", &|path, content| {
            fs::write(path, content.replace("Answer 399.", "Answer XXX.")).unwrap();
        }),
    ];
    for (edit, change) in edits {
        let (fixture, folder) = long().await;
        let path = folder.path().join(TRANSCRIPT);
        change(&path, fs::read_to_string(&path).unwrap() + &text(&lines));
        let (report, read) = fixture.sync_and_count().await;
        assert_eq!(read, fs::metadata(&path).unwrap().len(), "{edit}");
        assert!(report.messages.written >= 5, "{edit}");
        is_as_if_read_now(&fixture).await;
    }
}

#[tokio::test]
async fn an_edit_that_leaves_no_trace_in_the_metadata_is_found_by_verifying() {
    let (fixture, folder) = long().await;
    let (transcript, log) = (folder.path().join(TRANSCRIPT), folder.path().join(EVENTS));
    // Between two samples of the transcript.
    overwrite(&transcript, find(&transcript, "Answer 10."), b"Answer XX.");
    overwrite(&log, find(&log, "Question 5?"), b"Question X?");
    folder.append(TRANSCRIPT, text(&turn(TURNS)[0])).unwrap().append(EVENTS, text(&turn(TURNS)[1])).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.messages.written, report.events.written), (4, 5));
    let report = fixture.sync_with(fixture.options().with_verify(true)).await;
    assert_eq!((report.messages.written, report.events.written), (1, 1));
    is_as_if_read_now(&fixture).await;
    let report = fixture.sync_with(fixture.options().with_verify(true)).await;
    assert_eq!((report.sessions.unchanged, report.messages.written, report.events.written), (1, 0, 0));
    assert_eq!(appended(&fixture).await, (0, 0));
}

#[tokio::test]
async fn a_log_edited_in_place_is_compared_unless_its_time_was_restored() {
    let (fixture, folder) = long().await;
    let log = folder.path().join(EVENTS);
    overwrite(&log, find(&log, "Question 5?"), b"Question X?");
    assert_eq!(fixture.sync().await.events.written, 0);
    set_modified(&log, "2026-02-01T00:00:00Z");
    assert_eq!(fixture.sync().await.events.written, 1);
}

#[tokio::test]
async fn a_log_replaced_by_one_of_the_same_size_and_time_is_compared() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    let log = folder.path().join(EVENTS);
    let events = turn(1)[1].clone();
    folder.append(EVENTS, text(&events)).unwrap();
    set_modified(&log, "2026-02-01T00:00:00Z");
    fixture.sync().await;
    let other = folder.path().join("other");
    fs::write(&other, text(&events).replace("llm:response", "llm:RESPONSE")).unwrap();
    set_modified(&other, "2026-02-01T00:00:00Z");
    fs::rename(&other, &log).unwrap();
    assert_eq!(fixture.sync().await.events.written, 2);
    is_as_if_read_now(&fixture).await;
}

#[tokio::test]
async fn a_rewound_long_transcript_is_continued() {
    let (fixture, folder) = long().await;
    let path = folder.path().join(TRANSCRIPT);
    let content = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = content.split_inclusive('\n').collect();
    let kept = lines.get(..lines.len() - 8).unwrap().concat();
    fs::write(&path, kept).unwrap();
    assert_eq!(fixture.sync().await.messages.removed, 8);
    folder.append(TRANSCRIPT, text(&turn(TURNS)[0])).unwrap().append(EVENTS, text(&turn(TURNS)[1])).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.messages.written, report.events.written), (4, 5));
    is_as_if_read_now(&fixture).await;
}

/// If another version of the program wrote the settled rows, this one does not know their format, and reads the session
/// once.
#[tokio::test]
async fn a_long_session_without_known_settled_rows_is_read_completely() {
    let (fixture, folder) = long().await;
    let mut next = (TURNS..).map(turn);
    for settled in [None, Some("{}".to_owned())] {
        let stored = fixture.stored("s").await.unwrap();
        let mut change = SessionChange::new(stored.session, Some(stored.version));
        change.sync_state = Some(StoredSyncState { settled, ..stored.sync_state.unwrap() });
        fixture.backend.write_one(change).await.unwrap();
        let [lines, _] = next.next().unwrap();
        folder.append(TRANSCRIPT, text(&lines)).unwrap();
        fixture.backend.reset_counts();
        assert_eq!(fixture.sync().await.messages.written, 4);
        assert!(fixture.backend.calls(Operation::MessageStates) > 0);
        let [lines, _] = next.next().unwrap();
        folder.append(TRANSCRIPT, text(&lines)).unwrap();
        assert_eq!(appended(&fixture).await, (4, 0));
    }
    is_as_if_read_now(&fixture).await;
}

#[tokio::test]
async fn a_long_session_that_was_rewound_in_the_store_is_read_completely() {
    let (fixture, folder) = long().await;
    let key = SessionKey::new(user(), "s".parse().unwrap());
    let options = RewindOptions::to_turn(TURNS as u32 - 2);
    assert_eq!(fixture.storage.ingestion().rewind(&key, &options).await.unwrap().messages, 8);
    let state = fixture.stored("s").await.unwrap().sync_state.unwrap();
    assert_eq!((state.settled, state.rewound.unwrap().messages as usize), (None, TURNS * 4 - 8));
    assert_eq!(fixture.sync_and_count().await.1, 0);
    folder.append(TRANSCRIPT, text(&turn(TURNS)[0])).unwrap().append(EVENTS, text(&turn(TURNS)[1])).unwrap();
    assert_eq!(fixture.sync().await.messages.written, 12);
    is_as_if_read_now(&fixture).await;
}
