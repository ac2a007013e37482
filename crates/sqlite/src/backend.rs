//! The database: opening it, and SQLite's way of doing things.

use std::{path::Path, sync::Arc};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{StoreInfo, StorePlace},
    blocking,
};
use amplifier_session_index::{IndexUpdater, SearchIndex};
use amplifier_session_sql::{
    backend::Database,
    embedded::{Embedded, EmbeddedDatabase, RowSnapshots},
    file, is_disk_full,
};

use crate::{connection::SqliteWriter, pool::SqlitePool};

/// Sessions in one SQLite file. Cheap to clone; clones share connections.
pub type SqliteBackend = Embedded<Sqlite>;

/// An SQLite file with its search index.
#[derive(Debug)]
pub struct Sqlite {
    pool: Arc<SqlitePool>,
    index: IndexUpdater<RowSnapshots<SqlitePool>>,
}

impl Sqlite {
    /// Opens the store in the file `path`, which is created if it is missing, readable only by its owner. The search
    /// index is beside it, in the folder `<path>.index`.
    ///
    /// If the file cannot be written, or no files can be created in its folder, it is opened read-only: see
    /// [`StoreInfo::read_only`].
    ///
    /// # Errors
    ///
    /// `StorageConnection` if the file cannot be opened, or is not a store of this library in a known version; such a
    /// file is not changed.
    pub async fn open(path: impl AsRef<Path>) -> Result<SqliteBackend> {
        let path = path.as_ref().to_owned();
        blocking(move || Self::open_now(&path)).await?
    }

    fn open_now(path: &Path) -> Result<SqliteBackend> {
        let index = SearchIndex::open(file::beside(path, ".index"));
        let pool = match SqlitePool::open(path) {
            // Without a little free space, nothing can be read or deleted. The index can be rebuilt.
            Err(error) if is_disk_full(&error) && index.discard().is_ok() => {
                tracing::info!("the disk is full: the search index was removed to make room");
                SqlitePool::open(path)?
            }
            opened => opened?,
        };
        let pool = Arc::new(pool);
        let index = IndexUpdater::new(index, RowSnapshots::new(Arc::clone(&pool)));
        Ok(Embedded::embedded(Self { pool, index }))
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.pool.path()
    }
}

impl Database for Sqlite {
    type Connections = SqlitePool;
    type Writer<'a> = SqliteWriter<'a>;

    fn connections(&self) -> &SqlitePool {
        &self.pool
    }

    fn info(&self) -> StoreInfo {
        let store = StorePlace::local("store", self.path().to_owned(), [self.pool.log_path()]);
        let index = StorePlace::local("index", self.index.index().dir().to_owned(), []);
        StoreInfo::new("sqlite")
            .with_read_only(self.pool.read_only().map(str::to_owned))
            .with_places(vec![store, index])
    }

    fn check_writable(&self) -> Result<()> {
        self.pool.read_only().map_or(Ok(()), |reason| Err(file::refuses_writes(reason)))
    }

    fn transaction<T>(
        &self,
        operation: &'static str,
        write: impl FnMut(&mut SqliteWriter<'_>) -> Result<T>,
    ) -> Result<T> {
        self.pool.transaction(operation, write)
    }

    fn tidy(&self) -> Result<()> {
        self.pool.release_memory();
        self.pool.empty_log().map(drop)
    }
}

impl EmbeddedDatabase for Sqlite {
    const IS_SHARED: bool = true;

    fn index(&self) -> &IndexUpdater<RowSnapshots<SqlitePool>> {
        &self.index
    }

    fn check_tables(&self) -> Result<Vec<String>> {
        self.pool.check_indexes()
    }

    fn rebuild_tables(&self) -> Result<()> {
        self.pool.rebuild_indexes()
    }

    fn erase(&self) -> Result<()> {
        // On a full disk, this makes room for the rewrite.
        self.pool.empty_log()?;
        let rewritten = self.pool.rewrite();
        // The log may contain an incomplete rewrite.
        let emptied = self.pool.erase_log();
        rewritten?;
        if emptied? {
            return Ok(());
        }
        let message = "this or another program is still reading from its write-ahead log";
        Err(Error::new(ErrorKind::StorageIo, message).with_operation("erase").retryable())
    }
}
