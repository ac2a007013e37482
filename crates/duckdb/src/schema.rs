//! Recognising, creating and upgrading a file.

use std::{fs::File, io::Read as _, path::Path};

use amplifier_session_core::{
    Result,
    backend::meta::{SCHEMA_VERSION, STORE_ID, VERSION, WRITER, WRITER_NAME},
};
use amplifier_session_sql::{
    Contents, deletions,
    file::refused,
    python::{DUCKDB_TABLES, DatabaseOrigin, DatabaseTables},
    quote, superseded,
};
use duckdb::{Connection, OptionalExt, params};

use crate::{
    connect::{self, Access},
    error::storage,
    peek::Peek,
    tables::{self, LAYOUT, LAYOUT_KEY, OLDEST_LAYOUT, TABLES, UPGRADES},
};

/// The bytes of a DuckDB file after the first eight.
const MAGIC: &[u8] = b"DUCK";

/// Rejects a file that is not a store, as far as that can be determined without changing it, before DuckDB opens it:
/// DuckDB would open a SQLite file with an extension. Returns whether there is a database.
///
/// This process must not have it open: closing any handle to a file releases the locks of the process on it.
pub(crate) fn check(path: &Path) -> Result<bool> {
    if !exists(path)? {
        return Ok(false);
    }
    if std::fs::metadata(connect::log_path(path)).is_ok_and(|log| log.len() > 0) {
        // Opening it for writing would first replay the log, which changes the file.
        let database = Peek::open(path)?;
        match contents(&database.connection).map_err(storage("open"))? {
            Contents::Empty => return Err(refused(path, "contains no sessions")),
            contents => contents.accept(path, OLDEST_LAYOUT, LAYOUT)?,
        }
    }
    Ok(true)
}

fn exists(path: &Path) -> Result<bool> {
    if path.to_string_lossy().contains('?') {
        let why = "has a question mark in its path: DuckDB would put the log of such a file elsewhere";
        return Err(refused(path, why));
    }
    match std::fs::metadata(path) {
        Ok(file) if file.is_dir() => return Err(refused(path, "is a folder")),
        Ok(file) if file.len() > 0 => {}
        _ => return Ok(false),
    }
    let mut head = [0; 12];
    let is_duckdb =
        File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok_and(|()| head[8..] == *MAGIC);
    if is_duckdb { Ok(true) } else { Err(refused(path, "is not a DuckDB database")) }
}

/// Rejects a database that is not a store, without changing it. If it may be written, turns an empty one into a store,
/// and upgrades an earlier layout.
pub(crate) fn accept(path: &Path, connection: &Connection, access: Access) -> Result<()> {
    let contents = contents(connection).map_err(storage("open"))?;
    contents.accept(path, OLDEST_LAYOUT, LAYOUT)?;
    let can_write = access == Access::ReadWrite;
    match contents {
        Contents::Store { layout: Some(LAYOUT) } => Ok(()),
        Contents::Store { layout: Some(layout) } if can_write => upgrade(connection, layout),
        Contents::Store { layout } => {
            let layout = layout.unwrap_or_default();
            let why = format!(
                "has layout {layout} of an earlier version: open it for writing once, for example with `sync`"
            );
            Err(refused(path, &why))
        }
        _ if can_write => create(connection),
        _ => Err(refused(path, "contains no sessions")),
    }
}

/// Removes indexes of extensions, such as an HNSW index that somebody created: without the extension, no row of its
/// table could be written, and the next checkpoint would shut down the database.
pub(crate) fn drop_indexes_of_others(connection: &Connection) -> duckdb::Result<()> {
    let sql = "SELECT schema_name, index_name FROM duckdb_indexes()
        WHERE database_name = current_database() AND upper(sql) LIKE '% USING %' AND upper(sql) NOT LIKE '% USING ART%'";
    let mut statement = connection.prepare(sql)?;
    let found: Vec<(String, String)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<duckdb::Result<_>>()?;
    for (schema, index) in found {
        tracing::warn!(index, "removing an index that needs a DuckDB extension from the store");
        let (schema, index) = (quote::name(&schema), quote::name(&index));
        connection.execute_batch(&format!("DROP INDEX {schema}.{index}; CHECKPOINT"))?;
    }
    Ok(())
}

