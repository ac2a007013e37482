//! Tables, and what makes a file ours.

use std::path::Path;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::meta::{SCHEMA_VERSION, STORE_ID, VERSION, WRITER, WRITER_NAME},
};
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};

use crate::error::storage;

/// Written into the file's header (`PRAGMA application_id`): `AmSs`.
const APPLICATION_ID: i32 = 0x416d_5373;

/// The tables of schema version 4.
///
/// Times are ISO 8601 in UTC with six decimals, so that text order is time order. What stands in a raw line is not
/// stored again: `content`, `metadata`, `data` and the ids are generated columns. `key` is the row's number in the
/// search index. Every transaction takes the next revision; rows carry the one that last changed them, and
/// `removed` tells the index of those that are gone.
const TABLES: &str = "
CREATE TABLE schema_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE revisions (revision INTEGER PRIMARY KEY AUTOINCREMENT, nonce INTEGER NOT NULL);
CREATE TABLE removed (
    kind INTEGER NOT NULL, revision INTEGER NOT NULL, key INTEGER NOT NULL,
    PRIMARY KEY (kind, revision, key)
) WITHOUT ROWID;

CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    host_id TEXT NOT NULL,
    project_slug TEXT NOT NULL DEFAULT 'default',
    created TEXT NOT NULL,
    updated TEXT NOT NULL,
    name TEXT,
    description TEXT,
    bundle TEXT,
    model TEXT,
    turn_count INTEGER NOT NULL DEFAULT 0,
    message_count INTEGER NOT NULL DEFAULT 0,
    event_count INTEGER NOT NULL DEFAULT 0,
    parent_id TEXT,
    forked_from_turn INTEGER,
    tags TEXT NOT NULL DEFAULT '[]',
    visibility TEXT NOT NULL DEFAULT 'private' CHECK (visibility IN ('private', 'team', 'org', 'public')),
    org_id TEXT,
    team_ids TEXT NOT NULL DEFAULT '[]',
    shared_at TEXT,
    working_dir TEXT,
    first_prompt TEXT,
    skipped_lines TEXT NOT NULL DEFAULT '[]',
    sync_state TEXT,
    revision INTEGER NOT NULL,
    UNIQUE (user_id, session_id)
);
CREATE INDEX sessions_by_project ON sessions (user_id, project_slug, created);
CREATE INDEX sessions_by_date ON sessions (user_id, created);
CREATE INDEX sessions_by_activity ON sessions (user_id, updated);
CREATE INDEX sessions_by_bundle ON sessions (user_id, bundle);

CREATE TABLE metadata_files (
    user_id TEXT NOT NULL, session_id TEXT NOT NULL, position INTEGER NOT NULL,
    name TEXT NOT NULL, raw BLOB NOT NULL,
    PRIMARY KEY (user_id, session_id, position)
) WITHOUT ROWID;

CREATE TABLE transcripts (
    key INTEGER PRIMARY KEY,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    sequence INTEGER NOT NULL CHECK (sequence >= 0),
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool', 'system', 'developer')),
    turn INTEGER CHECK (turn >= 1),
    ts TEXT NOT NULL,
    ts_estimated INTEGER NOT NULL,
    synced_at TEXT NOT NULL,
    vectors INTEGER NOT NULL,
    digest BLOB NOT NULL,
    revision INTEGER NOT NULL,
    raw TEXT NOT NULL,
    id TEXT GENERATED ALWAYS AS (session_id || '_msg_' || sequence) VIRTUAL,
    content TEXT GENERATED ALWAYS AS (iif(typeof(raw) = 'text' AND json_valid(raw), raw -> '$.content', NULL)) VIRTUAL,
    metadata TEXT GENERATED ALWAYS AS (iif(typeof(raw) = 'text' AND json_valid(raw), raw -> '$.metadata', NULL)) VIRTUAL,
    has_vectors INTEGER GENERATED ALWAYS AS (vectors = 1) VIRTUAL,
    UNIQUE (user_id, session_id, sequence)
);
CREATE INDEX transcripts_by_revision ON transcripts (revision);
CREATE INDEX transcripts_owing_vectors ON transcripts (user_id, session_id, sequence) WHERE vectors = 0;

CREATE TABLE transcript_vectors (
    key INTEGER PRIMARY KEY,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    content_type TEXT NOT NULL
        CHECK (content_type IN ('user_query', 'assistant_response', 'assistant_thinking', 'tool_output')),
    chunk_index INTEGER NOT NULL,
    total_chunks INTEGER NOT NULL,
    span_start INTEGER NOT NULL,
    span_end INTEGER NOT NULL,
    token_count INTEGER NOT NULL CHECK (token_count > 0),
    embedding_model TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revision INTEGER NOT NULL,
    vector BLOB NOT NULL,
    parent_id TEXT GENERATED ALWAYS AS (session_id || '_msg_' || sequence) VIRTUAL,
    id TEXT GENERATED ALWAYS AS
        (session_id || '_msg_' || sequence || '_' || content_type || '_' || chunk_index) VIRTUAL,
    CHECK (chunk_index >= 0 AND chunk_index < total_chunks),
    UNIQUE (user_id, session_id, sequence, content_type, chunk_index)
);
CREATE INDEX transcript_vectors_by_revision ON transcript_vectors (revision);

