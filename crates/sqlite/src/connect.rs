//! Opening and configuring connections.

use std::{path::Path, time::Duration};

use amplifier_session_core::Result;
use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};

use crate::{error::storage, functions};

/// How long a call waits while another process is writing.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// The size of a page, twice the default: half as many pages are written to the log and then to the file.
const PAGE_BYTES: i64 = 8192;

/// The size of the write-ahead log at which it is emptied, in parallel with writes: see `SqlitePool::checkpoint`.
pub(crate) const LONG_LOG_BYTES: u64 = 16 << 20;

/// The size of the write-ahead log at which writes wait until it is emptied.
pub(crate) const TOO_LONG_LOG_BYTES: u64 = 2 * LONG_LOG_BYTES;

/// The number of pages in the write-ahead log at which a write moves them into the file. Every session changes index
/// pages; this way, they are moved once for many writes. Most pages are moved earlier, in parallel with writes.
const LOG_PAGES: i64 = LONG_LOG_BYTES.cast_signed() / PAGE_BYTES;

/// The cache of the connection that writes.
pub(crate) const WRITER_CACHE_KIB: i64 = 16_000;

/// The maximum cache of a read connection: the pages that searches in some ten thousand messages need. The system
/// caches the file too, but copying a page from there takes as long as finding three rows in it.
pub(crate) const READER_CACHE_KIB: i64 = 32_000;

pub(crate) fn connect(path: &Path, cache_kib: i64) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)
        .map_err(|e| storage("open")(e).with("file", path.display()))?;
    configure(&connection, cache_kib).map_err(|e| storage("open")(e).with("file", path.display()))?;
    Ok(connection)
}

/// Configures a connection to a file that can only be read.
pub(crate) fn configure_to_read(connection: &Connection) -> rusqlite::Result<()> {
    prepare(connection, READER_CACHE_KIB)?;
    connection.pragma_update(None, "temp_store", "MEMORY")
}

/// Configures every connection.
fn prepare(connection: &Connection, cache_kib: i64) -> rusqlite::Result<()> {
    functions::register(connection)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Plans must not depend on bound values. Otherwise, SQLite prepares some statements again for each row that is
    // looked up by its key, which takes as long as reading ten rows.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(|_| ())
}

fn configure(connection: &Connection, cache_kib: i64) -> rusqlite::Result<()> {
    prepare(connection, cache_kib)?;
    // For new files. Most rows are larger than a thousand bytes.
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    // When SQLite starts writing a log from its beginning again, it truncates the log to its content.
    connection.pragma_update(None, "journal_size_limit", 0)?;
    // With WAL, a killed process loses nothing. `NORMAL` syncs only at checkpoints, so a power failure may lose the
    // last transactions as a whole, and the next sync restores them from the files.
    use_write_ahead_log(connection)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // Deleted content is overwritten.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")
}

/// SQLite does not wait when several processes open a new file at once, so this function does.
fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<()> {
    const ATTEMPTS: u32 = 500;
    let mut attempt = 0;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && attempt < ATTEMPTS =>
            {
                attempt += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}
