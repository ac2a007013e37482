//! Files of the Python library: told from others, read, and upgraded.

use std::{
    fmt,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use amplifier_session_core::{Error, ErrorKind, Result, backend::StorageBackend};
use amplifier_session_upgrade::{Cell, Driver, FileCopy, Found, OldDatabase, Purpose, Relation};
use async_trait::async_trait;
use rusqlite::{Connection, ErrorCode, OpenFlags, types::ValueRef};

use crate::{error::storage, schema};

/// The logs that SQLite keeps beside a file.
pub(crate) const LOGS: [&str; 2] = ["-wal", "-journal"];

/// How long an upgrade waits for another program that writes.
const PATIENCE: Duration = Duration::from_secs(5);

/// How SQLite files are upgraded.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct SqliteUpgrade;

#[async_trait]
impl Driver for SqliteUpgrade {
    fn logs(&self) -> &'static [&'static str] {
        &LOGS
    }

    fn look(&self, file: &Path) -> Result<Found> {
        schema::look(file)
    }

    fn open_old(&self, file: &Path, purpose: Purpose) -> Result<Box<dyn OldDatabase>> {
        Ok(Box::new(match purpose {
            Purpose::Look => OldSqlite::look(file)?,
            Purpose::Replace => OldSqlite::hold(file)?,
        }))
    }

    async fn open_new(&self, file: &Path) -> Result<Arc<dyn StorageBackend>> {
        Ok(Arc::new(crate::Sqlite::open(file).await?))
    }
}

/// A file that is opened to look at it, whatever is in it; or one of the Python library that is upgraded.
pub(crate) struct OldSqlite {
    pub(crate) connection: Connection,
    /// A copy that is read in its place.
    _copy: Option<FileCopy>,
}

impl OldSqlite {
    /// Opens a file so that nothing changes beside it either. Reading a log takes files that SQLite makes: where there is
    /// one, a copy is read.
    fn look(file: &Path) -> Result<Self> {
        if LOGS.iter().any(|log| holds_something(&beside(file, log))) {
            return Self::look_at_copy(file);
        }
        Self::look_in_place(file)
    }

    /// [`Self::look`] for a file that may be a store at work: its log is read where it is, as long as somebody has opened it
    /// since it was written, so that what reading takes is there.
    pub(crate) fn tell(file: &Path) -> Result<Self> {
        if holds_something(&beside(file, "-wal")) && !beside(file, "-shm").exists() {
            return Self::look_at_copy(file);
        }
        Self::look_in_place(file)
    }

    fn look_in_place(file: &Path) -> Result<Self> {
        let connection = open_to_look(file).map_err(|error| unopened(file, error))?;
        Ok(Self { connection, _copy: None })
    }

    pub(crate) fn look_at_copy(file: &Path) -> Result<Self> {
        let copy = FileCopy::of(file, &LOGS)?;
        let connection =
            open(&copy.path(), OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(|error| unopened(file, error))?;
        Ok(Self { connection, _copy: Some(copy) })
    }

    /// Opens a file that nobody else reads or writes until it is closed. Its log goes into it.
    fn hold(file: &Path) -> Result<Self> {
        let connection =
            open(file, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(|error| unopened(file, error))?;
        let hold = || {
            connection.busy_timeout(PATIENCE)?;
            let mode: String = connection.query_one("PRAGMA journal_mode = DELETE", [], |row| row.get(0))?;
            connection.execute_batch("BEGIN EXCLUSIVE")?;
            Ok(mode)
        };
        match hold() {
            Ok(mode) if mode.eq_ignore_ascii_case("delete") => {}
            Err(error) if !is_busy(&error) => return Err(unopened(file, error)),
            Ok(_) | Err(_) => {
                let message = "another program has the database open: close it and try again";
                return Err(Error::new(ErrorKind::StorageConnection, message)
                    .with("file", file.display())
                    .retryable());
            }
        }
        Ok(Self { connection, _copy: None })
    }
}

pub(crate) fn unopened(file: &Path, error: rusqlite::Error) -> Error {
    storage("open")(error).with("file", file.display())
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

impl fmt::Debug for OldSqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OldSqlite").finish_non_exhaustive()
    }
}

impl OldDatabase for OldSqlite {
    fn relations(&self) -> Result<Vec<Relation>> {
        relations(&self.connection).map_err(storage("upgrade"))
    }

    fn read(&self, sql: &str, each: &mut dyn FnMut(Vec<Cell>) -> Result<()>) -> Result<()> {
        let mut statement = self.connection.prepare(sql).map_err(storage("upgrade"))?;
        let columns = statement.column_count();
        let mut rows = statement.query([]).map_err(storage("upgrade"))?;
        while let Some(row) = rows.next().map_err(storage("upgrade"))? {
            let cells = (0..columns).map(|index| row.get_ref(index).map(cell));
            each(cells.collect::<rusqlite::Result<_>>().map_err(storage("upgrade"))?)?;
        }
        Ok(())
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Cell::Text(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

/// The tables and views of a database.
pub(crate) fn relations(connection: &Connection) -> rusqlite::Result<Vec<Relation>> {
    let names = "SELECT name, type = 'table', sql LIKE 'CREATE VIRTUAL%' FROM sqlite_schema
        WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let mut statement = connection.prepare(names)?;
    let names: Vec<(String, bool, bool)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut columns = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let relations = names.into_iter().map(|(name, is_table, is_virtual)| {
        // Views may be of tables that are gone, and virtual tables of an extension that is not here.
        let found = columns.query_map([&name], |row| row.get(0)).and_then(Iterator::collect);
        let columns = if is_table && !is_virtual { found? } else { found.unwrap_or_default() };
        Ok(Relation { name, is_table: is_table && !is_virtual, columns })
    });
    relations.collect()
}

/// Opens a file to read. One that is known to be at rest is opened so that SQLite makes no files beside it.
fn open_to_look(path: &Path) -> rusqlite::Result<Connection> {
    if is_at_rest(path)
        && let Some(uri) = at_rest_uri(path)
    {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        return open(Path::new(&uri), flags);
    }
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(Duration::from_secs(30))?;
    Ok(connection)
}

/// Whether a file has a write-ahead log by its header, and none is there: so nobody has it open.
///
/// The log is looked for first: where this process has the file open, to close it here would give up its locks.
fn is_at_rest(path: &Path) -> bool {
    if LOGS.iter().any(|log| beside(path, log).exists()) {
        return false;
    }
    let mut head = [0; 20];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head[18..] == [2, 2]
}

pub(crate) fn at_rest_uri(path: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let escaped: String = path
        .to_str()?
        .chars()
        .map(|c| if matches!(c, '%' | '?' | '#') { format!("%{:02x}", u32::from(c)) } else { c.to_string() })
        .collect();
    Some(format!("file:{escaped}?immutable=1"))
}

pub(crate) fn holds_something(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.len() > 0)
}

pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
