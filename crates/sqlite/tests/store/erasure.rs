//! Deleted data is removed from the bytes of the database, its log and the search index.

use std::{collections::BTreeMap, sync::Arc};

use amplifier_session_core::{SessionStorage, StorageSettings, content::Redaction, storage::SecretsAtRest};
use amplifier_session_testkit::{
    WordRedactor,
    erasure::{
        WORDS, bystander, delete, files_with, fill, noise, search, secret_events, stored_pieces, supersede,
        traces,
    },
    lines::{self, Line},
};
use rusqlite::Connection;
use serde_json::json;

use super::support::{Folder, target, whole};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_deleted_session_is_left_in_any_file() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    let key = fill(&storage).await;
    storage.update_index().await.unwrap();
    let pieces = stored_pieces(&folder.backend().await, &key).await;
    assert_eq!(traces(folder.path(), &pieces).len(), WORDS.len() + pieces.len());
    assert!(search(&storage, "quondammessage").await > 0);

    assert!(delete(&storage, &key).await);
    assert_eq!(traces(folder.path(), &pieces), []);
    assert_eq!(search(&storage, "quondammessage").await, 0);
    assert!(search(&storage, "harmless").await > 0);
    drop(storage);
    assert_eq!(traces(folder.path(), &pieces), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_pruned_lines_is_left_in_any_file() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    bystander(&storage, 1).await;
    let key = target("bystander-1").key;
    let pieces = supersede(&storage, &key).await;
    let left = || traces(folder.path(), &BTreeMap::new());
    assert_eq!(left().len(), 1);
    let pruned = storage.backend().prune_superseded(&pieces).await;
    assert!(pruned.remains.is_empty(), "{:?}", pruned.remains);
    assert_eq!(left(), []);
    assert!(search(&storage, "harmless").await > 0);
}

/// A store whose secret session was deleted while another program reads: its snapshot must stay until it ends. The
/// deletion waits for that only a few seconds.
async fn deleted_while_read(
    folder: &Folder,
) -> (SessionStorage, BTreeMap<&'static str, Vec<u8>>, Connection) {
    let storage = folder.storage().await;
    let key = fill(&storage).await;
    let pieces = stored_pieces(&folder.backend().await, &key).await;
    let reader = Connection::open(folder.database()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM sessions;").unwrap();
    assert!(delete(&storage, &key).await);
    (storage, pieces, reader)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_write_after_a_reader_ends_empties_the_log() {
    let folder = Folder::new();
    let (storage, pieces, reader) = deleted_while_read(&folder).await;
    let left = traces(folder.path(), &pieces);
    let index = |file: &String| file.starts_with("sessions.sqlite.index");
    assert!(!left.is_empty() && !left.iter().flat_map(|(_, files)| files).any(index), "{left:?}");
    reader.execute_batch("COMMIT").unwrap();

    bystander(&storage, 1_000).await;
    assert_eq!(traces(folder.path(), &pieces), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_store_after_a_reader_ends_empties_the_log() {
    let folder = Folder::new();
    let (storage, pieces, reader) = deleted_while_read(&folder).await;
    reader.execute_batch("COMMIT").unwrap();

    // The reader stays connected, so that SQLite does not empty the log itself.
    drop(storage);
    assert_eq!(traces(folder.path(), &pieces), []);
    reader.execute_batch("SELECT count(*) FROM sessions;").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_replaced_rows_after_an_index_update() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    let session = target("s");
    let harmless = |count: usize| (0..count).map(|n| lines::user(&format!("harmless {}", noise(n, 60 * n))));
    let mut messages: Vec<Line> = harmless(30).collect();
    messages[5] = lines::user("quondammessage");
    messages[6] = lines::thinking("quondamthought", &format!("quondammessage {}", noise(6, 9_000)));
    messages[25] = lines::tool("quondamoutput");
    let mut events = secret_events(6);
    storage.ingestion().sync_transcript_lines(&session, whole(messages)).await.unwrap();
    storage.ingestion().sync_event_lines(&session, whole(events.clone())).await.unwrap();
    storage.update_index().await.unwrap();
    let pieces = stored_pieces(&folder.backend().await, &session.key).await;
    assert!(traces(folder.path(), &pieces).len() >= 7);

    // Messages 5 and 6 are replaced, the transcript ends before message 25, and the events are new.
    storage.ingestion().sync_transcript_lines(&session, whole(harmless(20).collect())).await.unwrap();
    events = vec![lines::logger_event("plain").data(json!({"note": "harmless"}))];
    storage.ingestion().sync_event_lines(&session, whole(events)).await.unwrap();
    storage.update_index().await.unwrap();
    assert_eq!(traces(folder.path(), &pieces), []);
    assert_eq!(search(&storage, "quondammessage quondamthought quondamoutput").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_secrets_that_are_masked_later() {
    let words = ["quondammessage", "quondamthought", "quondamoutput"];
    let left = |folder: &Folder| -> Vec<String> {
        words.iter().flat_map(|word| files_with(folder.path(), word.as_bytes())).collect()
    };
    let folder = Folder::new();
    let storage = folder.storage().await;
    fill(&storage).await;
    storage.update_index().await.unwrap();
    assert!(left(&folder).len() >= words.len() && search(&storage, "quondammessage").await > 0);

    let masking = storage
        .clone()
        .with_redactor(Redaction::Remote, Arc::new(WordRedactor::new(words)))
        .with_settings(StorageSettings::default().with_secrets(Some(SecretsAtRest::Mask)));
    masking.secrets().apply_secrets_setting().await.unwrap();
    assert_eq!(search(&storage, "quondammessage quondamthought quondamoutput").await, 0);
    assert!(search(&storage, "harmless").await > 0);
    drop((storage, masking));
    assert_eq!(left(&folder), Vec::<String>::new());
}