CREATE TABLE events (
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    sequence INTEGER NOT NULL CHECK (sequence >= 0),
    event_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    ts TEXT NOT NULL,
    ts_estimated INTEGER NOT NULL,
    turn INTEGER CHECK (turn >= 1),
    level TEXT NOT NULL CHECK (level IN ('DEBUG', 'INFO', 'WARN', 'ERROR')),
    tool_name TEXT,
    error_type TEXT,
    model TEXT,
    provider TEXT,
    summary TEXT NOT NULL DEFAULT '{}',
    is_chunked INTEGER NOT NULL DEFAULT 0,
    chunk_count INTEGER,
    data_size_bytes INTEGER NOT NULL DEFAULT 0,
    digest BLOB NOT NULL,
    encoding INTEGER NOT NULL,
    raw BLOB,
    data TEXT GENERATED ALWAYS AS
        (iif(encoding = 1 AND json_valid(CAST(raw AS TEXT)), CAST(raw AS TEXT) -> '$.data', NULL)) VIRTUAL,
    UNIQUE (user_id, session_id, sequence),
    UNIQUE (user_id, event_id)
);

CREATE TABLE event_chunks (
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    chunk_index INTEGER NOT NULL,
    total_chunks INTEGER NOT NULL,
    chunk_data BLOB NOT NULL,
    UNIQUE (user_id, session_id, sequence, chunk_index)
);
";

/// Refuses a file that is not ours, without touching it. A missing or empty file is fine.
pub(crate) fn check(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(file) if file.is_file() && file.len() > 0 => {}
        Ok(file) if file.is_dir() => return Err(refused(path, "is a folder")),
        _ => return Ok(()),
    }
    let described = match describe_file(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        // A process was killed before it had committed the very first page. Only a connection that writes may take
        // that back, as any program does that opens such a file.
        Err(error) if is_unfinished(&error) => describe_file(path, OpenFlags::SQLITE_OPEN_READ_WRITE),
        described => described,
    };
    let described = described.map_err(|error| storage("open")(error).with("file", path.display()))?;
    match described {
        Description::Empty | Description::Ours => Ok(()),
        Description::Other { version } => {
            let message = format!(
                "has schema version {version}, which this program does not know (it knows {SCHEMA_VERSION})"
            );
            Err(refused(path, &message))
        }
        Description::PythonLibrary => {
            Err(refused(path, "was written by the Python library amplifier_session_storage"))
        }
        Description::Foreign => Err(refused(path, "is a database of another program")),
    }
}

fn refused(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::StorageConnection, format!("{} {why}; nothing was changed", path.display()))
}

enum Description {
    Empty,
    Ours,
    Other { version: String },
    PythonLibrary,
    Foreign,
}

fn is_unfinished(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK)
}

fn describe_file(path: &Path, flags: OpenFlags) -> rusqlite::Result<Description> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(30))?;
    describe(&connection)
}

fn describe(connection: &Connection) -> rusqlite::Result<Description> {
    let has_table = |name: &str| -> rusqlite::Result<bool> {
        connection.query_one("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1)", [name], |row| {
            row.get(0)
        })
    };
    let application: i32 = connection.query_one("PRAGMA application_id", [], |row| row.get(0))?;
    let objects: i64 = connection.query_one("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application == APPLICATION_ID && objects > 0 {
        let version: Option<String> = connection
            .query_row("SELECT value FROM schema_meta WHERE key = ?1", [VERSION], |row| row.get(0))
            .optional()?;
        return Ok(match version {
            Some(version) if version == SCHEMA_VERSION.to_string() => Description::Ours,
            other => Description::Other { version: other.unwrap_or_else(|| "none".to_owned()) },
        });
    }
    Ok(match objects {
        0 if application == 0 || application == APPLICATION_ID => Description::Empty,
        _ if has_table("sessions")? && has_table("transcripts")? => Description::PythonLibrary,
        _ => Description::Foreign,
    })
}

/// Creates the tables unless another process has done so just now.
pub(crate) fn create_if_empty(connection: &mut Connection) -> Result<()> {
    create(connection).map_err(storage("create"))
}

fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    if matches!(describe(connection)?, Description::Ours) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if matches!(describe(&transaction)?, Description::Empty) {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.execute_batch(TABLES)?;
        let mut insert = transaction.prepare("INSERT INTO schema_meta (key, value) VALUES (?1, ?2)")?;
        insert.execute([VERSION, &SCHEMA_VERSION.to_string()])?;
        insert.execute([WRITER, &format!("{WRITER_NAME} {}", env!("CARGO_PKG_VERSION"))])?;
        drop(insert);
        transaction.execute(
            "INSERT INTO schema_meta (key, value) VALUES (?1, lower(hex(randomblob(16))))",
            [STORE_ID],
        )?;
    }
    transaction.commit()
}
