//! A refresh reads what changed since the last sync, if that takes only a moment.

use std::{fs, path::Path};

use amplifier_session_core::{backend::StorageBackendExt as _, model::SessionId, storage::EventDetail};
use amplifier_session_sync::{RefreshLimits, Refreshed, SyncOptions, refresh};
use amplifier_session_testkit::{Operation, lines};

use crate::fixture::{Fixture, NOW, set_modified};

async fn refreshed(fixture: &Fixture, limits: RefreshLimits) -> Refreshed {
    refresh(&fixture.storage, &fixture.options(), limits).await.unwrap()
}

fn taken(sessions: &[&str]) -> Refreshed {
    let sessions = sessions.iter().map(|id| SessionId::new(*id).unwrap()).collect();
    Refreshed::Taken { sessions, kept: Vec::new() }
}

/// A root with two sessions, synced with `options`.
async fn synced(options: impl Fn(SyncOptions) -> SyncOptions) -> Fixture {
    let fixture = Fixture::new();
    for session in ["a", "b"] {
        fixture.session("p", session).transcript([lines::user("hello")]).unwrap();
    }
    fixture.sync_with(options(fixture.options())).await;
    fixture
}

#[tokio::test]
async fn unchanged_rows_are_not_written() {
    let fixture = synced(|options| options).await;
    fixture.backend.reset_counts();
    assert_eq!(refreshed(&fixture, RefreshLimits::default()).await, taken(&[]));
    assert_eq!((fixture.backend.writes(), fixture.backend.calls(Operation::UpdateIndex)), (0, 0));
}

#[tokio::test]
async fn changes_are_read() {
    let fixture = synced(|options| options).await;
    fixture.session("p", "a").append_transcript([lines::user("more")]).unwrap();
    let new = fixture.session("p", "c");
    new.transcript([lines::user("new")]).unwrap();
    set_modified(&new.path().join("transcript.jsonl"), NOW);
    let Refreshed::Taken { mut sessions, kept } = refreshed(&fixture, RefreshLimits::default()).await else {
        panic!("it is next to nothing");
    };
    sessions.sort();
    assert_eq!(Refreshed::Taken { sessions, kept }, taken(&["a", "c"]));
    assert_eq!((fixture.messages("a").await.len(), fixture.messages("c").await.len()), (2, 1));
    assert_eq!(refreshed(&fixture, RefreshLimits::default()).await, taken(&[]));
}

#[tokio::test]
async fn too_many_changes_are_counted_and_not_read() {
    let fixture = synced(|options| options).await;
    fixture.session("p", "a").append_transcript([lines::user("more")]).unwrap();
    let limits = RefreshLimits::default().with_seconds(0.001);
    assert_eq!(refreshed(&fixture, limits).await, Refreshed::TooMuch(1));
    let large = lines::user(&"long ".repeat(3_000_000));
    fixture.session("p", "b").append_transcript([large]).unwrap();
    assert_eq!(refreshed(&fixture, RefreshLimits::default().with_embeds(true)).await, Refreshed::TooMuch(2));
    assert_eq!((fixture.messages("a").await.len(), fixture.messages("b").await.len()), (1, 1));
}

#[tokio::test]
async fn young_files_with_the_same_stamp_do_not_count_as_changes() {
    let fixture = Fixture::new();
    for session in ["a", "b", "c"] {
        let session = fixture.session("p", session);
        session.transcript([lines::user("hello")]).unwrap();
        set_modified(&session.path().join("transcript.jsonl"), NOW);
    }
    fixture.sync_with(fixture.options()).await;
    // The files are so young that they are read again if that is cheap, but they do not count as changes.
    let little = RefreshLimits::default().with_seconds(0.005);
    assert_eq!(refreshed(&fixture, little).await, taken(&[]));
    let session = fixture.session("p", "a");
    session.append_transcript([lines::user(&"more ".repeat(1_000_000))]).unwrap();
    assert_eq!(refreshed(&fixture, little).await, Refreshed::TooMuch(1));
}

#[tokio::test]
async fn sessions_that_the_last_sync_left_out_are_left_out() {
    // Excluded, also when it changes.
    let fixture = synced(|options| options.with_exclude(["p/b"])).await;
    fixture.session("p", "b").append_transcript([lines::user("more")]).unwrap();
    set_modified(&fixture.session("p", "b").path().join("transcript.jsonl"), NOW);
    assert_eq!(refreshed(&fixture, RefreshLimits::default()).await, taken(&[]));
    // Not reached by the sync: left out until it changes.
    let fixture = synced(|options| options.with_newest(Some(0))).await;
    assert_eq!(refreshed(&fixture, RefreshLimits::default()).await, taken(&[]));
    set_modified(&fixture.session("p", "b").path().join("transcript.jsonl"), NOW);
    assert_eq!(refreshed(&fixture, RefreshLimits::default()).await, taken(&["b"]));
    // Deleted.
    let key = fixture.stored("b").await.unwrap().session.key();
    assert!(fixture.storage.backend().delete_session(&key).await.unwrap());
    fixture.session("p", "b").append_transcript([lines::user("more")]).unwrap();
    assert_eq!(refreshed(&fixture, RefreshLimits::default()).await, taken(&[]));
}

#[tokio::test]
async fn a_refresh_stores_as_much_of_events_as_the_last_sync() {
    let mut fixture = Fixture::new();
    fixture.keep_events(EventDetail::Summary);
    fixture.folder().events([lines::logger_event("a")]).unwrap();
    fixture.sync().await;
    fixture.keep_events(EventDetail::Full);
    fixture.folder().append_events([lines::logger_event("b")]).unwrap();
    assert_eq!(refreshed(&fixture, RefreshLimits::default()).await, taken(&["s"]));
    assert!(fixture.events("s").await.iter().all(|event| event.raw.is_none()));
    let full = RefreshLimits::default().with_events(Some(EventDetail::Full));
    refreshed(&fixture, full).await;
    assert!(fixture.events("s").await.iter().all(|event| event.raw.is_some()));
}

