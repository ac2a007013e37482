//! Files of the Python library become stores.

use std::{fs, path::Path, sync::Arc};

use amplifier_session_core::{SessionStorage, model::Timestamp};
use amplifier_session_duckdb::{Access, DuckDb, DuckDbUpgrade};
use amplifier_session_testkit::python_library::{Dialect, PythonLibrary, assert_upgraded};
use amplifier_session_upgrade::{Outcome, PythonDatabase, Upgrade, UpgradeOptions, upgrade};
use duckdb::Connection;

use super::support::{Folder, number};

const GENERATIONS: [u32; 3] = [1, 2, 3];

async fn run(file: &Path, check: bool) -> amplifier_session_core::Result<Upgrade> {
    let options = UpgradeOptions::new(Timestamp::from_micros(0)).with_check(check);
    upgrade(Arc::new(DuckDbUpgrade::default()), file, options, Box::new(|_| {})).await
}

/// A folder with a file of a generation, with `more` in it.
fn old(generation: u32, more: &str) -> Folder {
    let folder = Folder::new();
    let connection = Connection::open(folder.database()).unwrap();
    connection.execute_batch(&PythonLibrary::new(generation, Dialect::DuckDb).sql()).unwrap();
    connection.execute_batch(more).unwrap();
    folder
}

async fn opened(folder: &Folder) -> SessionStorage {
    let backend = DuckDb::open(folder.database(), Access::ReadWrite).await.unwrap();
    SessionStorage::new(Arc::new(backend))
}

/// The names of what lies in the folder.
fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn each_generation_becomes_a_store() {
    for generation in GENERATIONS {
        let folder = old(generation, "");
        let before = fs::read(folder.database()).unwrap();
        for access in [Access::ReadWrite, Access::ReadOnly] {
            let error = DuckDb::open(folder.database(), access).await.unwrap_err();
            assert_eq!(PythonDatabase::cause_of(&error), Some(PythonDatabase { generation }), "{error}");
        }
        let planned = run(&folder.database(), true).await.unwrap();
        assert_eq!(names(&folder), ["sessions.duckdb"]);
        assert!(fs::read(folder.database()).unwrap() == before);

        let done = run(&folder.database(), false).await.unwrap();
        let counts = (done.counts.sessions, done.counts.messages, done.counts.events, done.counts.vectors);
        assert_eq!((done.generation, counts), (Some(generation), (3, 45, 12, 60)));
        assert!(done.left_out.is_empty() && done.owing == 0 && done.unknown_roles == 0, "{done:?}");
        let mut expected = done.clone();
        expected.outcome = Outcome::WouldUpgrade;
        assert_eq!(planned, expected);
        let backup = format!("sessions.duckdb.v{generation}-backup");
        assert!(fs::read(folder.path().join(&backup)).unwrap() == before);
        assert_eq!(
            names(&folder),
            ["sessions.duckdb".to_owned(), "sessions.duckdb.index".to_owned(), backup]
        );

        assert_upgraded(&opened(&folder).await).await;
        for check in [true, false] {
            assert_eq!(run(&folder.database(), check).await.unwrap().outcome, Outcome::UpToDate);
        }
    }
}

/// Rows that are in the log alone, as a process leaves them that was killed.
#[tokio::test(flavor = "multi_thread")]
async fn rows_in_a_log_are_taken_along() {
    for generation in GENERATIONS {
        let folder = Folder::new();
        let connection = Connection::open(folder.database()).unwrap();
        connection.execute_batch(&PythonLibrary::new(generation, Dialect::DuckDb).sql()).unwrap();
        let killed = Folder::new();
        let log = killed.path().join("sessions.duckdb.wal");
        fs::copy(folder.database(), killed.database()).unwrap();
        fs::copy(folder.path().join("sessions.duckdb.wal"), &log).unwrap();
        drop(connection);

        let before = (fs::read(killed.database()).unwrap(), fs::read(&log).unwrap());
        let planned = run(&killed.database(), true).await.unwrap();
        assert_eq!(planned.counts.vectors, 60);
        assert!((fs::read(killed.database()).unwrap(), fs::read(&log).unwrap()) == before);
        let done = run(&killed.database(), false).await.unwrap();
        assert!(!log.exists());
        assert_upgraded(&opened(&killed).await).await;
        let backup = done.backup.unwrap();
        let its_log = backup.with_extension(format!("v{generation}-backup.wal"));
        assert!((fs::read(&backup).unwrap(), fs::read(its_log).unwrap()) == before);
        assert_eq!(number(&Connection::open(backup).unwrap(), "SELECT count(*) FROM transcripts"), 45);
    }
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
    let folder = old(2, more);
    let done = run(&folder.database(), false).await.unwrap();
    let counts = (done.counts.sessions, done.counts.messages, done.counts.events, done.counts.vectors);
    assert_eq!((counts, done.owing, done.unknown_roles), ((4, 47, 12, 60), 1, 1));
    let left_out: Vec<_> = done.left_out.iter().map(|(what, count)| (what.as_str(), *count)).collect();
    assert_eq!(left_out, [("of messages that are not there", 1), ("of other (64 dimensions)", 2)]);
}
