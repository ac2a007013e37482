//! Files of the Python library: read, and upgraded.
//!
//! A persisted HNSW index needs DuckDB's extension VSS to be written, not to be read: the file is opened for reading only,
//! and such an index is left alone. Only a log in which one was made can't be read so; a copy of both is opened for
//! writing then, which never is written to.

use std::{fmt, path::Path, sync::Arc};

use amplifier_session_core::{Error, Result, backend::StorageBackend, model::Timestamp};
use amplifier_session_upgrade::{Cell, Driver, FileCopy, Found, OldDatabase, Purpose, Relation};
use async_trait::async_trait;
use duckdb::{
    Connection, Row,
    types::{Value, ValueRef},
};

use amplifier_session_sql::Columns as _;

use crate::{
    columns::Cursor,
    connect::{self, Access},
    error::storage,
    open_files, schema,
};

/// The logs that DuckDB keeps beside a file: the others while the first is worked off.
const LOGS: [&str; 3] = [".wal", ".wal.checkpoint", ".wal.recovery"];

/// What DuckDB says of a log that it can't take up without writing.
const CANNOT_REPLAY: &str = "Failure while replaying WAL";

/// How DuckDB files are upgraded.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct DuckDbUpgrade;

#[async_trait]
impl Driver for DuckDbUpgrade {
    fn logs(&self) -> &'static [&'static str] {
        &LOGS
    }

    fn look(&self, file: &Path) -> Result<Found> {
        // Looking at one that is open here would give up its lock.
        if open_files::is_open(file) { Ok(Found::Ours) } else { schema::look(file) }
    }

    fn open_old(&self, file: &Path, _: Purpose) -> Result<Box<dyn OldDatabase>> {
        // Reading keeps those away who would write.
        Ok(Box::new(OldDuckDb::open(file)?))
    }

    async fn open_new(&self, file: &Path) -> Result<Arc<dyn StorageBackend>> {
        Ok(Arc::new(crate::DuckDb::open(file, Access::ReadWrite).await?))
    }
}

/// A file that is opened to look at it, whatever is in it.
pub(crate) struct OldDuckDb {
    pub(crate) connection: Connection,
    /// A copy that is read in its place.
    _copy: Option<FileCopy>,
}

impl OldDuckDb {
    pub(crate) fn open(file: &Path) -> Result<Self> {
        match connect::open(file, Access::ReadOnly) {
            Ok(connection) => Ok(Self { connection, _copy: None }),
            Err(error) if told(&error).contains(CANNOT_REPLAY) => Self::open_copy(file),
            Err(error) => Err(error),
        }
    }

    fn open_copy(file: &Path) -> Result<Self> {
        let copy = FileCopy::of(file, &LOGS)?;
        let connection = connect::open(&copy.path(), Access::ReadWrite)?;
        // Writing it would need the extension.
        let stays = "PRAGMA disable_checkpoint_on_shutdown; PRAGMA wal_autocheckpoint = '1TB'";
        connection.execute_batch(stays).map_err(storage("open"))?;
        Ok(Self { connection, _copy: Some(copy) })
    }
}

fn told(error: &Error) -> String {
    std::error::Error::source(error).map_or_else(String::new, ToString::to_string)
}

impl fmt::Debug for OldDuckDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OldDuckDb").finish_non_exhaustive()
    }
}

impl OldDatabase for OldDuckDb {
    fn relations(&self) -> Result<Vec<Relation>> {
        relations(&self.connection).map_err(storage("upgrade"))
    }

    fn read(&self, sql: &str, each: &mut dyn FnMut(Vec<Cell>) -> Result<()>) -> Result<()> {
        let mut statement = self.connection.prepare(sql).map_err(storage("upgrade"))?;
        let mut rows = statement.query([]).map_err(storage("upgrade"))?;
        let columns = rows.as_ref().map_or(0, |statement| statement.column_count());
        while let Some(row) = rows.next().map_err(storage("upgrade"))? {
            each((0..columns).map(|index| cell(row, index)).collect::<Result<_>>()?)?;
        }
        Ok(())
    }
}

fn cell(row: &Row<'_>, index: usize) -> Result<Cell> {
    let value = row.get_ref(index).map_err(storage("upgrade"))?;
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Boolean(yes) => Cell::Integer(yes.into()),
        ValueRef::TinyInt(number) => Cell::Integer(number.into()),
        ValueRef::SmallInt(number) => Cell::Integer(number.into()),
        ValueRef::Int(number) => Cell::Integer(number.into()),
        ValueRef::BigInt(number) => Cell::Integer(number),
        ValueRef::HugeInt(number) => i64::try_from(number).map_or(Cell::Null, Cell::Integer),
        ValueRef::UTinyInt(number) => Cell::Integer(number.into()),
        ValueRef::USmallInt(number) => Cell::Integer(number.into()),
        ValueRef::UInt(number) => Cell::Integer(number.into()),
        ValueRef::UBigInt(number) => i64::try_from(number).map_or(Cell::Null, Cell::Integer),
        ValueRef::Float(number) => Cell::Real(number.into()),
        ValueRef::Double(number) => Cell::Real(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Cell::Text(String::from_utf8_lossy(bytes).into_owned())
        }
        ValueRef::Timestamp(unit, value) => time(unit.to_micros(value)),
        ValueRef::Date32(days) => time(i64::from(days).saturating_mul(86_400_000_000)),
        ValueRef::Array(..) | ValueRef::List(..) => {
            let mut vector = Vec::new();
            match Cursor(row).read_vector(index, &mut vector) {
                Ok(()) => Cell::Vector(vector),
                Err(_) => list(value.to_owned()),
            }
        }
        _ => Cell::Null,
    })
}

/// A point in time; `infinity` and what no calendar has is none.
fn time(micros: i64) -> Cell {
    let time = Timestamp::from_micros(micros);
    if Timestamp::parse(&time.to_string()).is_ok() { Cell::Time(time) } else { Cell::Null }
}

/// A list of something else than single floats: of doubles, or of texts, which are JSON then.
fn list(value: Value) -> Cell {
    let (Value::List(items) | Value::Array(items)) = value else { return Cell::Null };
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
        return Cell::Vector(vector);
    }
    // What is neither is shown as what it is not, and so left out.
    match items.into_iter().map(text).collect::<Option<Vec<_>>>() {
        Some(texts) => Cell::Text(serde_json::json!(texts).to_string()),
        None => Cell::Text("?".to_owned()),
    }
}

/// The tables and views of a database.
pub(crate) fn relations(connection: &Connection) -> duckdb::Result<Vec<Relation>> {
    let sql = "SELECT t.table_name, t.table_type = 'BASE TABLE', c.column_name
        FROM information_schema.tables t LEFT JOIN information_schema.columns c
            ON c.table_catalog = t.table_catalog AND c.table_schema = t.table_schema AND c.table_name = t.table_name
        WHERE t.table_catalog = current_database() AND t.table_schema = 'main'
        ORDER BY t.table_name, c.ordinal_position";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut relations: Vec<Relation> = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, is_table, column): (String, bool, Option<String>) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        match relations.last_mut().filter(|last| last.name == name) {
            Some(last) => last.columns.extend(column),
            None => relations.push(Relation { name, is_table, columns: column.into_iter().collect() }),
        }
    }
    Ok(relations)
}
