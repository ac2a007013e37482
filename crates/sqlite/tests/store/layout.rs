//! Stores of earlier builds with the same schema version.

use std::{collections::BTreeMap, fs, sync::Arc};

use amplifier_session_core::{
    ErrorKind, Scope, backend::prelude::*, model::RawJson, search::SearchOptions, storage::SyncLines,
};
use amplifier_session_sql::views::VIEWS;
use amplifier_session_sqlite::{Sqlite, register_view_functions};
use amplifier_session_testkit::{
    adr::{self, DescribedColumn, DescribedIndex},
    earlier, lines, views,
};
use rusqlite::Connection;
use tokio::task::JoinSet;

use super::support::{Folder, target, whole};

/// The indexes and views of a database by name, and the columns of its tables.
fn schema(folder: &Folder) -> (BTreeMap<String, Option<String>>, Vec<String>) {
    let connection = Connection::open(folder.database()).unwrap();
    let mut named =
        connection.prepare("SELECT name, sql FROM sqlite_schema WHERE type IN ('index', 'view')").unwrap();
    let named = named.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let mut columns = connection
        .prepare(
            "SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_xinfo(t.name) c
             WHERE t.type = 'table' ORDER BY 1",
        )
        .unwrap();
    let columns = columns.query_map([], |row| row.get(0)).unwrap();
    (named.map(Result::unwrap).collect(), columns.map(Result::unwrap).collect())
}

