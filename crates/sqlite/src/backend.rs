//! The database: opening it, and what SQLite does in its own way.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use amplifier_session_core::{
    Result, Scope,
    backend::{EventCount, MessageVectors, OweAgain, SessionChange, StoreInfo, StorePlace, Version},
    blocking,
    model::{ContentType, Message, Payload, Place, SessionKey, UserId, VectorRecord},
    search::EventFilter,
};
use amplifier_session_index::{IndexUpdater, SearchIndex};
use amplifier_session_sql::{
    embedded::{Database, Embedded},
    file::refuses_writes,
    read,
};

use crate::{
    event_counts, events, messages,
    pool::{Pool, with_snapshot},
    reader::Read,
    rows::SqliteSnapshots,
    vectors, write,
};

/// Sessions in one SQLite file. Cheap to clone; clones share connections.
pub type SqliteBackend = Embedded<Sqlite>;

/// An SQLite file with its search index.
pub struct Sqlite {
    pool: Arc<Pool>,
    index: IndexUpdater<SqliteSnapshots>,
}

impl Sqlite {
    /// Opens the store in the file `path`, which is created when it is missing, for its owner alone. The search index
    /// lies beside it, in the folder `<path>.index`.
    ///
    /// A file that can't be written, or in whose folder nothing can be created, is opened to read it: see
    /// [`StoreInfo::read_only`].
    ///
    /// # Errors
    ///
    /// `StorageConnection` when the file can't be opened, or is no store of this library in a version that it knows:
    /// such a file is left untouched.
    pub async fn open(path: impl AsRef<Path>) -> Result<SqliteBackend> {
        let path = path.as_ref().to_owned();
        blocking(move || Self::open_now(path)).await?
    }

    fn open_now(path: PathBuf) -> Result<SqliteBackend> {
        let pool = Arc::new(Pool::open(&path)?);
        let mut index_dir = path.into_os_string();
        index_dir.push(".index");
        let index = IndexUpdater::new(SearchIndex::open(index_dir), SqliteSnapshots(Arc::clone(&pool)));
        Ok(Embedded::new(Self { pool, index }))
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.pool.path()
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Database for Sqlite {
    type Reader<'a> = Read<'a>;
    type Snapshots = SqliteSnapshots;

    fn index(&self) -> &IndexUpdater<SqliteSnapshots> {
        &self.index
    }

    fn info(&self) -> StoreInfo {
        let store = StorePlace::local("store", self.path().to_owned(), [self.pool.log_path()]);
        let index = StorePlace::local("index", self.index.index().dir().to_owned(), []);
        StoreInfo::new("sqlite")
            .with_read_only(self.pool.read_only().map(str::to_owned))
            .with_places(vec![store, index])
    }

    fn check_writable(&self) -> Result<()> {
        self.pool.read_only().map_or(Ok(()), |reason| Err(refuses_writes(reason)))
    }

    fn read<T>(&self, read: impl FnOnce(&Read<'_>) -> Result<T>) -> Result<T> {
        self.pool.read(|connection| read(&Read(connection)))
    }

    fn read_snapshot<T>(&self, read: impl FnOnce(&Read<'_>) -> Result<T>) -> Result<T> {
        self.pool.read(|connection| with_snapshot(connection, |snapshot| read(&Read(snapshot))))
    }

    fn messages_at(reader: &Read<'_>, places: &[Place]) -> Result<Vec<Message>> {
        messages::at(reader, places)
    }

    fn event_payloads(reader: &Read<'_>, key: &SessionKey, sequences: &[u32]) -> Result<Vec<(u32, Payload)>> {
        events::payloads(reader, key, sequences)
    }

    fn find_events(reader: &Read<'_>, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, Place)>> {
        events::find(reader.0, user, event_ids)
    }

    fn count_events(reader: &Read<'_>, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>> {
        event_counts::count(reader.0, scope, filter)
    }

    fn vectors_of(
        reader: &Read<'_>,
        generation: u32,
        texts: &[(Place, ContentType)],
    ) -> Result<Vec<(Place, VectorRecord)>> {
        vectors::of(reader.0, generation, texts)
    }

    fn swap_meta(&self, key: &str, expected: Option<&str>, value: &str) -> Result<Option<String>> {
        self.pool.write(|connection| read::meta::swap(&Read(connection), key, expected, value))
    }

    fn write(&self, changes: &[SessionChange]) -> Result<Vec<Result<Version>>> {
        self.pool.write(|connection| Ok(write::sessions(connection, changes)))
    }

    fn delete_session(&self, key: &SessionKey) -> Result<bool> {
        self.pool.write(|connection| write::delete(connection, key))
    }

    fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64> {
        self.pool.write(|connection| write::rename_user(connection, from, to))
    }

    fn write_vectors(&self, key: &SessionKey, generation: u32, of: &[MessageVectors]) -> Result<usize> {
        self.pool.write(|connection| write::vectors(connection, key, generation, of))
    }

    fn owe_vectors(&self, key: &SessionKey, which: &OweAgain) -> Result<u64> {
        self.pool.write(|connection| write::owe_vectors(connection, key, which))
    }

    fn complete_generation(&self, generation: u32) -> Result<bool> {
        self.pool.write(|connection| write::complete_generation(connection, generation))
    }

    fn prune_vectors(&self, limit: usize) -> Result<usize> {
        self.pool.write(|connection| write::prune_vectors(connection, limit))
    }

    fn erase(&self) -> Result<()> {
        // While others read from the write-ahead log, it stays until they are done.
        let rewritten = self.pool.rewrite();
        self.pool.empty_log().and(rewritten)
    }

    fn tidy(&self) -> Result<()> {
        self.pool.empty_log()
    }
}