#[tokio::test]
async fn a_store_that_never_saw_the_root_takes_what_is_small() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("hello")]).unwrap();
    assert_eq!(refreshed(&fixture, RefreshLimits::default()).await, taken(&["s"]));
}

/// As [`synced`], with a store in a file, of which `folder` is the index. One refresh has run.
async fn refreshed_once(folder: &Path) -> Fixture {
    let fixture = Fixture::with_index(folder);
    for session in ["a", "b"] {
        fixture.session("p", session).transcript([lines::user("hello")]).unwrap();
    }
    fixture.sync().await;
    assert_eq!(refreshed(&fixture, RefreshLimits::default()).await, taken(&[]));
    fixture.backend.reset_counts();
    fixture
}

/// The sessions that a refresh reads, and how often it read states.
async fn read(fixture: &Fixture) -> (Vec<String>, usize) {
    fixture.backend.reset_counts();
    let Refreshed::Taken { sessions, .. } = refreshed(fixture, RefreshLimits::default()).await else {
        panic!("it is next to nothing");
    };
    let mut sessions: Vec<String> = sessions.iter().map(ToString::to_string).collect();
    sessions.sort();
    let calls = |operation| fixture.backend.calls(operation);
    (sessions, calls(Operation::SyncStates) + calls(Operation::GetSession))
}

fn names(sessions: &[&str]) -> Vec<String> {
    sessions.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn the_states_of_unchanged_sessions_are_not_read() {
    let index = tempfile::tempdir().unwrap();
    let fixture = refreshed_once(index.path()).await;
    assert_eq!(read(&fixture).await, (names(&[]), 0));
    assert_eq!(fixture.backend.writes(), 0);
    // Any change of a file makes the state of that session necessary, until it is known again.
    fixture.session("p", "a").append_transcript([lines::user("more")]).unwrap();
    assert_eq!(read(&fixture).await.0, names(&["a"]));
    assert_eq!(read(&fixture).await, (names(&[]), 1));
    assert_eq!(read(&fixture).await, (names(&[]), 0));
    fixture.session("p", "b").metadata(r#"{"name":"B"}"#).unwrap();
    refreshed(&fixture, RefreshLimits::default()).await;
    assert_eq!(read(&fixture).await, (names(&[]), 1));
    assert_eq!(read(&fixture).await, (names(&[]), 0));
    assert_eq!(fixture.stored("b").await.unwrap().session.name.as_deref(), Some("B"));
    // New and removed sessions.
    let new = fixture.session("p", "c");
    new.transcript([lines::user("new")]).unwrap();
    set_modified(&new.path().join("transcript.jsonl"), NOW);
    fs::remove_dir_all(fixture.session("p", "a").path()).unwrap();
    assert_eq!(read(&fixture).await.0, names(&["c"]));
}

#[tokio::test]
async fn sessions_that_are_left_out_need_no_states_either() {
    let index = tempfile::tempdir().unwrap();
    let fixture = Fixture::with_index(index.path());
    for session in ["a", "b", "c"] {
        fixture.session("p", session).transcript([lines::user("hello")]).unwrap();
    }
    fixture.sync_with(fixture.options().with_exclude(["p/b"]).with_newest(Some(1))).await;
    refreshed(&fixture, RefreshLimits::default()).await;
    assert_eq!(read(&fixture).await, (names(&[]), 0));
    // The next complete sync decides otherwise.
    fixture.sync().await;
    let messages = fixture.messages("b").await.len() + fixture.messages("c").await.len();
    assert_eq!(messages, 2);
    assert_eq!(read(&fixture).await.0, names(&[]));
}

#[tokio::test]
async fn a_list_of_unchanged_folders_that_does_not_belong_to_the_store_is_ignored() {
    let index = tempfile::tempdir().unwrap();
    let list = index.path().join("unchanged");
    let fixture = refreshed_once(index.path()).await;
    let known = fs::read(&list).unwrap();
    assert_eq!(known.len(), 16);
    for damaged in [&known[..8], b"", &[known.as_slice(), &known].concat()] {
        fs::write(&list, damaged).unwrap();
        assert_eq!(read(&fixture).await, (names(&[]), 2), "{damaged:?}");
        assert_eq!(read(&fixture).await, (names(&[]), 0));
    }
    // Another store at the same place, as if it had been restored from a backup.
    let other = Fixture::with_index(index.path());
    other.session("p", "a").transcript([lines::user("hello")]).unwrap();
    assert_eq!(read(&other).await.0, names(&["a"]));
    // The conditions have changed.
    let summary = RefreshLimits::default().with_events(Some(EventDetail::Summary));
    let fixture = refreshed_once(index.path()).await;
    refreshed(&fixture, summary).await;
    assert!(fixture.backend.calls(Operation::GetSession) > 0);
}

#[tokio::test]
async fn a_sync_that_reads_everything_again_is_continued_if_it_is_interrupted() {
    let index = tempfile::tempdir().unwrap();
    let fixture = refreshed_once(index.path()).await;
    fixture.sync_with(fixture.options().with_verify(true)).await;
    assert!(!index.path().join("unchanged").exists());
    assert_eq!(read(&fixture).await, (names(&[]), 2));
    assert_eq!(read(&fixture).await, (names(&[]), 0));
}
