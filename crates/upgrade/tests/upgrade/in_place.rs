//! A store takes the place of the old file.

use std::fs;

use amplifier_session_core::ErrorKind;
use amplifier_session_sqlite::Sqlite;
use amplifier_session_testkit::python_library::{Dialect, PythonLibrary, assert_upgraded};
use amplifier_session_upgrade::{Outcome, PythonDatabase, is_interrupted};
use rusqlite::Connection;

use crate::support::{Folder, GENERATIONS, counts, in_place, opened, run, sqlite_file, sqlite_store};

#[tokio::test(flavor = "multi_thread")]
async fn each_generation_becomes_a_store() {
    for generation in GENERATIONS {
        let folder = sqlite_file(generation, "");
        let (old, before) = (folder.old(), folder.content());
        let error = Sqlite::open(&old).await.unwrap_err();
        assert_eq!(PythonDatabase::cause_of(&error), Some(PythonDatabase { generation }), "{error}");

        let planned = run(&old, sqlite_store(old.clone()), true).await.unwrap();
        assert_eq!(folder.content(), before);

        let done = in_place(&old).await.unwrap();
        assert_eq!((done.generation, counts(&done)), (Some(generation), [3, 45, 12, 60]));
        assert!(done.left_out.is_empty() && done.pending == 0 && done.unknown_roles == 0, "{done:?}");
        let mut expected = done.clone();
        expected.outcome = Outcome::WouldUpgrade;
        assert_eq!(planned, expected);
        let backup = folder.join("old.python-backup");
        assert_eq!(done.backup.as_ref(), Some(&backup));
        assert!(fs::read(backup).unwrap() == before[0].1);
        assert_eq!(folder.names(), ["old", "old.index", "old.python-backup"]);

        assert_upgraded(&opened(old.clone()).await).await;
        assert_eq!(in_place(&old).await.unwrap().outcome, Outcome::UpToDate);
        assert_eq!(run(&old, sqlite_store(old.clone()), true).await.unwrap().outcome, Outcome::UpToDate);
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
        let content = killed.content();
        assert!(Sqlite::open(killed.old()).await.is_err());
        let planned = run(&killed.old(), sqlite_store(killed.old()), true).await.unwrap();
        assert_eq!(counts(&planned), [3, 45, 12, 60]);
        assert!(killed.content() == content);

        in_place(&killed.old()).await.unwrap();
        assert_upgraded(&opened(killed.old()).await).await;
        let log = log.replace("old", "old.python-backup");
        let kept = ["old.python-backup", &log].map(|name| fs::read(killed.join(name)).unwrap());
        assert!(kept == [&content[0].1, &content[1].1].map(Clone::clone));
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
                Ok(upgrade) => upgraded += usize::from(upgrade.outcome == Outcome::Upgraded),
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
