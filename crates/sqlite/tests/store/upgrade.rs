//! Files of the Python library become stores.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use amplifier_session_core::{
    ErrorKind, Scope, SessionStorage, backend::SessionQuery, model::Timestamp, search::SearchOptions,
};
use amplifier_session_sqlite::{Sqlite, SqliteUpgrade};
use amplifier_session_testkit::{
    FakeEmbedding,
    python_library::{Dialect, MODEL, PythonLibrary, assert_upgraded},
};
use amplifier_session_upgrade::{Outcome, PythonDatabase, Upgrade, UpgradeOptions, upgrade};
use rusqlite::Connection;

use super::support::Folder;

const GENERATIONS: [u32; 3] = [1, 2, 3];

async fn run(file: &Path, check: bool) -> amplifier_session_core::Result<Upgrade> {
    let options = UpgradeOptions::new(Timestamp::from_micros(0)).with_check(check);
    upgrade(Arc::new(SqliteUpgrade::default()), file, options, Box::new(|_| {})).await
}

/// A folder with a file of a generation, with `more` in it.
fn old(generation: u32, more: &str) -> Folder {
    let folder = Folder::new();
    let connection = Connection::open(folder.database()).unwrap();
    connection.execute_batch(&PythonLibrary::new(generation, Dialect::Sqlite).sql()).unwrap();
    connection.execute_batch(more).unwrap();
    folder
}

async fn opened(folder: &Folder) -> SessionStorage {
    SessionStorage::new(Arc::new(Sqlite::open(folder.database()).await.unwrap()))
}

/// The names of what lies in the folder.
fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.database().parent().unwrap()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What lies in the folder, byte for byte.
fn content(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let read = |name: String| fs::read(folder.path().join(&name)).map(|bytes| (name, bytes)).unwrap();
    names(folder).into_iter().map(read).collect()
}