fn layout(folder: &Folder) -> i32 {
    let connection = Connection::open(folder.database()).unwrap();
    connection.query_one("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// Creates a store with layout 10, the oldest that is carried over.
fn make_layout_10(folder: &Folder) {
    let connection = Connection::open(folder.database()).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.pragma_update(None, "application_id", 0x416d_5373).unwrap();
    connection.pragma_update(None, "user_version", 10).unwrap();
    connection.execute_batch(include_str!("layout_10.sql")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_layout_10_is_carried_over() {
    let (folder, new) = (Folder::new(), Folder::new());
    make_layout_10(&folder);
    let opened: JoinSet<_> = (0..4).map(|_| Sqlite::open(folder.database())).collect();
    for backend in opened.join_all().await {
        backend.unwrap();
    }
    new.backend().await;
    assert_eq!((layout(&folder), layout(&new)), (14, 14));
    assert_eq!(schema(&folder), schema(&new));

    let backend = folder.backend().await;
    let entries = backend.meta().await.unwrap();
    assert!(entries["last_syncs"].contains("/home/dana/.amplifier"), "{entries:?}");
    earlier::check_store(Arc::new(backend)).await;
}

#[tokio::test]
async fn other_layouts_are_refused_unchanged() {
    for (layout, says) in [(99, "layout 99"), (9, "layout 9 of an earlier version"), (0, "from 10 on")] {
        let folder = Folder::new();
        drop(folder.backend().await);
        let connection = Connection::open(folder.database()).unwrap();
        connection.pragma_update(None, "user_version", layout).unwrap();
        drop(connection);
        let before = fs::read(folder.database()).unwrap();
        let error = Sqlite::open(folder.database()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageConnection);
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(error.hint().is_some_and(|hint| hint.contains("sync")), layout < 10);
        assert_eq!(fs::read(folder.database()).unwrap(), before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn views_have_the_contents_of_lines() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    let session = target("s");
    storage
        .ingestion()
        .sync_transcript_lines(&session, whole(vec![lines::user("hello"), lines::assistant("hi")]))
        .await
        .unwrap();
    let event = r#"{"ts":"2026-01-01T00:00:00Z","lvl":"INFO","event":"tool:post","data":{"tool":"bash"}}"#;
    storage
        .ingestion()
        .sync_event_lines(&session, SyncLines::whole(vec![RawJson::new(event)]))
        .await
        .unwrap();
    storage.vectors().embed_pending(&session.key.user_id, None).await.unwrap();
    drop(storage);
    let connection = Connection::open(folder.database()).unwrap();
    register_view_functions(&connection).unwrap();
    let column = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let contents =
        column("SELECT content ->> '$' FROM transcripts_with_content WHERE has_vectors ORDER BY sequence");
    assert_eq!(contents, ["hello", "hi"]);
    assert_eq!(column("SELECT data ->> '$.tool' FROM events_with_data"), ["bash"]);
    let sources = column("SELECT source_text FROM vectors_with_context ORDER BY sequence");
    assert_eq!(sources, ["hello", "hi"]);
    for view in VIEWS {
        let found = column(&format!("SELECT name FROM pragma_table_info('{}') ORDER BY cid", view.name));
        assert_eq!(found, view.columns().collect::<Vec<_>>(), "{}", view.name);
    }
    let of_user = column("SELECT id || ' ' || turn FROM vectors_with_context WHERE role = 'user'");
    assert_eq!(of_user, ["s_msg_0_user_query_0 1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn views_have_the_texts_of_the_library() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    let session = target("s");
    storage.ingestion().sync_transcript_lines(&session, SyncLines::whole(views::messages())).await.unwrap();
    storage.vectors().embed_pending(&session.key.user_id, None).await.unwrap();
    let ana = Scope::from(session.key.user_id.clone());
    let messages =
        storage.reading().get_transcript_lines(&ana, &session.key.session_id, None, 1_000).await.unwrap();
    let connection = Connection::open(folder.database()).unwrap();
    register_view_functions(&connection).unwrap();
    let rows = |sql: &str| -> Vec<Vec<Option<String>>> {
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect()).unwrap();
        rows.map(Result::unwrap).collect()
    };
    views::check(&messages, &rows(views::FIELDS), &rows(views::TEXTS));
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lines_are_compressed_and_read_as_they_were() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    let session = target("s");
    let text = "The cache is warm. ".repeat(1_000);
    let messages = vec![lines::user("hello"), lines::assistant(&text)];
    storage.ingestion().sync_transcript_lines(&session, whole(messages)).await.unwrap();

    let connection = Connection::open(folder.database()).unwrap();
    register_view_functions(&connection).unwrap();
    let sql =
        "SELECT group_concat(typeof(raw) || (octet_length(raw) < 500)) FROM transcripts ORDER BY sequence";
    let stored: String = connection.query_one(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(stored, "text1,blob1");
    let sql = "SELECT count(*), count(content) FROM transcripts_with_content";
    let counts: (u32, u32) = connection.query_one(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(counts, (2, 2));

    let (ana, id) = (Scope::from(session.key.user_id.clone()), &session.key.session_id);
    let read = storage.reading().get_transcript_lines(&ana, id, None, 10).await.unwrap();
    assert_eq!(read[1].content(), text);
    let found = storage.search().search_transcripts(&ana, &SearchOptions::new("cache warm")).await.unwrap();
    assert_eq!(found.results[0].sequence, 1);

    connection.execute("UPDATE transcripts SET raw = substr(raw, 1, 20) WHERE sequence = 1", []).unwrap();
    let error = storage.reading().get_transcript_lines(&ana, id, None, 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.to_string().contains("sequence 1"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_of_turns_are_in_the_table_of_the_adr() {
    let folder = Folder::new();
    folder.backend().await;
    let connection = Connection::open(folder.database()).unwrap();
    let sql = r#"SELECT name, type, "notnull" FROM pragma_table_info('message_embeddings')"#;
    let mut columns = connection.prepare(sql).unwrap();
    let columns = columns.query_map([], |row| {
        Ok(DescribedColumn { name: row.get(0)?, data_type: row.get(1)?, is_required: row.get(2)? })
    });
    let types = [
        ("uuid", "TEXT"),
        ("text", "TEXT"),
        ("int", "BIGINT"),
        ("bool", "BOOLEAN"),
        ("vector", "BLOB"),
        ("timestamptz", "TIMESTAMP"),
    ];
    adr::check_columns(&columns.unwrap().map(Result::unwrap).collect::<Vec<_>>(), &types);

    let sql = r#"SELECT i."unique", group_concat(c.name ORDER BY c.seqno)
        FROM pragma_index_list('message_embeddings') i, pragma_index_info(i.name) c GROUP BY i.name"#;
    let mut indexes = connection.prepare(sql).unwrap();
    let indexes = indexes.query_map([], |row| {
        let columns: String = row.get(1)?;
        let columns = columns.split(',').map(str::to_owned).collect();
        Ok(DescribedIndex { columns, is_unique: row.get(0)? })
    });
    adr::check_indexes(&indexes.unwrap().map(Result::unwrap).collect::<Vec<_>>());
}
