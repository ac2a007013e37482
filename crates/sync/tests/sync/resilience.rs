//! Failures, and the state after them.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use amplifier_session_core::{
    Error, ErrorKind, SessionStorage,
    backend::{SessionChange, StoredSyncState, prelude::*},
    model::SessionKey,
    storage::StorageSettings,
};
use amplifier_session_sync::{NoProgress, Progress, sync};
use amplifier_session_testkit::{FakeEmbedding, Operation, lines};

use crate::fixture::{Fixture, user};

#[tokio::test]
async fn an_unreadable_file_fails_its_session_and_not_the_others() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    fs::create_dir(folder.path().join("transcript.jsonl")).unwrap();
    folder.metadata(r#"{"name":"half"}"#).unwrap().events([lines::logger_event("a")]).unwrap();
    fixture.session("p", "good").transcript([lines::user("one")]).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.sessions.new, report.sessions.failed), (1, 1));
    let failure = &report.failures[0];
    assert_eq!((failure.project.as_str(), failure.session.as_deref()), ("p", Some("s")));
    assert!(failure.error.contains("transcript.jsonl"), "{}", failure.error);
    // Its readable lines are stored.
    assert_eq!(fixture.event_types().await, ["a"]);
    assert_eq!(fixture.stored("s").await.unwrap().session.name.as_deref(), Some("half"));
    // It is tried again until it can be read.
    assert_eq!(fixture.sync().await.sessions.failed, 1);
    fs::remove_dir(folder.path().join("transcript.jsonl")).unwrap();
    folder.transcript([lines::user("mended")]).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.sessions.changed, report.failures.len()), (1, 0));
    assert_eq!(fixture.texts().await, ["mended"]);
}

#[tokio::test]
async fn unreadable_sessions_are_not_stored() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.folder().path().join("transcript.jsonl")).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.sessions.failed, report.failures.len()), (1, 1));
    assert!(fixture.stored("s").await.is_none());
}

#[tokio::test]
async fn unreadable_metadata_and_events_are_reported_too() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.transcript([lines::user("one")]).unwrap();
    fs::create_dir(folder.path().join("metadata.json")).unwrap();
    fs::create_dir(folder.path().join("events.jsonl")).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.sessions.failed, report.failures.len(), report.messages.written), (1, 2, 1));
}

/// Another writer of the same session, which is faster N times.
struct Rival {
    storage: SessionStorage,
    times: AtomicUsize,
}

impl Progress for Rival {
    fn advance(&self, _bytes: u64) {
        if self.times.fetch_update(SeqCst, SeqCst, |times| times.checked_sub(1)).is_ok() {
            let storage = self.storage.clone();
            std::thread::spawn(move || write_session(storage)).join().unwrap();
        }
    }
}

/// Writes session `s` unchanged, which gives it another version.
#[tokio::main(flavor = "current_thread")]
async fn write_session(storage: SessionStorage) {
    let key = SessionKey::new(user(), "s".parse().unwrap());
    let stored = storage.backend().get_session(&key).await.unwrap().unwrap();
    storage.backend().write_one(SessionChange::new(stored.session, Some(stored.version))).await.unwrap();
}

#[tokio::test]
async fn a_session_that_another_process_wrote_is_read_again() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("one")]).unwrap();
    fixture.sync().await;
    for (times, failed) in [(4, 0), (1_000, 1)] {
        fixture.folder().append_transcript([lines::user("more")]).unwrap();
        let rival = Rival { storage: fixture.storage.clone(), times: times.into() };
        let report = sync(&fixture.storage, &fixture.options(), &rival).await.unwrap();
        assert_eq!(report.sessions.failed, failed, "{times} conflicts");
    }
    fixture.sync().await;
    assert_eq!(fixture.texts().await, ["one", "more", "more"]);
}

#[tokio::test]
async fn an_error_of_one_session_does_not_stop_the_others() {
    let fixture = Fixture::new();
    let [first, last] = ["00000000-0000-4000-8000-000000000001", "ffffffff-ffff-4fff-8fff-ffffffffffff"];
    for session in [first, "b", last] {
        fixture.session("p", session).transcript([lines::user(session)]).unwrap();
    }
    let strict = StorageSettings::default().with_uuid_session_ids(true);
    let storage = fixture.storage.clone().with_settings(strict);
    let report = sync(&storage, &fixture.options(), &NoProgress).await.unwrap();
    assert_eq!((report.sessions.new, report.sessions.failed, report.failures.len()), (2, 1, 1));
    assert_eq!(report.failures[0].session.as_deref(), Some("b"));
    assert_eq!(fixture.sync().await.sessions.new, 1);
}

/// If one of several sessions has a conflict, it is read again.
#[tokio::test]
async fn one_of_several_sessions_in_a_write_may_fail() {
    let fixture = Fixture::new();
    for n in 0..20 {
        fixture.session("p", &format!("s{n}")).transcript([lines::user("hello")]).unwrap();
    }
    fixture.backend.fail_after(Operation::Write, 7);
    let report = fixture.sync().await;
    assert_eq!((report.sessions.new, report.sessions.failed, report.messages.written), (20, 0, 20));
    assert_eq!(fixture.sync().await.sessions.unchanged, 20);
}

