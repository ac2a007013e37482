//! The SQLite file of the cache.
//!
//! A row is about as large as a page. So the table has row numbers and a separate index over the keys: a look-up reads
//! no other vectors.

use std::{
    ffi::OsString,
    fmt, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use crate::wrappers::CacheKey;

/// How long a call waits for a lock that another process holds.
const BUSY: Duration = Duration::from_millis(250);

/// "ASEC", in the header of the file, identifies it as a cache.
const APPLICATION_ID: i32 = 0x4153_4543;
const VERSION: i32 = 1;

/// `used` comes first, so that it is on the first page of a row whose vector continues on other pages.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS entry (
        used INTEGER NOT NULL,      -- days since 1970-01-01
        checksum BLOB NOT NULL,
        key BLOB NOT NULL UNIQUE,
        vector BLOB NOT NULL        -- f32, little-endian
    );
    CREATE INDEX IF NOT EXISTS entry_used ON entry (used);
";

/// Identifies a file. It is one statement, since another process may be creating the file.
const CONTENTS: &str = "
    SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
        (SELECT count(*) FROM sqlite_schema)
";

/// A checksum's length in bytes.
const CHECKSUM: usize = 8;

/// Why the file can't be used.
#[derive(Debug)]
pub(super) enum EntryFailure {
    Sqlite(rusqlite::Error),
    Io(io::Error),
    /// The file has other contents, or is of a later version.
    Foreign,
}

impl fmt::Display for EntryFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::Foreign => f.write_str("it is not a cache of this version"),
        }
    }
}

impl From<rusqlite::Error> for EntryFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<io::Error> for EntryFailure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl EntryFailure {
    pub(super) fn is_corruption(&self) -> bool {
        let Self::Sqlite(error) = self else { return false };
        matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
    }
}

/// An open file.
#[derive(Debug)]
pub(super) struct CacheFile {
    connection: Connection,
}

impl CacheFile {
    /// Opens the file. Creates it and its folder if they don't exist.
    pub(super) fn open(path: &Path) -> Result<Self, EntryFailure> {
        make_private(path)?;
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        let mut file = Self { connection };
        file.prepare()?;
        Ok(file)
    }

    fn prepare(&mut self) -> Result<(), EntryFailure> {
        let contents =
            self.connection.query_row(CONTENTS, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        match contents {
            (APPLICATION_ID, VERSION, _) => {}
            (0, 0, 0) => self.create()?,
            _ => return Err(EntryFailure::Foreign),
        }
        // A lost write only costs another call, so there is no need to wait for the disk.
        self.connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA journal_size_limit = 16777216;",
        )?;
        Ok(())
    }

    fn create(&mut self) -> Result<(), EntryFailure> {
        // Both must be set while the file is empty. A row with 1,536 dimensions fits in a page.
        self.connection.execute_batch("PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL;")?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have created the tables by now.
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
        Ok(())
    }

    /// Returns the vectors of `keys` that exist and are intact. Records that they were used on `day`, and deletes damaged
    /// ones.
    pub(super) fn get(
        &mut self,
        keys: &[CacheKey],
        dimensions: usize,
        day: i64,
    ) -> Result<Vec<Option<Vec<f32>>>, EntryFailure> {
        let mut found = Vec::with_capacity(keys.len());
        let (mut used_again, mut damaged) = (Vec::new(), Vec::new());
        {
            let transaction = self.connection.transaction()?;
            let mut select = transaction
                .prepare_cached("SELECT rowid, used, checksum, vector FROM entry WHERE key = ?1")?;
            for key in keys {
                let row = select.query_row([key.as_bytes()], |row| read_row(key, row)).optional()?;
                found.push(row.and_then(|(id, used, vector)| {
                    let vector = vector.filter(|vector| vector.len() == dimensions);
                    match &vector {
                        None => damaged.push(id),
                        Some(_) if used < day => used_again.push(id),
                        Some(_) => {}
                    }
                    vector
                }));
            }
        }
        // The vectors can be used even if this can't be recorded.
        if let Err(failure) = self.change(&used_again, &damaged, day) {
            tracing::debug!(%failure, "the embedding cache can't be written");
        }
        Ok(found)
    }

