//! Connections: one for writing, several for reading.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use amplifier_session_core::{Error, ErrorField, ErrorKind, Result};
use amplifier_session_sql::{
    DISK_FULL,
    backend::Connections,
    embedded::{Idle, lock},
    file, is_disk_full,
    staging::remove_left,
};
use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::{
    connect::{
        BUSY_TIMEOUT, LONG_LOG_BYTES, READER_CACHE_KIB, TOO_LONG_LOG_BYTES, WRITER_CACHE_KIB, connect,
    },
    connection::{SqliteReader, SqliteWriter},
    error::storage,
    indexes,
    peek::LOGS,
    read_only::{ReadOnlyConnection, ReadOnlyStore},
    rights,
    room::{DiskSpace, cut_log},
    schema,
};

/// How long emptying the log waits for its readers: searches take milliseconds, but updating the index may take
/// seconds.
const LOG_PATIENCE: Duration = Duration::from_millis(250);

/// How long erasing deleted rows waits for readers of the log. Such a reader is usually an update of the index, which
/// may belong to this process. On a busy machine, it takes seconds.
const ERASE_PATIENCE: Duration = Duration::from_secs(5);

/// How long a write waits for readers of a log that is too long. Such a reader is usually an update of the index.
const LONG_LOG_PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait for a checkpoint of another connection before trying again.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(5);

/// The connections of this process to one database file.
#[derive(Debug)]
pub struct SqlitePool {
    path: PathBuf,
    handles: PoolConnections,
    /// Whether the write-ahead log must still be emptied because a connection was reading from it.
    log_to_empty: AtomicBool,
    /// The size of the log at which a write next waits until it is emptied. It grows while a connection keeps reading
    /// from the log, so that not every write waits.
    longest_log: AtomicU64,
}

#[derive(Debug)]
enum PoolConnections {
    /// The file can be read and written.
    Writable { writer: Mutex<Connection>, readers: Idle<Connection> },
    /// The file can only be read.
    ReadOnly { store: ReadOnlyStore, readers: Idle<ReadOnlyConnection> },
}

