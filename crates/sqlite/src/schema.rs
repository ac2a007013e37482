//! What makes a file ours, and how it is made or brought up.

use std::path::Path;

use amplifier_session_core::{
    Result,
    backend::meta::{SCHEMA_VERSION, STORE_ID, VERSION, WRITER, WRITER_NAME},
};
use amplifier_session_sql::{
    deletions,
    file::refused,
    python::{Origin, SQLITE_TABLES, Tables},
};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use crate::{
    error::storage,
    peek::{Peek, unopened},
    tables::{LAYOUT, TABLES, UPGRADES, indexes, views},
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
    let described = match describe(&Peek::open(path)?.connection) {
        // A process was killed in the middle of a transaction. To roll that back would change the file.
        Err(error) if is_unfinished(&error) => describe(&Peek::copy(path)?.connection),
        described => described,
    };
    accept(path, &described.map_err(|error| unopened(path, error))?)
}

fn accept(path: &Path, described: &Description) -> Result<()> {
    let unknown = |what: &str, found: &str, known: &str| {
        Err(refused(
            path,
            &format!("has {what} {found}, which this program does not know (it knows {known})"),
        ))
    };
    match described {
        Description::Empty | Description::Ours { layout: 0..=LAYOUT } => Ok(()),
        Description::Ours { layout } => unknown("layout", &layout.to_string(), &LAYOUT.to_string()),
        Description::Other { version } => unknown("schema version", version, &SCHEMA_VERSION.to_string()),
        Description::NotOurs(origin) => Err(origin.refusal(path)),
    }
}

/// What a file holds that is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Nothing,
    Store,
    /// A store that has to be upgraded before it is read.
    EarlierLayout,
}

/// What an open file holds; an error where that is not ours.
pub(crate) fn holds(path: &Path, connection: &Connection) -> Result<Holds> {
    let described = describe(connection).map_err(|error| unopened(path, error))?;
    accept(path, &described)?;
    Ok(match described {
        Description::Ours { layout: LAYOUT } => Holds::Store,
        Description::Ours { .. } => Holds::EarlierLayout,
        _ => Holds::Nothing,
    })
}

enum Description {
    Empty,
    Ours { layout: i32 },
    Other { version: String },
    NotOurs(Origin),
}

fn is_unfinished(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK)
}

fn describe(connection: &Connection) -> rusqlite::Result<Description> {
    let application: i32 = connection.query_one("PRAGMA application_id", [], |row| row.get(0))?;
    let objects: i64 = connection.query_one("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let version = || {
        let sql = "SELECT CAST(value AS TEXT) FROM schema_meta WHERE key = ?1";
        connection.query_row(sql, [VERSION], |row| row.get::<_, Option<String>>(0)).optional()
    };
    if application == APPLICATION_ID && objects > 0 {
        return Ok(match version()?.flatten() {
            Some(version) if version == SCHEMA_VERSION.to_string() => {
                Description::Ours { layout: layout(connection)? }
            }
            other => Description::Other { version: other.unwrap_or_else(|| "none".to_owned()) },
        });
    }
    if objects == 0 && (application == 0 || application == APPLICATION_ID) {
        return Ok(Description::Empty);
    }
    let mut columns = connection.prepare(SQLITE_TABLES)?;
    let columns = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let tables = columns.collect::<rusqlite::Result<Tables>>()?;
    let has_meta = tables.has("schema_meta", "key") && tables.has("schema_meta", "value");
    let version = if has_meta { version()?.flatten() } else { None };
    Ok(Description::NotOurs(Origin::of(&tables, None, version.as_deref())))
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
            transaction.execute_batch(&indexes())?;
            transaction.execute_batch(&views())?;
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
    transaction.execute_batch(deletions::TABLE)?;
    transaction.execute_batch(&indexes())?;
    transaction.execute_batch(&views())?;
    let mut insert = transaction.prepare("INSERT INTO schema_meta (key, value) VALUES (?1, ?2)")?;
    insert.execute([VERSION, &SCHEMA_VERSION.to_string()])?;
    insert.execute([WRITER, &format!("{WRITER_NAME} {}", env!("CARGO_PKG_VERSION"))])?;
    drop(insert);
    let store_id = "INSERT INTO schema_meta (key, value) VALUES (?1, lower(hex(randomblob(16))))";
    transaction.execute(store_id, [STORE_ID])?;
    Ok(())
}
