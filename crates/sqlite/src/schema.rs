//! Recognising, creating and upgrading a file.

use std::path::Path;

use amplifier_session_core::{
    Result,
    backend::meta::{SCHEMA_VERSION, STORE_ID, VERSION, WRITER, WRITER_NAME},
};
use amplifier_session_sql::{
    Contents, deletions,
    file::refused,
    python::{DatabaseOrigin, DatabaseTables, SQLITE_TABLES},
    superseded,
};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use crate::{
    error::storage,
    peek::{SqlitePeek, unopened},
    tables::{LAYOUT, OLDEST_LAYOUT, TABLES, UPGRADES, indexes, removals, turn_tables, views},
};

/// Written into the file's header (`PRAGMA application_id`): `AmSs`.
pub(crate) const APPLICATION_ID: i32 = 0x416d_5373;

/// Rejects a file that is not a store, without changing it. Accepts a missing or empty file.
pub(crate) fn check(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(file) if file.is_file() && file.len() > 0 => {}
        Ok(file) if file.is_dir() => return Err(refused(path, "is a folder")),
        _ => return Ok(()),
    }
    let contents = match contents(&SqlitePeek::open(path)?.connection) {
        // A process was killed during a transaction. Rolling it back would change the file.
        Err(error) if is_unfinished(&error) => contents(&SqlitePeek::copy(path)?.connection),
        contents => contents,
    };
    contents.map_err(|error| unopened(path, error))?.accept(path, OLDEST_LAYOUT, LAYOUT)
}

/// The contents of an open file. Fails if the file is neither empty nor a store.
pub(crate) fn accepted(path: &Path, connection: &Connection) -> Result<Contents> {
    let contents = contents(connection).map_err(|error| unopened(path, error))?;
    contents.accept(path, OLDEST_LAYOUT, LAYOUT)?;
    Ok(contents)
}

fn is_unfinished(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK)
}

fn contents(connection: &Connection) -> rusqlite::Result<Contents> {
    let application: i32 = connection.query_one("PRAGMA application_id", [], |row| row.get(0))?;
    let objects: i64 = connection.query_one("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let version = || {
        let sql = "SELECT CAST(value AS TEXT) FROM schema_meta WHERE key = ?1";
        connection.query_row(sql, [VERSION], |row| row.get::<_, Option<String>>(0)).optional()
    };
    if application == APPLICATION_ID && objects > 0 {
        return Ok(Contents::of_store(version()?.flatten(), layout(connection)?));
    }
    if objects == 0 && (application == 0 || application == APPLICATION_ID) {
        return Ok(Contents::Empty);
    }
    let mut columns = connection.prepare(SQLITE_TABLES)?;
    let columns = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let tables = columns.collect::<rusqlite::Result<DatabaseTables>>()?;
    let has_meta = tables.has("schema_meta", "key") && tables.has("schema_meta", "value");
    let version = if has_meta { version()?.flatten() } else { None };
    Ok(Contents::Other(DatabaseOrigin::of(&tables, None, version.as_deref())))
}

fn layout(connection: &Connection) -> rusqlite::Result<Option<usize>> {
    let layout: i64 = connection.query_one("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(usize::try_from(layout).ok())
}

/// Turns an empty file into a store, and upgrades an earlier layout, unless another process has just done so.
pub(crate) fn prepare(connection: &mut Connection) -> Result<()> {
    create_or_upgrade(connection).map_err(storage("create"))
}

fn create_or_upgrade(connection: &mut Connection) -> rusqlite::Result<()> {
    if matches!(contents(connection)?, Contents::Store { layout: Some(LAYOUT) }) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match contents(&transaction)? {
        Contents::Empty => create(&transaction)?,
        Contents::Store { layout: Some(layout @ OLDEST_LAYOUT..) } => {
            for upgrade in UPGRADES.iter().skip(layout - OLDEST_LAYOUT) {
                transaction.execute_batch(&upgrade())?;
            }
            transaction.execute_batch(&indexes())?;
            transaction.execute_batch(&views())?;
            transaction.pragma_update(None, "user_version", LAYOUT as i64)?;
        }
        _ => {}
    }
    transaction.commit()
}

fn create(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", LAYOUT as i64)?;
    transaction.execute_batch(TABLES)?;
    transaction.execute_batch(deletions::TABLE)?;
    transaction.execute_batch(superseded::TABLE)?;
    transaction.execute_batch(&removals())?;
    transaction.execute_batch(&turn_tables())?;
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