impl SqlitePool {
    /// Opens the file, which is created if it is missing. A file that cannot be written is opened read-only.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if let Some(reason) = file::read_only(path) {
            let (store, connection) = ReadOnlyStore::open(path, reason)?;
            let readers = Idle::default();
            readers.keep(connection);
            return Ok(Self::new(path, PoolConnections::ReadOnly { store, readers }));
        }
        rights::restore(path);
        schema::check(path)?;
        // SQLite gives its log files the same mode.
        file::create(path)?;
        remove_left(path);
        let mut writer = connect(path, WRITER_CACHE_KIB)?;
        schema::prepare(&mut writer)?;
        let (writer, readers) = (Mutex::new(writer), Idle::default());
        Ok(Self::new(path, PoolConnections::Writable { writer, readers }))
    }

    fn new(path: &Path, handles: PoolConnections) -> Self {
        Self {
            path: path.to_owned(),
            handles,
            log_to_empty: AtomicBool::new(false),
            longest_log: AtomicU64::new(TOO_LONG_LOG_BYTES),
        }
    }

    /// The reason why the file can only be read, if so.
    pub(crate) fn read_only(&self) -> Option<&str> {
        match &self.handles {
            PoolConnections::Writable { .. } => None,
            PoolConnections::ReadOnly { store, .. } => Some(store.reason()),
        }
    }

    /// The database file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The write-ahead log beside it.
    pub(crate) fn log_path(&self) -> PathBuf {
        file::beside(&self.path, LOGS[0])
    }

    /// Runs `write` in one transaction; waits while another thread or process writes.
    pub(crate) fn transaction<T>(
        &self,
        operation: &'static str,
        write: impl FnOnce(&mut SqliteWriter<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut writer = self.writer()?;
        let before = self.room_to_write(&writer);
        let answer = in_transaction(&mut writer, operation, |transaction| {
            let answer = write(transaction)?;
            let after = before.and_then(|_| DiskSpace::of(&self.path, &transaction.0));
            if before.zip(after).is_none_or(|(before, after)| after.allows_commit(before)) {
                Ok(answer)
            } else {
                Err(Error::new(ErrorKind::StorageIo, DISK_FULL).with_operation(operation))
            }
        });
        if matches!(&answer, Err(error) if is_disk_full(error)) {
            cut_log(&writer, &self.log_path());
        }
        self.empty_log_if_due(&writer);
        self.limit_log(&writer);
        answer
    }

    /// The room on the disk for a transaction, after the log was emptied if the disk is nearly full.
    fn room_to_write(&self, writer: &Connection) -> Option<DiskSpace> {
        let room = DiskSpace::of(&self.path, writer)?;
        if room.is_enough() || !room.can_empty_log() {
            return Some(room);
        }
        let emptied = empty_log(writer, LOG_PATIENCE);
        tracing::debug!(?emptied, "the disk is nearly full, so the write-ahead log is emptied");
        DiskSpace::of(&self.path, writer)
    }

    /// Closes idle read connections, and empties the cache of the write connection: after much work, a process may be
    /// idle for hours.
    pub(crate) fn release_memory(&self) {
        let PoolConnections::Writable { writer, readers } = &self.handles else { return };
        readers.clear();
        if let Err(error) = lock(writer).execute_batch("PRAGMA shrink_memory") {
            tracing::debug!(%error, "the cache of the database could not be emptied");
        }
    }

    /// Moves as much as possible of the write-ahead log into the database, in parallel with reads and writes. This
    /// leaves little for the write that finds the log full. Then empties the log if it is long.
    ///
    /// SQLite writes the log from its beginning again only if no connection reads from it when a write begins. During a
    /// sync, a connection nearly always does: each update of the index reads during its whole run, and the next one
    /// begins soon after. So this is called between two updates.
    fn checkpoint(&self) -> Result<()> {
        if self.read_only().is_some() {
            return Ok(());
        }
        self.on_reader(|connection| {
            let checkpoint = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            checkpoint.map_err(storage("checkpoint"))?;
            if self.log_bytes() > LONG_LOG_BYTES {
                empty_log(connection, LOG_PATIENCE).map_err(storage("checkpoint"))?;
            }
            Ok(())
        })
    }

    /// Empties the log if it is too long. Waits for its readers.
    fn limit_log(&self, writer: &Connection) {
        /// How much the log may grow before a write waits again for the same readers.
        const STEP: u64 = 8 << 20;
        let bytes = self.log_bytes();
        if bytes <= self.longest_log.load(Ordering::Relaxed) {
            return;
        }
        let next = match empty_log(writer, LONG_LOG_PATIENCE) {
            Ok(true) => TOO_LONG_LOG_BYTES,
            _ => bytes + STEP,
        };
        self.longest_log.store(next, Ordering::Relaxed);
    }

    fn log_bytes(&self) -> u64 {
        fs::metadata(self.log_path()).map_or(0, |log| log.len())
    }

    /// Moves the whole write-ahead log into the database and truncates it: it contains earlier versions of pages.
    ///
    /// The log must stay while another connection, of this process or another, reads from it. In this case, returns
    /// false; the next write and closing the store try again. The last process that closes the store removes the log in
    /// any case.
    pub(crate) fn empty_log(&self) -> Result<bool> {
        self.empty_log_within(LOG_PATIENCE)
    }

    /// As [`Self::empty_log`], but waits longer: as long as the log is there, it contains deleted rows.
    pub(crate) fn erase_log(&self) -> Result<bool> {
        self.empty_log_within(ERASE_PATIENCE)
    }

    fn empty_log_within(&self, patience: Duration) -> Result<bool> {
        let writer = self.writer()?;
        let empty = || {
            if DiskSpace::of(&self.path, &writer).is_none_or(DiskSpace::can_empty_log) {
                empty_log(&writer, patience).map_err(storage("checkpoint"))
            } else {
                Err(Error::new(ErrorKind::StorageIo, DISK_FULL).with_operation("checkpoint"))
            }
        };
        let mut emptied = empty();
        if matches!(&emptied, Err(error) if is_disk_full(error)) {
            cut_log(&writer, &self.log_path());
            emptied = empty();
        }
        self.log_to_empty.store(!matches!(emptied, Ok(true)), Ordering::Release);
        emptied
    }

    /// Rewrites the database, so that it contains nothing of deleted rows and their space is freed.
    ///
    /// Deleted content is overwritten (`secure_delete`). But when SQLite moves rows from a full page to others, it
    /// leaves copies in the free part of the page, which it does not overwrite when the rows are deleted.
    pub(crate) fn rewrite(&self) -> Result<()> {
        let writer = self.writer()?;
        let rewrite = || {
            // Meanwhile, the database exists twice, which may be too much for memory.
            writer.pragma_update(None, "temp_store", "FILE")?;
            let rewritten = writer.execute_batch("VACUUM");
            writer.pragma_update(None, "temp_store", "MEMORY")?;
            rewritten
        };
        rewrite().map_err(|error| {
            // The incomplete copy may have used up the disk.
            cut_log(&writer, &self.log_path());
            storage("vacuum")(error)
        })
    }

    /// The differences between the indexes of the database and its tables, in SQLite's words.
    pub(crate) fn check_indexes(&self) -> Result<Vec<String>> {
        self.on_reader(|connection| indexes::check(connection).map_err(storage("check_index")))
    }

    /// Rebuilds the indexes from the tables, if they differ.
    pub(crate) fn rebuild_indexes(&self) -> Result<()> {
        if self.check_indexes()?.is_empty() {
            return Ok(());
        }
        let mut writer = self.writer()?;
        indexes::rebuild(&mut writer).map_err(storage("rebuild_index"))
    }

    /// Copies the database, including its write-ahead log, to a file that is empty or does not exist. Other connections
    /// may read and write meanwhile.
    pub(crate) fn copy_to(&self, path: &Path) -> Result<()> {
        let failed = |source: std::io::Error| {
            let message = format!("can't write the copy of the database: {source}");
            Error::new(ErrorKind::StorageIo, message).with("file", path.display()).with_source(source)
        };
        let absolute = std::path::absolute(path).map_err(failed)?;
        let Some(name) = absolute.to_str() else {
            return Err(
                Error::validation(ErrorField::Path, "is not valid Unicode").with("value", path.display())
            );
        };
        self.on_reader(|connection| connection.execute("VACUUM INTO ?1", [name]).map_err(storage("backup")))?;
        std::fs::File::open(path).and_then(|file| file.sync_all()).map_err(failed)
    }

    fn empty_log_if_due(&self, writer: &Connection) {
        if self.log_to_empty.load(Ordering::Acquire) && matches!(empty_log(writer, Duration::ZERO), Ok(true))
        {
            self.log_to_empty.store(false, Ordering::Release);
        }
    }

    fn writer(&self) -> Result<MutexGuard<'_, Connection>> {
        match &self.handles {
            PoolConnections::Writable { writer, .. } => Ok(lock(writer)),
            PoolConnections::ReadOnly { store, .. } => Err(store.refusal()),
        }
    }

    /// Runs `read` on a read connection.
    fn on_reader<T>(&self, read: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        match &self.handles {
            PoolConnections::Writable { readers, .. } => {
                let mut connection =
                    readers.take().map_or_else(|| connect(&self.path, READER_CACHE_KIB), Ok)?;
                let answer = read(&mut connection);
                readers.keep(connection);
                answer
            }
            PoolConnections::ReadOnly { store, readers } => {
                let idle = readers.take().filter(|idle| store.is_current(idle));
                let mut opened = idle.map_or_else(|| store.connect(), Ok)?;
                let answer = read(&mut opened.connection);
                let answer = store.checked(&opened, answer);
                readers.keep(opened);
                answer
            }
        }
    }
}

