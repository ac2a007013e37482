//! Reads DuckDB files.
//!
//! A file with an HNSW index needs DuckDB's extension VSS only for writing, not for reading. Only a log in which such
//! an index was created cannot be read in place. In this case, a copy of both is opened for writing, but never written.

use std::path::Path;

use amplifier_session_core::{Error, ErrorKind, Result, model::Timestamp};
use amplifier_session_sql::{
    FileCopy,
    python::{DUCKDB_TABLES, DatabaseTables},
};
use duckdb::{
    AccessMode, Config, Connection, Row,
    arrow::array::{Array as _, Float32Array},
    types::{ListType, Value, ValueRef},
};

use crate::database::{OldCell, OldDatabase};

/// The logs that DuckDB keeps beside a file. The last two exist while it processes the first.
pub(crate) const LOGS: [&str; 3] = [".wal", ".wal.checkpoint", ".wal.recovery"];

/// DuckDB's message about a log that it can't replay without writing.
const CANNOT_REPLAY: &str = "Failure while replaying WAL";

#[derive(Debug)]
struct OldDuckDb {
    connection: Connection,
    /// The copy that is read instead.
    _copy: Option<FileCopy>,
}

/// Opens a file. Until it is closed, no process can write to it.
pub(crate) fn open(file: &Path) -> Result<Box<dyn OldDatabase>> {
    let (connection, copy) = match connect(file, AccessMode::ReadOnly) {
        Ok(connection) => (connection, None),
        Err(error) if error.to_string().contains(CANNOT_REPLAY) => {
            let copy = FileCopy::of(file, &LOGS)?;
            let connection =
                connect(&copy.path(), AccessMode::ReadWrite).map_err(|error| unopened(file, error))?;
            // Writing to it would require the extension.
            let no_writes = "PRAGMA disable_checkpoint_on_shutdown; PRAGMA wal_autocheckpoint = '1TB'";
            connection.execute_batch(no_writes).map_err(failed)?;
            (connection, Some(copy))
        }
        Err(error) => return Err(unopened(file, error)),
    };
    Ok(Box::new(OldDuckDb { connection, _copy: copy }))
}

fn connect(file: &Path, access: AccessMode) -> duckdb::Result<Connection> {
    let config = Config::default()
        .access_mode(access)?
        .max_memory("2GB")?
        // Nothing is written beside the file, and nothing is downloaded.
        .with("temp_directory", "")?
        .with("autoinstall_known_extensions", "false")?
        .with("autoload_known_extensions", "false")?;
    Connection::open_with_flags(file, config)
}

impl OldDatabase for OldDuckDb {
    fn tables(&self) -> Result<DatabaseTables> {
        let mut columns = self.connection.prepare(DUCKDB_TABLES).map_err(failed)?;
        let columns = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
        columns.collect::<duckdb::Result<_>>().map_err(failed)
    }

    fn read(&self, sql: &str, each: &mut dyn FnMut(Vec<OldCell>) -> Result<()>) -> Result<()> {
        let mut statement = self.connection.prepare(sql).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        let columns = rows.as_ref().map(|statement| statement.column_count());
        debug_assert!(columns.is_some(), "rows that were not read yet have their statement");
        let columns = columns.unwrap_or_default();
        while let Some(row) = rows.next().map_err(failed)? {
            each((0..columns).map(|index| cell(row, index)).collect::<Result<_>>()?)?;
        }
        Ok(())
    }
}

fn cell(row: &Row<'_>, index: usize) -> Result<OldCell> {
    Ok(match row.get_ref(index).map_err(failed)? {
        ValueRef::Boolean(yes) => OldCell::Integer(yes.into()),
        ValueRef::TinyInt(number) => OldCell::Integer(number.into()),
        ValueRef::SmallInt(number) => OldCell::Integer(number.into()),
        ValueRef::Int(number) => OldCell::Integer(number.into()),
        ValueRef::BigInt(number) => OldCell::Integer(number),
        ValueRef::HugeInt(number) => i64::try_from(number).map_or(OldCell::Null, OldCell::Integer),
        ValueRef::UTinyInt(number) => OldCell::Integer(number.into()),
        ValueRef::USmallInt(number) => OldCell::Integer(number.into()),
        ValueRef::UInt(number) => OldCell::Integer(number.into()),
        ValueRef::UBigInt(number) => i64::try_from(number).map_or(OldCell::Null, OldCell::Integer),
        ValueRef::Float(number) => OldCell::Real(number.into()),
        ValueRef::Double(number) => OldCell::Real(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            OldCell::Text(String::from_utf8_lossy(bytes).into_owned())
        }
        ValueRef::Timestamp(unit, value) => time(unit.to_micros(value)),
        ValueRef::Date32(days) => time(i64::from(days).saturating_mul(86_400_000_000)),
        value @ (ValueRef::Array(..) | ValueRef::List(..)) => list(value),
        _ => OldCell::Null,
    })
}

/// A point in time. `infinity` and times that are not on the calendar become `NULL`.
fn time(micros: i64) -> OldCell {
    let time = Timestamp::from_micros(micros);
    if Timestamp::parse(&time.to_string()).is_ok() { OldCell::Time(time) } else { OldCell::Null }
}

/// A list: of floats, of doubles, or of texts, which becomes JSON.
fn list(value: ValueRef<'_>) -> OldCell {
    let items = match value {
        ValueRef::Array(arrays, at) => Some(arrays.value(at)),
        ValueRef::List(ListType::Regular(lists), at) => Some(lists.value(at)),
        _ => None,
    };
    if let Some(floats) = items.as_ref().and_then(|items| items.as_any().downcast_ref::<Float32Array>()) {
        return OldCell::Vector(floats.values().to_vec());
    }
    let (Value::List(items) | Value::Array(items)) = value.to_owned() else { return OldCell::Null };
    let float = |item: &Value| match item {
        Value::Double(number) => Some(*number as f32),
        _ => None,
    };
    let text = |item: Value| match item {
        Value::Text(text) => Some(text),
        _ => None,
    };
    if let Some(vector) = items.iter().map(float).collect::<Option<Vec<_>>>().filter(|list| !list.is_empty())
    {
        return OldCell::Vector(vector);
    }
    // Anything else is not a vector, which this text shows.
    match items.into_iter().map(text).collect::<Option<Vec<_>>>() {
        Some(texts) => OldCell::Text(serde_json::json!(texts).to_string()),
        None => OldCell::Text("?".to_owned()),
    }
}

fn unopened(file: &Path, source: duckdb::Error) -> Error {
    let text = source.to_string();
    // It names the process that has the file open.
    let (message, _) = text.split_once(". See also").unwrap_or((&text, ""));
    let message = format!("can't open the old database: {}", message.lines().next().unwrap_or_default());
    Error::new(ErrorKind::StorageConnection, message).with("file", file.display()).with_source(source)
}

fn failed(source: duckdb::Error) -> Error {
    let text = source.to_string();
    let message = format!("can't read the old database: {}", text.lines().next().unwrap_or_default());
    Error::new(ErrorKind::StorageIo, message).with_operation("upgrade").with_source(source)
}