fn contents(connection: &Connection) -> duckdb::Result<Contents> {
    let has_table = |name: &str| {
        let sql = "SELECT count(*) > 0 FROM duckdb_tables()
            WHERE database_name = current_database() AND schema_name = 'main' AND table_name = ?1";
        connection.query_row(sql, [name], |row| row.get::<_, bool>(0))
    };
    let is_empty = "SELECT count(*) = 0 FROM (
            SELECT table_oid FROM duckdb_tables() WHERE database_name = current_database()
            UNION ALL
            SELECT view_oid FROM duckdb_views() WHERE database_name = current_database() AND NOT internal
        )";
    if connection.query_row(is_empty, [], |row| row.get(0))? {
        return Ok(Contents::Empty);
    }
    let is_ours = has_table("schema_meta")?
        && entry(connection, WRITER)?.is_some_and(|writer| writer.starts_with(WRITER_NAME));
    if is_ours {
        let layout = entry(connection, LAYOUT_KEY)?.and_then(|layout| layout.parse().ok());
        return Ok(Contents::of_store(entry(connection, VERSION)?, layout));
    }
    let version = if has_table("schema_meta")? { entry(connection, VERSION)? } else { None };
    let mut columns = connection.prepare(DUCKDB_TABLES)?;
    let columns = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let tables = columns.collect::<duckdb::Result<DatabaseTables>>()?;
    Ok(Contents::Other(DatabaseOrigin::of(&tables, None, version.as_deref())))
}

fn entry(connection: &Connection, key: &str) -> duckdb::Result<Option<String>> {
    // A table with this name of another program may have other columns. The database is not a store then.
    let sql = "SELECT CAST(value AS VARCHAR) FROM schema_meta WHERE CAST(key AS VARCHAR) = ?1";
    match connection.prepare(sql) {
        Ok(mut statement) => Ok(statement.query_row([key], |row| row.get(0)).optional()?.flatten()),
        Err(_) => Ok(None),
    }
}

/// Upgrades a database with an earlier layout. An interrupted upgrade is repeated.
fn upgrade(connection: &Connection, layout: usize) -> Result<()> {
    let upgrade = || {
        // These tables were added without a step of the layout.
        connection.execute_batch(deletions::TABLE)?;
        connection.execute_batch(superseded::TABLE)?;
        if connection.query_row(tables::HAS_EARLIER_TURNS, [], |row| row.get(0))? {
            connection.execute_batch(&tables::carry_over_turns())?;
        }
        connection.execute_batch(&tables::turn_tables())?;
        let steps = UPGRADES.iter().skip(layout - OLDEST_LAYOUT);
        steps.map(|step| step()).try_for_each(|step| connection.execute_batch(&step))?;
        connection.execute_batch(&tables::views())?;
        let sql = "UPDATE schema_meta SET value = ?2 WHERE key = ?1";
        connection.execute(sql, params![LAYOUT_KEY, LAYOUT.to_string()])?;
        Ok(())
    };
    upgrade().map_err(storage("create"))
}

/// Creates the tables of an empty database, in one transaction.
pub(crate) fn create(connection: &Connection) -> Result<()> {
    let create = || {
        let transaction = connection.unchecked_transaction()?;
        transaction.execute_batch(TABLES)?;
        transaction.execute_batch(deletions::TABLE)?;
        transaction.execute_batch(superseded::TABLE)?;
        transaction.execute_batch(&tables::removals())?;
        transaction.execute_batch(&tables::turn_tables())?;
        transaction.execute_batch(&tables::other_vectors())?;
        transaction.execute_batch(&tables::vectors(None))?;
        transaction.execute_batch(&tables::views())?;
        let mut insert = transaction.prepare("INSERT INTO schema_meta (key, value) VALUES (?1, ?2)")?;
        insert.execute(params![VERSION, SCHEMA_VERSION.to_string()])?;
        insert.execute(params![WRITER, format!("{WRITER_NAME} {}", env!("CARGO_PKG_VERSION"))])?;
        insert.execute(params![LAYOUT_KEY, LAYOUT.to_string()])?;
        drop(insert);
        let store_id =
            "INSERT INTO schema_meta (key, value) VALUES (?1, replace(CAST(uuid() AS VARCHAR), '-', ''))";
        transaction.execute(store_id, [STORE_ID])?;
        transaction.commit()
    };
    create().map_err(storage("create"))
}