/// Takes the write lock at once, so that the data that the transaction reads does not change before it writes.
fn in_transaction<T>(
    connection: &mut Connection,
    operation: &'static str,
    write: impl FnOnce(&mut SqliteWriter<'_>) -> Result<T>,
) -> Result<T> {
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let mut writer = SqliteWriter(begun.map_err(storage(operation))?);
    let answer = write(&mut writer)?;
    writer.0.commit().map_err(storage(operation))?;
    Ok(answer)
}

impl Connections for SqlitePool {
    type Reader<'a> = SqliteReader<'a>;

    fn read<T>(&self, mut read: impl FnMut(&SqliteReader<'_>) -> Result<T>) -> Result<T> {
        self.on_reader(|connection| read(&SqliteReader(connection)))
    }

    fn read_snapshot<T>(&self, mut read: impl FnMut(&SqliteReader<'_>) -> Result<T>) -> Result<T> {
        self.on_reader(|connection| {
            let begun = connection.transaction_with_behavior(TransactionBehavior::Deferred);
            let snapshot = begun.map_err(storage("read"))?;
            read(&SqliteReader(&snapshot))
        })
    }

    fn folded(&self) {
        if let Err(error) = self.checkpoint() {
            tracing::debug!(%error, "the write-ahead log could not be emptied; the next write tries again");
        }
    }
}

impl Drop for SqlitePool {
    fn drop(&mut self) {
        if let Ok(writer) = self.writer() {
            self.empty_log_if_due(&writer);
        }
    }
}

/// Empties the log. Returns false if another connection still reads from it, writes, or empties it itself.
fn empty_log(connection: &Connection, patience: Duration) -> rusqlite::Result<bool> {
    let begun = Instant::now();
    loop {
        connection.busy_timeout(patience.saturating_sub(begun.elapsed()))?;
        let busy = connection.query_one("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let is_busy = match busy {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => true,
            busy => busy?,
        };
        if !is_busy || begun.elapsed() >= patience {
            return Ok(!is_busy);
        }
        // While another connection runs a checkpoint, SQLite does not wait.
        thread::sleep(CHECKPOINT_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emptying_the_log_waits_for_a_checkpoint_of_another_connection() {
        const PATIENCE: Duration = Duration::from_secs(60);
        let folder = tempfile::tempdir().unwrap();
        let open = || Connection::open(folder.path().join("store.db")).unwrap();
        let [reader, other, probe, waiting] = [open(), open(), open(), open()];
        reader.pragma_update(None, "journal_mode", "WAL").unwrap();
        reader.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1); BEGIN").unwrap();
        assert_eq!(reader.query_one("SELECT x FROM t", [], |row| row.get(0)), Ok(1));
        probe.busy_timeout(Duration::ZERO).unwrap();
        let runs = |connection: &Connection| {
            let sql = "PRAGMA wal_checkpoint(PASSIVE)";
            connection.query_one(sql, [], |row| row.get::<_, bool>(0)).unwrap()
        };
        thread::scope(|scope| {
            // It waits for the reader.
            let checkpoint = scope.spawn(move || empty_log(&other, PATIENCE));
            while !runs(&probe) {
                thread::yield_now();
            }
            let emptied = scope.spawn(move || empty_log(&waiting, PATIENCE));
            reader.execute_batch("COMMIT").unwrap();
            assert_eq!((checkpoint.join().unwrap(), emptied.join().unwrap()), (Ok(true), Ok(true)));
        });
    }
}