fn backup(folder: &Folder, generation: u32) -> PathBuf {
    folder.database().with_extension(format!("sqlite.v{generation}-backup"))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_generation_becomes_a_store() {
    for generation in GENERATIONS {
        let folder = old(generation, "");
        let before = fs::read(folder.database()).unwrap();
        let error = Sqlite::open(folder.database()).await.unwrap_err();
        assert_eq!(PythonDatabase::cause_of(&error), Some(PythonDatabase { generation }), "{error}");

        let planned = run(&folder.database(), true).await.unwrap();
        assert_eq!(names(&folder), ["sessions.sqlite"]);
        assert!(fs::read(folder.database()).unwrap() == before);

        let done = run(&folder.database(), false).await.unwrap();
        let counts = (done.counts.sessions, done.counts.messages, done.counts.events, done.counts.vectors);
        assert_eq!((done.generation, counts), (Some(generation), (3, 45, 12, 60)));
        assert_eq!(done.backup, Some(fs::canonicalize(backup(&folder, generation)).unwrap()));
        assert!(done.left_out.is_empty() && done.owing == 0 && done.unknown_roles == 0, "{done:?}");
        let mut expected = done.clone();
        expected.outcome = Outcome::WouldUpgrade;
        assert_eq!(planned, expected);
        assert!(fs::read(backup(&folder, generation)).unwrap() == before);
        assert_eq!(
            names(&folder),
            [
                "sessions.sqlite".to_owned(),
                "sessions.sqlite.index".to_owned(),
                format!("sessions.sqlite.v{generation}-backup"),
            ]
        );

        assert_upgraded(&opened(&folder).await).await;
        for check in [true, false] {
            assert_eq!(run(&folder.database(), check).await.unwrap().outcome, Outcome::UpToDate);
        }
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_made_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;

    let folder = old(2, "");
    fs::set_permissions(folder.database(), fs::Permissions::from_mode(0o644)).unwrap();
    run(&folder.database(), false).await.unwrap();
    for file in [folder.database(), backup(&folder, 2)] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// Only one of them upgrades the file. The other sees that it is done, or that somebody is at it.
#[tokio::test(flavor = "multi_thread")]
async fn two_upgrades_at_the_same_time_make_one_store() {
    for _ in 0..8 {
        let folder = old(2, "");
        let both = [(); 2].map(|()| {
            let file = folder.database();
            tokio::spawn(async move { run(&file, false).await })
        });
        let mut upgraded = 0;
        for one in both {
            match one.await.unwrap() {
                Ok(upgrade) => upgraded += usize::from(upgrade.outcome == Outcome::Upgraded),
                Err(error) => assert_eq!(error.kind(), ErrorKind::StorageConnection, "{error}"),
            }
        }
        assert_eq!(upgraded, 1);
        assert_upgraded(&opened(&folder).await).await;
    }
}

/// Tables of extensions that are not here, payloads in pieces, and vectors that are none.
#[tokio::test(flavor = "multi_thread")]
async fn what_stands_beside_is_read_or_told_of() {
    const VIRTUAL: &str = "PRAGMA writable_schema = ON;
        INSERT INTO sqlite_schema VALUES ('table', 'transcript_embeddings', 'transcript_embeddings', 0,
            'CREATE VIRTUAL TABLE transcript_embeddings USING vss0(v(64))');
        PRAGMA writable_schema = OFF;";
    let folder = old(1, VIRTUAL);
    run(&folder.database(), false).await.unwrap();
    assert_upgraded(&opened(&folder).await).await;

    let chunked =
        "CREATE TABLE event_chunks (chunk_id TEXT, event_id TEXT, chunk_index INTEGER, chunk_data TEXT);
        INSERT INTO event_chunks SELECT id || '_1', id, 1, substr(data, 31) FROM events;
        INSERT INTO event_chunks SELECT id || '_0', id, 0, substr(data, 1, 30) FROM events;
        UPDATE events SET data = NULL";
    let folder = old(3, chunked);
    run(&folder.database(), false).await.unwrap();
    assert_upgraded(&opened(&folder).await).await;

    let folder = old(2, "UPDATE transcript_vectors SET vector_json = '[NaN]'");
    let told = run(&folder.database(), true).await.unwrap();
    assert_eq!((told.counts.vectors, told.left_out.values().sum::<u64>()), (0, 60), "{told:?}");
}

/// A model that can't be run: words find by themselves, and say so.
#[tokio::test(flavor = "multi_thread")]
async fn searches_with_another_model_go_by_words() {
    let folder = old(2, "");
    run(&folder.database(), false).await.unwrap();
    let storage = opened(&folder).await.with_embedding(Some(Arc::new(FakeEmbedding::new())));
    let found = storage.search_transcripts(&Scope::Everyone, &SearchOptions::new("answer1x2")).await.unwrap();
    assert_eq!(found.results[0].sequence, 7);
    assert!(found.notices.iter().any(|notice| notice.contains(MODEL)), "{:?}", found.notices);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_any_quality_are_kept() {
    let more = "
        UPDATE sessions SET metadata = '{broken' WHERE user_id = 'bob';
        DELETE FROM sessions WHERE project_slug = 'proj-b';
        INSERT INTO sessions (user_id, session_id, host_id) VALUES ('', 'odd id/1', '');
        INSERT INTO transcripts (id, user_id, host_id, session_id, sequence, role, content_json, turn, ts) VALUES
            ('m1', 'carol', 'h', 'alone', 5, NULL, 'no json', 0, 'yesterday'),
            ('m2', 'carol', 'h', 'alone', 9, 'user', '{\"role\":\"user\",\"content\":\"whole line\",\"n\":1.0}', 2, NULL),
            ('m3', 'carol', 'h', 'alone', 9, 'function', NULL, NULL, '2026-03-01T00:00:00Z');
        INSERT INTO events (id, user_id, host_id, session_id, sequence, ts, lvl, event, data) VALUES
            ('e1', 'carol', 'h', 'alone', 3, NULL, 'WARNING', 'llm.request', '{\"model\":\"m\"}'),
            ('e1b', 'carol', 'h', 'events only', 0, '2026-03-01T00:00:00Z', NULL, NULL, '{\"cut off');
        INSERT INTO transcript_vectors (id, parent_id, user_id, session_id, content_type, span_end, token_count, source_text,
            vector_json, embedding_model) VALUES
            ('v1', 'm2', 'carol', 'alone', 'user_query', 0, 0, '', '[3, 4]', 'other'),
            ('v2', 'gone', 'carol', 'alone', 'user_query', 1, 1, 'x', '[3, 4]', 'other'),
            ('v3', 'm2', 'carol', 'alone', 'poem', 1, 1, 'x', '[1', 'fake-64'),
            ('v4', 'm2', 'carol', 'alone', 'user_query', 1, 1, 'x', NULL, 'fake-64');";
    let folder = old(2, more);
    let planned = run(&folder.database(), true).await.unwrap();
    let done = run(&folder.database(), false).await.unwrap();
    assert_eq!((planned.counts, &planned.left_out), (done.counts, &done.left_out));
    let counts = (done.counts.sessions, done.counts.messages, done.counts.events, done.counts.vectors);
    assert_eq!((counts, done.owing, done.unknown_roles), ((6, 48, 14, 60), 1, 1));
    let left_out: Vec<_> = done.left_out.iter().map(|(what, count)| (what.as_str(), *count)).collect();
    assert_eq!(
        left_out,
        [("of messages that are not there", 1), ("of other (2 dimensions)", 1), ("that can't be read", 1)]
    );

    let storage = opened(&folder).await;
    let alone =
        storage.get_transcript_lines(&Scope::Everyone, &"alone".parse().unwrap(), None, 10).await.unwrap();
    let shown: Vec<_> =
        alone.iter().map(|m| (m.sequence, m.role.as_str(), m.turn, m.raw.to_text().into_owned())).collect();
    assert_eq!(
        shown,
        [
            (0, "system", None, r#"{"role":"","content":"no json","timestamp":"yesterday"}"#.to_owned()),
            (1, "user", Some(2), r#"{"role":"user","content":"whole line","n":1.0}"#.to_owned()),
            (
                2,
                "tool",
                None,
                r#"{"role":"function","content":null,"timestamp":"2026-03-01T00:00:00.000000Z"}"#.to_owned()
            ),
        ]
    );
}

/// Rows that are in the log alone, as a process leaves them that was killed.
#[tokio::test(flavor = "multi_thread")]
async fn rows_in_a_log_are_taken_along() {
    for generation in GENERATIONS {
        let folder = Folder::new();
        let connection = Connection::open(folder.database()).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        connection.execute_batch(&PythonLibrary::new(generation, Dialect::Sqlite).sql()).unwrap();
        let killed = Folder::new();
        for name in ["sessions.sqlite", "sessions.sqlite-wal"] {
            fs::copy(folder.path().join(name), killed.path().join(name)).unwrap();
        }
        let error = run(&folder.database(), false).await.unwrap_err();
        assert!(error.to_string().contains("another program has the database open"), "{error}");

        let before = content(&killed);
        let planned = run(&killed.database(), true).await.unwrap();
        assert_eq!(planned.counts.vectors, 60);
        assert!(Sqlite::open(killed.database()).await.is_err());
        assert!(content(&killed) == before);
        run(&killed.database(), false).await.unwrap();
        assert_upgraded(&opened(&killed).await).await;
        let backup = Connection::open(backup(&killed, generation)).unwrap();
        let rows: i64 = backup.query_row("SELECT count(*) FROM transcripts", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 45);
    }
}

/// A transaction that a killed process has half written into the file.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_committed_is_taken_back_by_the_upgrade_alone() {
    let folder = old(2, "");
    let writer = Connection::open(folder.database()).unwrap();
    let half = "PRAGMA cache_size = 1; BEGIN; UPDATE transcripts SET content_json = json_quote(hex(randomblob(3000)))";
    writer.execute_batch(half).unwrap();
    let killed = Folder::new();
    for name in ["sessions.sqlite", "sessions.sqlite-journal"] {
        fs::copy(folder.path().join(name), killed.path().join(name)).unwrap();
    }
    let before = content(&killed);
    assert_eq!(run(&killed.database(), true).await.unwrap().counts.messages, 45);
    assert!(Sqlite::open(killed.database()).await.is_err());
    assert!(content(&killed) == before);
    run(&killed.database(), false).await.unwrap();
    assert_upgraded(&opened(&killed).await).await;
}

/// Amplifier's own lines name no turn, and programs that made vectors themselves named no model.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_library_did_not_know_loses_nothing() {
    for generation in GENERATIONS {
        let vectors = if generation == 1 { "transcripts" } else { "transcript_vectors" };
        let unknown = format!(
            "UPDATE transcripts SET turn = NULL; UPDATE {vectors} SET embedding_model = NULL WHERE rowid % 3 > 0"
        );
        let folder = old(generation, &unknown);
        let done = run(&folder.database(), false).await.unwrap();
        assert_eq!((done.counts.vectors, done.owing), (60, 0));
        assert_eq!(done.space.unwrap().model, MODEL);
        let storage = opened(&folder).await;
        let sessions = storage.search_sessions(&SessionQuery::new(Scope::Everyone)).await.unwrap();
        assert!(sessions.iter().all(|session| session.turn_count == 5 && session.first_prompt.is_some()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_never_written_over() {
    let folder = old(1, "");
    fs::write(backup(&folder, 1), "somebody's").unwrap();
    let done = run(&folder.database(), false).await.unwrap();
    assert_eq!(fs::read(backup(&folder, 1)).unwrap(), b"somebody's");
    assert!(done.backup.unwrap().to_str().unwrap().ends_with(".v1-backup-2"));
    assert_upgraded(&opened(&folder).await).await;
}

/// What a killed process leaves: half a store, or a whole one with the old file gone to its backup.
#[tokio::test(flavor = "multi_thread")]
async fn leftovers_are_no_obstacle() {
    let folder = old(3, "");
    let workshop = folder.path().join("sessions.sqlite.upgrading");
    fs::create_dir(&workshop).unwrap();
    fs::write(workshop.join("store"), "half").unwrap();
    fs::write(workshop.join("ready.json"), "{\"half\":").unwrap();
    fs::hard_link(folder.database(), backup(&folder, 3)).unwrap();
    run(&folder.database(), false).await.unwrap();
    assert!(!workshop.exists());
    assert_upgraded(&opened(&folder).await).await;
    fs::create_dir(&workshop).unwrap();
    run(&folder.database(), false).await.unwrap();
    assert!(!workshop.exists());
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
        let connection = Connection::open(folder.database()).unwrap();
        connection.execute_batch(sql).unwrap();
        drop(connection);
        let before = fs::read(folder.database()).unwrap();
        for check in [true, false] {
            let error = run(&folder.database(), check).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StorageConnection);
            assert!(error.to_string().contains(says), "{error}");
        }
        let error = Sqlite::open(folder.database()).await.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert!(fs::read(folder.database()).unwrap() == before);
        assert_eq!(names(&folder), ["sessions.sqlite"]);
    }
}
