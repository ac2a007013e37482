//! Deleted data is removed from the bytes of the database, its log and the search index.
//!
//! DuckDB compresses what it stores, so this searches for texts that it stores unchanged, in files that are not open.

use amplifier_session_core::backend::prelude::*;
use amplifier_session_testkit::{
    erasure::{WORDS, bystander, delete, fill, search, stored_pieces, traces},
    lines,
};

use super::support::{Folder, target, whole};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_deleted_session_is_left_in_any_file() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    let key = fill(&storage).await;
    storage.update_index().await.unwrap();
    let pieces = stored_pieces(&folder.backend().await, &key).await;
    drop(storage);
    let before = traces(folder.path(), &pieces);
    assert!(before.len() >= WORDS.len() / 2, "{before:?}");

    // As if processes had been killed: during a deletion, a creation, a copy and a sort.
    for leftover in [
        ".sessions.duckdb.rewriting-abc",
        ".sessions.duckdb.making-abc",
        ".sessions.duckdb.copying-abc",
        "sessions.duckdb.tmp",
    ] {
        let leftover = folder.path().join(leftover);
        std::fs::create_dir(&leftover).unwrap();
        std::fs::write(leftover.join("duckdb_temp_storage_DEFAULT-0.tmp"), "quondammessage").unwrap();
    }
    let storage = folder.storage().await;
    assert!(search(&storage, "quondammessage").await > 0);
    assert!(delete(&storage, &key).await);
    assert_eq!(search(&storage, "quondammessage").await, 0);
    assert!(search(&storage, "harmless").await > 0);
    bystander(&storage, 1_000).await;
    drop(storage);
    assert_eq!(traces(folder.path(), &pieces), []);
    let storage = folder.storage().await;
    assert!(search(&storage, "harmless").await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_more_rows_than_one_transaction_removes_is_deleted() {
    const LONG: usize = 4_100;
    let folder = Folder::new();
    let storage = folder.storage().await.with_embedding(None);
    let (long, other) = (target("long"), target("other"));
    let messages = (0..LONG).map(|n| lines::user(&format!("long {n}"))).collect();
    storage.ingestion().sync_transcript_lines(&long, whole(messages)).await.unwrap();
    let events = (0..LONG).map(|n| lines::logger_event(&format!("event{n}"))).collect();
    storage.ingestion().sync_event_lines(&long, whole(events)).await.unwrap();
    storage.ingestion().sync_transcript_lines(&other, whole(vec![lines::user("other")])).await.unwrap();
    let deletion =
        storage.sessions().delete_sessions(&[long.key.clone(), other.key.clone(), long.key.clone()]).await;
    assert!(deletion.remains.is_empty(), "{:?}", deletion.remains);
    assert!(deletion.deleted.iter().map(|deleted| *deleted.as_ref().unwrap()).eq([true, true, false]));
    let backend = folder.backend().await;
    for key in [&long.key, &other.key] {
        assert!(backend.message_states(key).await.unwrap().is_empty());
        assert!(backend.get_session(key).await.unwrap().is_none());
    }
}
