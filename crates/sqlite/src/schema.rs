//! What makes a file ours, and how it is made or brought up.

use std::path::Path;

use amplifier_session_core::{
    Result,
    backend::meta::{SCHEMA_VERSION, STORE_ID, VERSION, WRITER, WRITER_NAME},
};
use amplifier_session_sql::file::refused;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior};

use crate::{
    error::storage,
    tables::{INDEXES, LAYOUT, TABLES, UPGRADES, VIEWS},
};

/// Written into the file's header (`PRAGMA application_id`): `AmSs`.
const APPLICATION_ID: i32 = 0x416d_5373;

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
        Description::Empty | Description::Ours { layout: 0..=LAYOUT } => Ok(()),
        Description::Ours { layout } => {
            let message =
                format!("has layout {layout}, which this program does not know (it knows {LAYOUT})");
            Err(refused(path, &message))
        }
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

enum Description {
    Empty,
    Ours { layout: i32 },
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
            Some(version) if version == SCHEMA_VERSION.to_string() => {
                Description::Ours { layout: layout(connection)? }
            }
            other => Description::Other { version: other.unwrap_or_else(|| "none".to_owned()) },
        });
    }
    Ok(match objects {
        0 if application == 0 || application == APPLICATION_ID => Description::Empty,
        _ if has_table("sessions")? && has_table("transcripts")? => Description::PythonLibrary,
        _ => Description::Foreign,
    })
}

fn layout(connection: &Connection) -> rusqlite::Result<i32> {
    connection.query_one("PRAGMA user_version", [], |row| row.get(0))
}

/// Makes an empty file a store and brings an earlier layout up, unless another process has done so just now.
pub(crate) fn prepare(connection: &mut Connection) -> Result<()> {
    create_or_upgrade(connection).map_err(storage("create"))
}

fn create_or_upgrade(connection: &mut Connection) -> rusqlite::Result<()> {
    if matches!(describe(connection)?, Description::Ours { layout: LAYOUT }) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match describe(&transaction)? {
        Description::Empty => create(&transaction)?,
        Description::Ours { layout } => {
            for upgrade in UPGRADES.iter().skip(layout as usize) {
                transaction.execute_batch(upgrade)?;
            }
            transaction.execute_batch(INDEXES)?;
            transaction.execute_batch(VIEWS)?;
            transaction.pragma_update(None, "user_version", LAYOUT)?;
        }
        _ => {}
    }
    transaction.commit()
}

fn create(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", LAYOUT)?;
    transaction.execute_batch(TABLES)?;
    transaction.execute_batch(INDEXES)?;
    transaction.execute_batch(VIEWS)?;
    let mut insert = transaction.prepare("INSERT INTO schema_meta (key, value) VALUES (?1, ?2)")?;
    insert.execute([VERSION, &SCHEMA_VERSION.to_string()])?;
    insert.execute([WRITER, &format!("{WRITER_NAME} {}", env!("CARGO_PKG_VERSION"))])?;
    drop(insert);
    let store_id = "INSERT INTO schema_meta (key, value) VALUES (?1, lower(hex(randomblob(16))))";
    transaction.execute(store_id, [STORE_ID])?;
    Ok(())
}
