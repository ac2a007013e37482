//! The sessions of an old file are added to another store.

use std::{fs, sync::Arc};

use amplifier_session_core::{
    SessionStorage,
    backend::{
        StorageBackend, StorageBackendExt,
        meta::{EMBEDDING_SPACE, Generation},
    },
    model::{EmbeddingSpace, SessionKey, UserId},
};
use amplifier_session_testkit::{FlakyBackend, MemoryBackend, python_library::assert_upgraded};
use rusqlite::Connection;

use crate::support::{GENERATIONS, counts, left_out, open_store, opened, run, sqlite_file, sqlite_store};

fn memory() -> Arc<dyn StorageBackend> {
    Arc::new(MemoryBackend::new())
}

#[tokio::test(flavor = "multi_thread")]
async fn any_backend_takes_the_sessions_and_the_old_file_stays() {
    for generation in GENERATIONS {
        let (folder, backend) = (sqlite_file(generation, ""), memory());
        let before = folder.content();
        let done = run(&folder.old(), open_store(&backend), false).await.unwrap();
        assert_eq!((counts(&done), done.skipped, done.backup), ([3, 45, 12, 60], 0, None));
        assert!(folder.content() == before);
        assert_upgraded(&SessionStorage::new(backend)).await;
    }
}

/// Of a store in use, which has deleted one of the sessions.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_the_store_has_or_had_are_skipped() {
    let (folder, backend) = (sqlite_file(2, ""), memory());
    run(&folder.old(), open_store(&backend), false).await.unwrap();
    let user = UserId::new("alice").unwrap();
    let session = "11111111-1111-4111-8111-111111111111".parse().unwrap();
    assert!(backend.delete_session(&SessionKey::new(user, session)).await.unwrap());
    let more = "INSERT INTO sessions (user_id, session_id, host_id) VALUES ('alice', 'new', 'h')";
    Connection::open(folder.old()).unwrap().execute_batch(more).unwrap();
    let again = run(&folder.old(), open_store(&backend), false).await.unwrap();
    assert_eq!((counts(&again), again.skipped), ([1, 0, 0, 0], 3));
}

/// Whatever call of the store fails, the next upgrade completes it.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_upgrade_is_completed_by_the_next() {
    let folder = sqlite_file(3, "");
    let mut failed = 0;
    loop {
        let inner = memory();
        let flaky = Arc::new(FlakyBackend::new(Arc::clone(&inner)));
        flaky.fail_any_after(failed);
        let backend: Arc<dyn StorageBackend> = flaky;
        let is_done = run(&folder.old(), open_store(&backend), false).await.is_ok();
        run(&folder.old(), open_store(&inner), false).await.unwrap();
        assert_upgraded(&SessionStorage::new(inner)).await;
        if is_done {
            break;
        }
        failed += 1;
    }
    assert!(failed > 15, "only {failed} calls failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_of_another_space_than_the_stores_are_left_out() {
    let (folder, backend) = (sqlite_file(1, ""), memory());
    let space = EmbeddingSpace { model: "other".to_owned(), dimensions: 3 };
    let generation = Generation { space: space.clone(), number: 4 };
    backend.put_meta_if_absent(EMBEDDING_SPACE, &generation.to_value()).await.unwrap();
    let done = run(&folder.old(), open_store(&backend), false).await.unwrap();
    assert_eq!((counts(&done), done.pending, &done.space), ([3, 45, 12, 0], 45, &Some(space)));
    assert_eq!(left_out(&done), [("of fake-64 (64 dimensions)", 60)]);
}

/// Two files have an event of the same id.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_another_event_in_the_store_is_not_used_again() {
    let event = |session: &str| {
        format!(
            "INSERT INTO events (id, user_id, host_id, session_id, sequence, event)
             VALUES ('same', 'alice', 'h', '{session}', 0, 'tool:pre')"
        )
    };
    let store = memory();
    for session in ["one", "two"] {
        run(&sqlite_file(2, &event(session)).old(), open_store(&store), false).await.unwrap();
    }
    let ids = ["same", "two_evt_0"].map(str::to_owned);
    let found = store.find_events(&UserId::new("alice").unwrap(), &ids).await.unwrap();
    let sessions: Vec<_> = found.iter().map(|(_, event)| event.session.session_id.as_str()).collect();
    assert_eq!(sessions, ["one", "two"]);
}

/// A program that has the file open does not keep it from being read.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_use_is_read_as_it_was_last_committed() {
    let folder = sqlite_file(2, "PRAGMA journal_mode = WAL");
    let writer = Connection::open(folder.old()).unwrap();
    writer.execute_batch("UPDATE sessions SET bundle = 'b'; BEGIN; DELETE FROM transcripts").unwrap();
    let before = folder.content();
    let new = folder.join("new");
    run(&folder.old(), sqlite_store(new.clone()), false).await.unwrap();
    assert_upgraded(&opened(new).await).await;
    for (name, bytes) in before {
        assert!(fs::read(folder.join(&name)).unwrap() == bytes, "{name}");
    }
}
