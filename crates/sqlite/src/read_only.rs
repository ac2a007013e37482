//! Files that can only be read, because the file, its folder or the file system is read-only.
//!
//! SQLite reads a file with a write-ahead log through a third file, `-shm`, which it creates. If it cannot, there are
//! three ways (<https://www.sqlite.org/wal.html#readonly>):
//!
//! | what exists | how the file is opened |
//! | --- | --- |
//! | a log and its `-shm` | as usual: somebody has it open, or left both |
//! | a log that is not empty | without locks, on a connection that keeps the index of the log in its own memory, so that rows in the log are read too |
//! | no log, or an empty one | as a file that nobody changes (`immutable`) |
//!
//! The last two take no locks. So the files are checked before and after each read, and if one has changed, the result
//! is discarded. A file with an earlier layout is read from a private copy, which is upgraded.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use amplifier_session_core::{Error, ErrorKind, Result};
use amplifier_session_sql::{
    Contents, FileCopy,
    file::{beside, holds_something, immutable_uri, refused, refuses_writes},
};
use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::{
    connect::{READER_CACHE_KIB, configure_to_read, connect},
    peek::{LOGS, unopened},
    schema,
    tables::LAYOUT,
};

const READ_ONLY: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// A store that can only be read.
#[derive(Debug)]
pub(crate) struct ReadOnlyStore {
    path: PathBuf,
    reason: String,
    /// The upgraded copy of a file with an earlier layout.
    copy: Option<FileCopy>,
}

/// A connection to such a store.
#[derive(Debug)]
pub(crate) struct ReadOnlyConnection {
    pub(crate) connection: Connection,
    /// The files when the connection was opened, if it takes no locks.
    seen: Option<FilesSeen>,
}

/// The length and the time of the last change of the file and of its log.
#[derive(Debug, PartialEq, Eq)]
struct FilesSeen([Option<(u64, Option<SystemTime>)>; 2]);

impl ReadOnlyStore {
    /// Opens a file that can only be read, for this reason.
    pub(crate) fn open(path: &Path, reason: String) -> Result<(Self, ReadOnlyConnection)> {
        let mut store = Self { path: path.to_owned(), reason, copy: None };
        let opened = store.connect_in_place()?;
        match schema::accepted(path, &opened.connection)? {
            Contents::Store { layout: Some(LAYOUT) } => Ok((store, opened)),
            Contents::Store { .. } => {
                drop(opened);
                let copy = FileCopy::of(path, &LOGS)?;
                schema::prepare(&mut connect(&copy.path(), READER_CACHE_KIB)?)?;
                store.copy = Some(copy);
                store.reason += "; its layout is from an earlier version, so an upgraded copy is read";
                let opened = store.connect()?;
                Ok((store, opened))
            }
            _ => Err(refused(path, "contains no sessions and can't be written")),
        }
    }

    /// The reason why it cannot be written.
    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }

    /// The error of a write.
    pub(crate) fn refusal(&self) -> Error {
        refuses_writes(&self.reason)
    }

    pub(crate) fn connect(&self) -> Result<ReadOnlyConnection> {
        match &self.copy {
            Some(copy) => {
                let connection = connect(&copy.path(), READER_CACHE_KIB)?;
                Ok(ReadOnlyConnection { connection, seen: None })
            }
            None => self.connect_in_place(),
        }
    }

    fn connect_in_place(&self) -> Result<ReadOnlyConnection> {
        let path = &self.path;
        let log = beside(path, LOGS[0]);
        let seen = FilesSeen::of(path, &log);
        let failed = |error| unopened(path, error);
        if log.exists() && beside(path, "-shm").exists() {
            // This fails without permission for the `-shm` file. The log can still be read without it.
            if let Ok(connection) = shared(path) {
                return Ok(ReadOnlyConnection { connection, seen: None });
            }
        }
        if holds_something(&log) {
            fs::File::open(&log).map_err(|error| unreadable_log(path, &log, &error))?;
            let connection = alone(path).map_err(failed)?;
            return Ok(ReadOnlyConnection { connection, seen: Some(seen) });
        }
        let uri = immutable_uri(path).ok_or_else(|| refused(path, "has a name that is not valid Unicode"))?;
        let connection = Connection::open_with_flags(uri, READ_ONLY | OpenFlags::SQLITE_OPEN_URI);
        let connection = connection.and_then(configured).map_err(failed)?;
        Ok(ReadOnlyConnection { connection, seen: Some(seen) })
    }

    /// Whether the connection would read the current content of the files.
    pub(crate) fn is_current(&self, opened: &ReadOnlyConnection) -> bool {
        let now = || FilesSeen::of(&self.path, &beside(&self.path, LOGS[0]));
        opened.seen.as_ref().is_none_or(|seen| *seen == now())
    }

    /// The result of a read on this connection, unless the files have changed meanwhile.
    pub(crate) fn checked<T>(&self, opened: &ReadOnlyConnection, answer: Result<T>) -> Result<T> {
        if self.is_current(opened) {
            return answer;
        }
        let message = "another program wrote to the store while it was read";
        Err(Error::new(ErrorKind::StorageIo, message).with("file", self.path.display()).retryable())
    }
}

impl FilesSeen {
    fn of(file: &Path, log: &Path) -> Self {
        Self([file, log].map(|path| {
            let found = fs::metadata(path).ok()?;
            Some((found.len(), found.modified().ok()))
        }))
    }
}

/// Opens a file that other processes may write, with the files that SQLite keeps beside it.
fn shared(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, READ_ONLY).and_then(configured)
}

/// Opens a file with its log, without locks and without a third file.
#[cfg(unix)]
fn alone(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags_and_vfs(path, READ_ONLY, c"unix-none")?;
    // The log must not change, even if it could be written.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Must be set before the first read, after which the index of the log is in memory.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    configured(connection)
}

/// On other systems, the log needs its third file.
#[cfg(not(unix))]
fn alone(path: &Path) -> rusqlite::Result<Connection> {
    shared(path)
}

/// Configures a connection and reads something, because SQLite opens the files only then.
fn configured(connection: Connection) -> rusqlite::Result<Connection> {
    configure_to_read(&connection)?;
    connection.query_one("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

fn unreadable_log(path: &Path, log: &Path, error: &io::Error) -> Error {
    let message = format!("the write-ahead log {} holds changes and can't be read: {error}", log.display());
    Error::new(ErrorKind::StorageConnection, message).with_operation("open").with("file", path.display())
}
