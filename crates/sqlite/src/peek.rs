//! Opens a file to check whether it is a store, without changing it or anything beside it.

use std::{fs::File, io::Read as _, path::Path, time::Duration};

use amplifier_session_core::{Error, Result};
use amplifier_session_sql::{
    FileCopy,
    file::{beside, holds_something, immutable_uri},
};
use rusqlite::{Connection, OpenFlags};

use crate::error::storage;

/// The logs that SQLite keeps beside a file.
pub(crate) const LOGS: [&str; 2] = ["-wal", "-journal"];

/// A file that was opened to inspect it, whatever it contains.
#[derive(Debug)]
pub(crate) struct SqlitePeek {
    pub(crate) connection: Connection,
    /// The copy that is read instead.
    _copy: Option<FileCopy>,
}

impl SqlitePeek {
    /// Opens a file. Its log is read in place if its `-shm` file, which reading requires, exists.
    pub(crate) fn open(file: &Path) -> Result<Self> {
        if holds_something(&beside(file, LOGS[0])) && !beside(file, "-shm").exists() {
            return Self::copy(file);
        }
        let connection = in_place(file).map_err(|error| unopened(file, error))?;
        Ok(Self { connection, _copy: None })
    }

    /// Opens a copy of a file.
    pub(crate) fn copy(file: &Path) -> Result<Self> {
        let copy = FileCopy::of(file, &LOGS)?;
        let connection = connect(&copy.path(), OpenFlags::SQLITE_OPEN_READ_WRITE);
        Ok(Self { connection: connection.map_err(|error| unopened(file, error))?, _copy: Some(copy) })
    }
}

pub(crate) fn unopened(file: &Path, error: rusqlite::Error) -> Error {
    storage("open")(error).with("file", file.display())
}

/// Opens a file for reading. SQLite creates no files beside a file that no process has open.
fn in_place(path: &Path) -> rusqlite::Result<Connection> {
    if is_at_rest(path)
        && let Some(uri) = immutable_uri(path)
    {
        return connect(Path::new(&uri), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI);
    }
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(Duration::from_secs(30))?;
    Ok(connection)
}

/// Whether a file uses a write-ahead log according to its header, but has no log, so that no process has it open.
///
/// Checks for the log first: if this process has the file open, closing it here would release its locks.
fn is_at_rest(path: &Path) -> bool {
    if LOGS.iter().any(|log| beside(path, log).exists()) {
        return false;
    }
    let mut head = [0; 20];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head[18..] == [2, 2]
}
