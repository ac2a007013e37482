//! DuckDB files, and stores in DuckDB.

use std::{fs, path::PathBuf, sync::Arc};

use amplifier_session_core::{
    SessionStorage,
    backend::{Opening, StorageBackend},
};
use amplifier_session_duckdb::{Access, DuckDb};
use amplifier_session_testkit::python_library::{Dialect, PythonLibrary, assert_upgraded};
use amplifier_session_upgrade::{NewStore, PythonDatabase};
use duckdb::Connection;

use crate::support::{
    Folder, GENERATIONS, becomes_a_store, counts, is_upgraded_with_its_log, left_out, opened, run,
    sqlite_file, sqlite_store,
};

/// A folder with a DuckDB file of a generation, changed by `more`.
fn duckdb_file(generation: u32, more: &str) -> Folder {
    let folder = Folder::new();
    let connection = Connection::open(folder.old()).unwrap();
    connection.execute_batch(&PythonLibrary::new(generation, Dialect::DuckDb).sql()).unwrap();
    connection.execute_batch(more).unwrap();
    folder
}

fn duckdb_store(file: PathBuf) -> NewStore {
    let open = |file: Option<PathBuf>, _| -> Opening {
        Box::pin(async {
            let backend = DuckDb::open(file.unwrap(), Access::ReadWrite).await?;
            Ok(Arc::new(backend) as Arc<dyn StorageBackend>)
        })
    };
    NewStore { name: "duckdb".to_owned(), file: Some(file), open: Box::new(open) }
}

async fn assert_is_upgraded(file: PathBuf) {
    let backend = DuckDb::open(file, Access::ReadWrite).await.unwrap();
    assert_upgraded(&SessionStorage::new(Arc::new(backend))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_generation_becomes_a_store() {
    for generation in GENERATIONS {
        let folder = duckdb_file(generation, "");
        let before = folder.content();
        for access in [Access::ReadWrite, Access::ReadOnly] {
            let error = DuckDb::open(folder.old(), access).await.unwrap_err();
            assert_eq!(PythonDatabase::cause_of(&error), Some(PythonDatabase { generation }), "{error}");
        }
        becomes_a_store(&folder, &before, generation, duckdb_store).await;
        assert_is_upgraded(folder.old()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_may_be_in_another_database() {
    let (from_sqlite, from_duckdb) = (sqlite_file(3, ""), duckdb_file(3, ""));
    let before = [from_sqlite.content(), from_duckdb.content()];
    let duckdb = from_sqlite.join("new.duckdb");
    run(&from_sqlite.old(), duckdb_store(duckdb.clone()), false).await.unwrap();
    assert_is_upgraded(duckdb).await;
    let sqlite = from_duckdb.join("new.sqlite");
    run(&from_duckdb.old(), sqlite_store(sqlite.clone()), false).await.unwrap();
    assert_upgraded(&opened(sqlite).await).await;
    let after = [from_sqlite, from_duckdb].map(|folder| fs::read(folder.old()).unwrap());
    assert!(before.map(|files| files[0].1.clone()) == after);
}

/// Rows that only the log has, as a killed process leaves them.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_and_goes_with_the_backup() {
    let folder = Folder::new();
    let connection = Connection::open(folder.old()).unwrap();
    connection.execute_batch(&PythonLibrary::new(2, Dialect::DuckDb).sql()).unwrap();
    let killed = Folder::new();
    for name in ["old", "old.wal"] {
        fs::copy(folder.join(name), killed.join(name)).unwrap();
    }
    drop(connection);
    is_upgraded_with_its_log(&killed, &killed.content(), duckdb_store).await;
    assert_is_upgraded(killed.old()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_any_quality_are_kept() {
    let more = "
        UPDATE sessions SET metadata = NULL WHERE user_id = 'bob';
        DELETE FROM sessions WHERE project_slug = 'proj-b';
        INSERT INTO transcripts (id, user_id, host_id, session_id, sequence, role, content, turn, ts) VALUES
            ('m1', 'carol', 'h', 'alone', 5, NULL, NULL, 0, NULL),
            ('m2', 'carol', 'h', 'alone', 9, 'user', '\"Where?\"', 2, '2026-03-01 00:00:00');
        INSERT INTO transcript_vectors (id, parent_id, user_id, session_id, content_type, span_end, token_count, source_text,
            vector, embedding_model) SELECT 'v' || n, 'm' || n, 'carol', 'alone', 'user_query', 1, 1, 'x', vector, 'other'
            FROM range(1, 4) t(n), (SELECT vector FROM transcript_vectors LIMIT 1);";
    let folder = duckdb_file(2, more);
    let done = run(&folder.old(), duckdb_store(folder.join("new")), false).await.unwrap();
    assert_eq!((counts(&done), done.pending, done.unknown_roles), ([4, 47, 12, 60], 1, 1));
    assert_eq!(left_out(&done), [("of messages that are not there", 1), ("of other (64 dimensions)", 2)]);
}
