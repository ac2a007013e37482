//! Reads SQLite files.

use std::path::Path;

use amplifier_session_core::{Error, ErrorKind, Result};
use amplifier_session_sql::{
    FileCopy,
    file::{beside, holds_something, immutable_uri},
    python::{DatabaseTables, SQLITE_TABLES},
};
use rusqlite::{Connection, OpenFlags, types::ValueRef};

use crate::database::{OldCell, OldDatabase};

/// The logs that SQLite keeps beside a file.
pub(crate) const LOGS: [&str; 2] = ["-wal", "-journal"];

#[derive(Debug)]
struct OldSqlite {
    connection: Connection,
    /// The copy that is read instead.
    _copy: Option<FileCopy>,
}

/// Opens a file. If it has a log, reading it would create or change files, so a copy is read.
pub(crate) fn open(file: &Path) -> Result<Box<dyn OldDatabase>> {
    let has_log = LOGS.iter().any(|log| holds_something(&beside(file, log)));
    let copy = if has_log { Some(FileCopy::of(file, &LOGS)?) } else { None };
    let opened = match (&copy, immutable_uri(file)) {
        (Some(copy), _) => Connection::open_with_flags(copy.path(), OpenFlags::SQLITE_OPEN_READ_WRITE),
        (None, Some(uri)) => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(uri, flags)
        }
        (None, None) => Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY),
    };
    let connection = opened.map_err(|error| failed(error).with("file", file.display()))?;
    Ok(Box::new(OldSqlite { connection, _copy: copy }))
}

impl OldDatabase for OldSqlite {
    fn tables(&self) -> Result<DatabaseTables> {
        let mut columns = self.connection.prepare(SQLITE_TABLES).map_err(failed)?;
        let columns = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
        columns.collect::<rusqlite::Result<_>>().map_err(failed)
    }

    fn read(&self, sql: &str, each: &mut dyn FnMut(Vec<OldCell>) -> Result<()>) -> Result<()> {
        let mut statement = self.connection.prepare(sql).map_err(failed)?;
        let columns = statement.column_count();
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let cells = (0..columns).map(|index| row.get_ref(index).map(cell));
            each(cells.collect::<rusqlite::Result<_>>().map_err(failed)?)?;
        }
        Ok(())
    }
}

fn cell(value: ValueRef<'_>) -> OldCell {
    match value {
        ValueRef::Null => OldCell::Null,
        ValueRef::Integer(number) => OldCell::Integer(number),
        ValueRef::Real(number) => OldCell::Real(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            OldCell::Text(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

fn failed(source: rusqlite::Error) -> Error {
    let message = format!("can't read the old database: {source}");
    Error::new(ErrorKind::StorageIo, message).with_operation("upgrade").with_source(source)
}
