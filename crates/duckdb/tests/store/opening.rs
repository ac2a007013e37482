//! Opening files: stores, other files, and read-only access.

use std::{fs, sync::Arc};

use amplifier_session_core::{ErrorKind, backend::prelude::*, model::UserId};
use amplifier_session_duckdb::{Access, DuckDb};
use amplifier_session_testkit::{earlier, erasure::files, lines};

use super::support::{Folder, found, storage, target, text, whole};

async fn filled(folder: &Folder) {
    let storage = folder.storage().await;
    let messages = vec![lines::user("a green pear"), lines::assistant("a red apple")];
    storage.ingestion().sync_transcript_lines(&target("s"), whole(messages)).await.unwrap();
    let events = vec![lines::logger_event("tool:post")];
    storage.ingestion().sync_event_lines(&target("s"), whole(events)).await.unwrap();
}

/// Checks that opening the file fails with `says` for each access, and does not change it.
async fn refused(folder: &Folder, says: &str) {
    let before = fs::read(folder.database()).unwrap();
    for access in [Access::ReadWrite, Access::ReadOnly] {
        let error = DuckDb::open(folder.database(), access).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageConnection, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert!(fs::read(folder.database()).unwrap() == before, "{says}: the file was changed");
    assert_eq!(files(folder.path()), [folder.database()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reopened_file_has_everything_that_was_written() {
    let folder = Folder::new();
    for round in 0..3 {
        filled(&folder).await;
        let storage = folder.storage().await;
        assert_eq!(found(&storage, "pear").await, 1, "round {round}");
        let rows = folder.backend().await.session_rows(&target("s").key).await.unwrap();
        assert_eq!((rows.messages.count, rows.events.count, rows.vectors), (2, 1, 2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_file_becomes_a_store() {
    let folder = Folder::new();
    fs::write(folder.database(), b"").unwrap();
    filled(&folder).await;
    let folder = Folder::new();
    folder.execute("SELECT 1");
    filled(&folder).await;
}

/// Enough of the tables of the Python library to recognize them.
const PYTHON: &str = "CREATE TABLE sessions (user_id VARCHAR, session_id VARCHAR);
    CREATE TABLE transcripts (user_id VARCHAR, session_id VARCHAR, sequence INTEGER, content JSON)";
const PYTHON_META: &str = "CREATE TABLE schema_meta (key VARCHAR, value VARCHAR)";

#[tokio::test(flavor = "multi_thread")]
async fn files_of_other_programs_are_refused_unchanged() {
    let folder = Folder::new();
    fs::write(folder.database(), b"SQLite format 3\0 and more").unwrap();
    refused(&folder, "is not a DuckDB database").await;
    let python =
        |version| format!("{PYTHON}; {PYTHON_META}; INSERT INTO schema_meta VALUES ('version', '{version}')");
    let (second, newer) = (python(2), python(4));
    for (tables, says) in [
        ("CREATE TABLE birds (name VARCHAR)", "another program"),
        ("CREATE VIEW birds AS SELECT 1", "another program"),
        ("CREATE TABLE schema_meta (id INTEGER)", "another program"),
        ("CREATE TABLE sessions (id VARCHAR); CREATE TABLE transcripts (id VARCHAR)", "another program"),
        (PYTHON, "Python library amplifier_session_storage, generation 1;"),
        (second.as_str(), "Python library amplifier_session_storage, generation 2;"),
        (newer.as_str(), "schema version 4 of the Python library"),
    ] {
        let folder = Folder::new();
        folder.execute(tables);
        refused(&folder, says).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_of_other_versions_are_refused_unchanged() {
    for (change, says) in [
        ("UPDATE schema_meta SET value = '5' WHERE key = 'version'", "schema version 5"),
        ("DELETE FROM schema_meta WHERE key = 'version'", "schema version none"),
        ("UPDATE schema_meta SET value = '77' WHERE key = 'layout'", "layout 77"),
        ("UPDATE schema_meta SET value = '2' WHERE key = 'layout'", "layout 2 of an earlier version"),
    ] {
        let folder = Folder::new();
        drop(folder.backend().await);
        folder.execute(change);
        refused(&folder, says).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_not_a_store() {
    let folder = Folder::new();
    fs::create_dir(folder.database()).unwrap();
    let error = DuckDb::open(folder.database(), Access::ReadWrite).await.unwrap_err();
    assert!(error.to_string().contains("is a folder"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_store_can_be_searched_and_is_not_written() {
    let folder = Folder::new();
    let missing = DuckDb::open(folder.database(), Access::ReadOnly).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::StorageConnection);
    assert!(!folder.database().exists());
    filled(&folder).await;

    let read_only = DuckDb::open(folder.database(), Access::ReadOnly).await.unwrap();
    assert_eq!(read_only.session_rows(&target("s").key).await.unwrap().messages.count, 2);
    let reader = storage(read_only.clone());
    assert_eq!(found(&reader, "apple").await, 1);
    reader.update_index().await.unwrap();
    let refused = reader
        .ingestion()
        .sync_transcript_lines(&target("t"), whole(vec![lines::user("x")]))
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    let [ana, ben] = ["ana", "ben"].map(|user| UserId::new(user).unwrap());
    assert_eq!(read_only.rename_user(&ana, &ben).await.unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(read_only.delete_session(&target("s").key).await.unwrap_err().kind(), ErrorKind::Unsupported);

    let error = DuckDb::open(folder.database(), Access::ReadWrite).await.unwrap_err();
    assert!(error.to_string().contains("this process has already opened the database read-only"), "{error}");
    drop((read_only, reader));
    let writer = folder.backend().await;
    // A read-only handle next to one that writes.
    let read_only = DuckDb::open(folder.database(), Access::ReadOnly).await.unwrap();
    assert_eq!(read_only.delete_session(&target("s").key).await.unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(writer.delete_session(&target("s").key).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_or_damaged_index_is_rebuilt() {
    let folder = Folder::new();
    filled(&folder).await;
    let index = folder.path().join("sessions.duckdb.index");
    for damage in [false, true] {
        if damage {
            let files = files(&index);
            assert!(!files.is_empty());
            files.iter().for_each(|file| fs::write(file, b"damaged").unwrap());
        } else if index.exists() {
            fs::remove_dir_all(&index).unwrap();
        }
        let storage = folder.storage().await;
        assert_eq!(found(&storage, "pear").await, 1);
        storage.update_index().await.unwrap();
        assert!(index.exists());
        assert_eq!(found(&storage, "apple").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_handles_of_a_process_share_one_database() {
    let folder = Folder::new();
    fs::create_dir(folder.path().join("below")).unwrap();
    let by_another_name = folder.path().join("below/../sessions.duckdb");
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8 {
        let path = if n % 2 == 0 { folder.database() } else { by_another_name.clone() };
        tasks.spawn(async move {
            let storage = storage(DuckDb::open(path, Access::ReadWrite).await.unwrap());
            let message = whole(vec![lines::user(&format!("handle{n}"))]);
            storage.ingestion().sync_transcript_lines(&target(&format!("s{n}")), message).await.unwrap();
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let storage = folder.storage().await;
    for n in 0..8 {
        assert_eq!(found(&storage, &format!("handle{n}")).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_layout_3_is_carried_over() {
    let folder = Folder::new();
    folder.execute(include_str!("layout_3.sql"));
    let error = DuckDb::open(folder.database(), Access::ReadOnly).await.unwrap_err();
    assert!(error.to_string().contains("layout 3 of an earlier version"), "{error}");
    earlier::check_store(Arc::new(folder.backend().await)).await;

    let new = Folder::new();
    drop(new.backend().await);
    let columns =
        "SELECT string_agg(table_name || '.' || column_name, ' ' ORDER BY ALL) FROM duckdb_columns()
        WHERE NOT internal";
    let [columns, of_new] = [&folder, &new].map(|folder| text(&folder.connection(), columns));
    assert_eq!(columns, of_new);
}
