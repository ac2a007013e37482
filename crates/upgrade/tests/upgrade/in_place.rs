//! A store takes the place of the old file.

use std::fs;

use amplifier_session_core::ErrorKind;
use amplifier_session_sqlite::Sqlite;
use amplifier_session_testkit::python_library::{Dialect, PythonLibrary, assert_upgraded};
use amplifier_session_upgrade::{PythonDatabase, UpgradeOutcome, is_interrupted};
use rusqlite::Connection;

use crate::support::{
    Folder, GENERATIONS, becomes_a_store, counts, in_place, is_upgraded_with_its_log, opened, run,
    sqlite_file, sqlite_store,
};

#[tokio::test(flavor = "multi_thread")]
async fn each_generation_becomes_a_store() {
    for generation in GENERATIONS {
        let folder = sqlite_file(generation, "");
        let before = folder.content();
        let error = Sqlite::open(folder.old()).await.unwrap_err();
        assert_eq!(PythonDatabase::cause_of(&error), Some(PythonDatabase { generation }), "{error}");
        becomes_a_store(&folder, &before, generation, sqlite_store).await;
        assert_upgraded(&opened(folder.old()).await).await;
    }
}

/// Rows that only the log has, as a killed process leaves them, also if it was in the middle of a transaction.
#[tokio::test(flavor = "multi_thread")]
async fn logs_are_read_and_go_with_the_backup() {
    let wal = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;";
    let half = "PRAGMA cache_size = 1; BEGIN; UPDATE transcripts SET content_json = json_quote(hex(randomblob(3000)))";
    for (before, after, log) in [(wal, "", "old-wal"), ("", half, "old-journal")] {
        let folder = Folder::new();
        let connection = Connection::open(folder.old()).unwrap();
        connection.execute_batch(before).unwrap();
        connection.execute_batch(&PythonLibrary::new(2, Dialect::Sqlite).sql()).unwrap();
        connection.execute_batch(after).unwrap();
        let killed = Folder::new();
        for name in ["old", log] {
            fs::copy(folder.join(name), killed.join(name)).unwrap();
        }
        let before = killed.content();
        assert!(Sqlite::open(killed.old()).await.is_err());
        is_upgraded_with_its_log(&killed, &before, sqlite_store).await;
        assert_upgraded(&opened(killed.old()).await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_never_overwritten() {
    let folder = sqlite_file(1, "");
    fs::write(folder.join("old.python-backup"), "somebody's").unwrap();
    let done = in_place(&folder.old()).await.unwrap();
    assert_eq!(done.backup, Some(folder.join("old.python-backup-2")));
    assert_eq!(fs::read(folder.join("old.python-backup")).unwrap(), b"somebody's");
}

/// Simulates a process that was killed while it built the store, and one that was killed between the renames.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_upgrade_begins_again() {
    for killed_late in [false, true] {
        let folder = sqlite_file(3, "");
        fs::write(folder.join("old.upgrading"), "half").unwrap();
        fs::write(folder.join("old.upgrading-wal"), "half").unwrap();
        fs::create_dir(folder.join("old.upgrading.index")).unwrap();
        if killed_late {
            fs::rename(folder.old(), folder.join("old.python-backup")).unwrap();
            assert!(is_interrupted(&folder.old()));
            let planned = run(&folder.old(), sqlite_store(folder.old()), true).await.unwrap();
            assert_eq!(counts(&planned), [3, 45, 12, 60]);
        }
        let done = in_place(&folder.old()).await.unwrap();
        assert_eq!(counts(&done), [3, 45, 12, 60]);
        assert_upgraded(&opened(folder.old()).await).await;
        assert_eq!(folder.names(), ["old", "old.index", "old.python-backup"]);
    }
}

/// Killed between the renames, and another program made a store before the next upgrade.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_made_after_an_interruption_gets_the_sessions_of_the_backup() {
    let folder = sqlite_file(2, "");
    fs::rename(folder.old(), folder.join("old.python-backup")).unwrap();
    fs::write(folder.join("old.upgrading"), "whole").unwrap();
    drop(Sqlite::open(folder.old()).await.unwrap());
    assert_eq!(counts(&in_place(&folder.old()).await.unwrap()), [3, 45, 12, 60]);
    assert_upgraded(&opened(folder.old()).await).await;
    assert_eq!(folder.names(), ["old", "old.index", "old.python-backup"]);
}

/// One of them upgrades the file. The other sees that it is done, or that another process is doing it.
#[tokio::test(flavor = "multi_thread")]
async fn two_upgrades_at_the_same_time_make_one_store() {
    for _ in 0..8 {
        let folder = sqlite_file(2, "");
        let both = [(); 2].map(|()| {
            let old = folder.old();
            tokio::spawn(async move { in_place(&old).await })
        });
        let mut upgraded = 0;
        for one in both {
            match one.await.unwrap() {
                Ok(upgrade) => upgraded += usize::from(upgrade.outcome == UpgradeOutcome::Upgraded),
                Err(error) => assert_eq!(error.kind(), ErrorKind::StorageConnection, "{error}"),
            }
        }
        assert_eq!(upgraded, 1);
        assert_upgraded(&opened(folder.old()).await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_files_are_refused_untouched() {
    let newer = "UPDATE schema_meta SET value = '5'";
    let python = PythonLibrary::new(3, Dialect::Sqlite).sql();
    for (sql, says) in [
        ("CREATE TABLE birds (name TEXT)", "another program"),
        ("CREATE TABLE sessions (id TEXT); CREATE TABLE transcripts (id TEXT)", "another program"),
        (&format!("{python}{newer}"), "schema version 5 of the Python library"),
        (&format!("PRAGMA journal_mode = WAL; {python}{newer}"), "schema version 5 of the Python library"),
    ] {
        let folder = Folder::new();
        let connection = Connection::open(folder.old()).unwrap();
        connection.execute_batch(sql).unwrap();
        drop(connection);
        let before = folder.content();
        for check in [true, false] {
            let error = run(&folder.old(), sqlite_store(folder.old()), check).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StorageConnection);
            assert!(error.to_string().contains(says), "{error}");
        }
        let error = Sqlite::open(folder.old()).await.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert!(folder.content() == before);
    }
}
