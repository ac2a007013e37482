//! What a person deleted stays deleted.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use amplifier_session_core::{
    SessionStorage,
    backend::{StorageBackendExt as _, StoredSyncState},
    model::{SessionId, SessionKey},
};
use amplifier_session_sync::{Progress, source_folder, sync};
use amplifier_session_testkit::lines;

use crate::fixture::{Fixture, user};

fn key(session: &str) -> SessionKey {
    SessionKey::new(user(), SessionId::new(session).unwrap())
}

async fn two_sessions() -> Fixture {
    let fixture = Fixture::new();
    for session in ["gone", "kept"] {
        fixture.session("p", session).transcript([lines::user("hello")]).unwrap();
    }
    fixture.sync().await;
    assert!(fixture.storage.backend().delete_session(&key("gone")).await.unwrap());
    fixture
}

#[tokio::test]
async fn deleted_sessions_are_skipped() {
    let fixture = two_sessions().await;
    for _ in 0..2 {
        fixture.session("p", "gone").append_transcript([lines::user("more")]).unwrap();
        let report = fixture.sync().await;
        assert_eq!((report.sessions.found, report.sessions.deleted, report.sessions.new), (1, 1, 0));
        assert!(fixture.stored("gone").await.is_none());
    }
    // It does not count as one of the newest either.
    let report = fixture.sync_with(fixture.options().with_newest(Some(1))).await;
    assert_eq!((report.sessions.unchanged, report.sessions.deleted), (1, 1));
}

#[tokio::test]
async fn deleted_sessions_can_be_read_again_on_request() {
    let fixture = two_sessions().await;
    let report = fixture.sync_with(fixture.options().with_include_deleted(true)).await;
    assert_eq!((report.sessions.found, report.sessions.new, report.sessions.deleted), (2, 1, 0));
    let report = fixture.sync().await;
    assert_eq!((report.sessions.unchanged, report.sessions.deleted), (2, 0), "it is deleted no longer");
}

/// Deletes the session when the first file is read.
struct Deletes {
    storage: SessionStorage,
    done: AtomicBool,
}

impl Progress for Deletes {
    fn advance(&self, _bytes: u64) {
        if !self.done.swap(true, SeqCst) {
            let storage = self.storage.clone();
            let delete = async move { storage.backend().delete_session(&key("s")).await.unwrap() };
            let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
            assert!(std::thread::spawn(move || runtime().block_on(delete)).join().unwrap());
        }
    }
}

#[tokio::test]
async fn a_session_that_is_deleted_while_it_is_read_stays_deleted() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("one")]).unwrap();
    fixture.sync().await;
    fixture.folder().append_transcript([lines::user("two")]).unwrap();
    let progress = Deletes { storage: fixture.storage.clone(), done: AtomicBool::new(false) };
    let report = sync(&fixture.storage, &fixture.options(), &progress).await.unwrap();
    assert_eq!((report.sessions.unchanged, report.failures.len()), (1, 0));
    assert!(fixture.stored("s").await.is_none());
}

#[tokio::test]
async fn the_folder_of_a_session_is_stored() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("one")]).unwrap();
    fixture.sync().await;
    let state = fixture.stored("s").await.unwrap().sync_state.unwrap();
    assert_eq!(source_folder(&state).as_deref(), Some(fixture.folder().path()));
    let folder = |state: &str| source_folder(&StoredSyncState::of(state));
    assert_eq!((folder("{}"), folder("")), (None, None));
}