    fn change(&mut self, used: &[i64], damaged: &[i64], day: i64) -> Result<(), EntryFailure> {
        if used.is_empty() && damaged.is_empty() {
            return Ok(());
        }
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for id in used {
            transaction
                .prepare_cached("UPDATE entry SET used = ?2 WHERE rowid = ?1")?
                .execute(params![id, day])?;
        }
        for id in damaged {
            transaction.prepare_cached("DELETE FROM entry WHERE rowid = ?1")?.execute([id])?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Writes vectors, and makes room if the file is then larger than `limit`.
    pub(super) fn put(
        &mut self,
        entries: &[(CacheKey, Vec<f32>)],
        day: i64,
        limit: u64,
    ) -> Result<(), EntryFailure> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (key, vector) in entries {
            let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
            transaction
                .prepare_cached(
                    "INSERT OR REPLACE INTO entry (used, checksum, key, vector) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![day, checksum(key, &bytes), key.as_bytes(), bytes])?;
        }
        let is_full = used_bytes(&transaction)? > limit;
        if is_full {
            make_room(&transaction, limit)?;
        }
        transaction.commit()?;
        if is_full { self.shrink(limit) } else { Ok(()) }
    }

    /// Shrinks the file to `limit`. Other free pages remain for the next writes.
    fn shrink(&mut self, limit: u64) -> Result<(), EntryFailure> {
        let excess = file_bytes(&self.connection)?.saturating_sub(limit);
        let pages = excess.div_ceil(number(&self.connection, "page_size")?.max(1));
        if pages > 0 {
            let mut vacuum = self.connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
            let mut steps = vacuum.query([])?;
            // Each step frees one page.
            while steps.next()?.is_some() {}
        }
        Ok(())
    }
}

#[cfg(test)]
impl CacheFile {
    pub(super) fn total_changes(&self) -> u64 {
        self.connection.total_changes()
    }

    /// The number of vectors, and the size of the file in bytes.
    pub(super) fn usage(&self) -> Result<(u64, u64), EntryFailure> {
        let vectors =
            self.connection.query_row("SELECT count(*) FROM entry", [], |row| row.get::<_, i64>(0))?;
        Ok((vectors as u64, file_bytes(&self.connection)?))
    }
}

/// Deletes the least recently used entries until the others take nine tenths of `limit`.
fn make_room(transaction: &Transaction<'_>, limit: u64) -> Result<(), EntryFailure> {
    let goal = limit - limit / 10;
    loop {
        let used = used_bytes(transaction)?;
        let entries = transaction.query_row("SELECT count(*) FROM entry", [], |row| row.get::<_, i64>(0))?;
        if used <= goal || entries == 0 {
            return Ok(());
        }
        // Entries have about the same size, so one or two rounds are enough.
        let share = (used - goal) as f64 / used as f64;
        let oldest = ((entries as f64 * share).ceil() as i64).max(1);
        transaction.execute(
            "DELETE FROM entry WHERE rowid IN (SELECT rowid FROM entry ORDER BY used, rowid LIMIT ?1)",
            [oldest],
        )?;
    }
}

/// The size of the file.
fn file_bytes(connection: &Connection) -> Result<u64, EntryFailure> {
    Ok(number(connection, "page_count")? * number(connection, "page_size")?)
}

/// The size of the file without its free pages.
fn used_bytes(connection: &Connection) -> Result<u64, EntryFailure> {
    let pages = number(connection, "page_count")?.saturating_sub(number(connection, "freelist_count")?);
    Ok(pages * number(connection, "page_size")?)
}

fn number(connection: &Connection, pragma: &str) -> Result<u64, EntryFailure> {
    let value = connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0))?;
    Ok(u64::try_from(value).unwrap_or(0))
}

/// The checksum of a vector and its key, so that a vector in the wrong row counts as damaged.
fn checksum(key: &CacheKey, bytes: &[u8]) -> [u8; CHECKSUM] {
    let mut checksum = [0; CHECKSUM];
    blake3::Hasher::new_keyed(key.as_bytes()).update(bytes).finalize_xof().fill(&mut checksum);
    checksum
}

/// The number of a row, the day of its last use, and its vector unless that is damaged.
fn read_row(key: &CacheKey, row: &Row<'_>) -> rusqlite::Result<(i64, i64, Option<Vec<f32>>)> {
    let expected = row.get_ref(2)?.as_blob().unwrap_or_default();
    let vector = row.get_ref(3)?.as_blob().unwrap_or_default();
    Ok((row.get(0)?, row.get(1)?, read_vector(key, expected, vector)))
}

fn read_vector(key: &CacheKey, expected: &[u8], bytes: &[u8]) -> Option<Vec<f32>> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    let is_whole = rest.is_empty() && checksum(key, bytes) == expected;
    is_whole.then(|| numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

/// Creates the folder and the file, accessible only to their owner. SQLite gives its other files the same mode.
fn make_private(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Renames a damaged file, and deletes its write-ahead log.
pub(super) fn set_aside(path: &Path) -> io::Result<()> {
    let beside = |ending: &str| {
        let mut name = OsString::from(path);
        name.push(ending);
        PathBuf::from(name)
    };
    fs::rename(path, beside(".corrupt"))?;
    for ending in ["-wal", "-shm"] {
        match fs::remove_file(beside(ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