#[tokio::test]
async fn an_error_of_the_store_stops_the_sync_and_names_its_progress() {
    let fixture = Fixture::new();
    for session in ["a", "b", "c"] {
        fixture.session("p", session).transcript([lines::user(session)]).unwrap();
    }
    fixture.backend.break_operation(Operation::Write, ErrorKind::StorageIo);
    let error: Error = fixture.try_sync().await.unwrap_err();
    assert_eq!((error.kind(), error.context("synced")), (ErrorKind::StorageIo, Some("0 of 3 sessions")));
    fixture.backend.recover();
    assert_eq!(fixture.sync().await.sessions.new, 3);
}

/// All stored rows of the sessions, in a form that can be compared.
async fn contents(fixture: &Fixture, sessions: &[&str]) -> BTreeMap<String, String> {
    let mut contents = BTreeMap::new();
    for session in sessions {
        let stored = fixture.stored(session).await.unwrap();
        let messages: Vec<_> =
            fixture.messages(session).await.into_iter().map(|m| (m.sequence, m.turn, m.raw)).collect();
        let events = fixture.events(session).await;
        let vectors = fixture.backend.session_rows(&stored.session.key()).await.unwrap().vectors;
        let rest = (&stored.session, &stored.metadata_files, &stored.skipped);
        contents.insert((*session).to_owned(), format!("{rest:?} {messages:?} {events:?} {vectors}"));
    }
    contents
}

/// Two sessions with all kinds of files and a bad line, then a second state of them.
fn write_folders(fixture: &Fixture, second: bool) {
    for session in ["a", "b"] {
        let folder = fixture.session("p", session);
        let texts = if second { ["one", "zwei", "drei"] } else { ["one", "two", "three"] };
        folder.metadata(&format!(r#"{{"name":"{}"}}"#, texts[1])).unwrap();
        folder.transcript(texts.map(lines::user)).unwrap();
        folder.events([lines::logger_event("x")]).unwrap().append("events.jsonl", "{bad\n").unwrap();
        if second {
            folder.append_events([lines::logger_event("y")]).unwrap();
        } else {
            folder.append_transcript(["four", "five"].map(lines::user)).unwrap();
        }
        for name in ["metadata.json", "transcript.jsonl", "events.jsonl"] {
            let time = if second { "2026-01-05T09:00:00Z" } else { "2026-01-05T08:00:00Z" };
            crate::fixture::set_modified(&folder.path().join(name), time);
        }
    }
}

async fn after_two_states(failing_call: Option<usize>) -> (BTreeMap<String, String>, bool) {
    let fixture = Fixture::new().with_embedding(Arc::new(FakeEmbedding::new()));
    let mut failed = false;
    for second in [false, true] {
        write_folders(&fixture, second);
        if let Some(call) = failing_call {
            fixture.backend.fail_any_after(call);
            failed |= fixture.try_sync().await.is_err();
            fixture.backend.recover();
        }
        fixture.sync().await;
    }
    let (report, read) = fixture.sync_and_count().await;
    assert_eq!((report.sessions.unchanged, read), (2, 0), "what is known of the files is complete");
    (contents(&fixture, &["a", "b"]).await, failed)
}

#[tokio::test]
async fn one_sync_repairs_a_failure_at_any_moment() {
    let (expected, _) = after_two_states(None).await;
    let mut failures = 0;
    for call in 0..40 {
        let (found, failed) = after_two_states(Some(call)).await;
        assert_eq!(found, expected, "call {call} failed");
        failures += usize::from(failed);
    }
    assert!(failures > 3, "the failures must reach the sync");
}

/// Paths, contents and times of all files below `folder`.
fn tree(folder: &Path) -> BTreeMap<String, (Vec<u8>, std::time::SystemTime)> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let content = if path.is_dir() { Vec::new() } else { fs::read(&path).unwrap() };
        files.insert(path.display().to_string(), (content, modified));
        if path.is_dir() {
            files.extend(tree(&path));
        }
    }
    files
}

#[tokio::test]
async fn session_folders_are_never_written_to() {
    let fixture = Fixture::new();
    write_folders(&fixture, false);
    let before = tree(fixture.home.path());
    fixture.sync().await;
    fixture.sync().await;
    assert_eq!(tree(fixture.home.path()), before);
}

#[tokio::test]
async fn a_sync_state_of_another_version_is_ignored() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("one")]).unwrap().events([lines::logger_event("a")]).unwrap();
    fixture.sync().await;
    let stored = fixture.stored("s").await.unwrap();
    for state in ["", "{\"version\":99}", "not json"] {
        let stored_now = fixture.stored("s").await.unwrap();
        let mut change = SessionChange::new(stored_now.session, Some(stored_now.version));
        change.sync_state = Some(StoredSyncState::of(state));
        fixture.backend.write_one(change).await.unwrap();
        let report = fixture.sync().await;
        assert_eq!((report.sessions.unchanged, report.messages.written, report.events.written), (1, 0, 0));
        assert_eq!(fixture.stored("s").await.unwrap().sync_state, stored.sync_state);
    }
}

#[tokio::test]
async fn the_user_is_pinned_once() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("one")]).unwrap();
    fixture.sync_with(fixture.options().with_dry_run(true)).await;
    assert_eq!(fixture.storage.users().pinned_user().await.unwrap(), None);
    fixture.sync().await;
    assert_eq!(fixture.storage.users().pinned_user().await.unwrap(), Some(user()));
}

#[tokio::test]
async fn the_index_is_updated_at_the_end() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("one")]).unwrap();
    fixture.sync().await;
    assert_eq!(fixture.backend.calls(Operation::UpdateIndex), 1);
}
