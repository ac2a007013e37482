//! Deleted data is removed from the bytes of the database, its log and the search index.
//!
//! DuckDB compresses what it stores, so this searches for texts that it stores unchanged, in files that are not open.

use amplifier_session_testkit::erasure::{WORDS, bystander, delete, fill, search, stored_pieces, traces};

use super::support::Folder;

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

    // As if an earlier deletion had been killed.
    let leftover = folder.path().join(".sessions.duckdb.rewriting-abc");
    std::fs::create_dir(&leftover).unwrap();
    std::fs::write(leftover.join("new.duckdb"), "quondammessage").unwrap();
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
