//! The database: opening it, and DuckDB's way of doing things.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use amplifier_session_core::{
    Error, ErrorKind, ErrorOption, Result,
    backend::{StoreInfo, StorePlace, VectorQuery},
    blocking,
};
use amplifier_session_index::{IndexUpdater, SearchIndex};
use amplifier_session_sql::{
    backend::{Connections, Database},
    embedded::{Embedded, EmbeddedDatabase, Nearest, RowSnapshots},
    file,
};
use duckdb::Connection;

use crate::{
    connect::{self, Access},
    connection::DuckDbWriter,
    hnsw::{Hnsw, HnswOptions, HnswRows},
    open_files,
    pool::{self, Pool},
};

/// Sessions in one DuckDB file. Cheap to clone; all handles of a process to one file share one database.
pub type DuckDbBackend = Embedded<DuckDb>;

/// A DuckDB file with its search index.
#[derive(Debug)]
pub struct DuckDb {
    inner: Arc<Inner>,
    access: Access,
    /// The reason why the file cannot be written, if so.
    protected: Option<String>,
}

#[derive(Debug)]
struct Inner {
    /// Dropped first: only the open store uses its file.
    hnsw: Hnsw,
    store_id: OnceLock<[u8; 16]>,
    index: IndexUpdater<RowSnapshots<Pool>>,
    pool: Arc<Pool>,
}

impl DuckDb {
    /// Opens the store in the file `path`, readable only by its owner. If it is missing and `access` allows writing, it
    /// is created. The search index is beside it, in the folder `<path>.index`.
    ///
    /// If the file cannot be written, or no files can be created in its folder, it is opened read-only, regardless of
    /// `access`: see [`StoreInfo::read_only`].
    ///
    /// # Errors
    ///
    /// `StorageConnection` if the file cannot be opened, is in use by another process, or is not a store of this
    /// library in a known version; such a file is not changed. Also if this process has it open read-only and `access`
    /// is for writing.
    pub async fn open(path: impl AsRef<Path>, access: Access) -> Result<DuckDbBackend> {
        let path = path.as_ref().to_owned();
        blocking(move || Self::open_now(&path, access)).await?
    }

    fn open_now(path: &Path, access: Access) -> Result<DuckDbBackend> {
        let protected = file::read_only(path);
        let access = if protected.is_some() { Access::ReadOnly } else { access };
        let inner = open_files::shared(path, |file| {
            let pool = Arc::new(Pool::open(path, access, file)?);
            let index = SearchIndex::open(file::beside(path, ".index"));
            let index = IndexUpdater::new(index, RowSnapshots::new(Arc::clone(&pool)));
            let hnsw = Hnsw::new(pool.path(), access == Access::ReadOnly);
            Ok(Inner { hnsw, store_id: OnceLock::new(), index, pool })
        })?;
        if (access, inner.pool.access()) == (Access::ReadWrite, Access::ReadOnly) {
            let message = "this process has already opened the database read-only";
            return Err(Error::new(ErrorKind::StorageConnection, message).with("file", path.display()));
        }
        Ok(Embedded::embedded(Self { inner, access, protected }))
    }

    /// Keeps an HNSW index in the file `<path>.hnsw` for all users of this file in this process. Searches without a filter use it
    /// while it is up to date; `update_index` updates it. If it cannot be used, such searches report the reason.
    pub fn use_hnsw(&self, options: HnswOptions) {
        self.inner.hnsw.enable(options);
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.inner.pool.path()
    }

    /// Whether the database is confined to its own file. This is so if this process opened it read-only: it can't
    /// access other files or load extensions, and its settings are locked.
    pub(crate) fn is_confined(&self) -> bool {
        self.inner.pool.access() == Access::ReadOnly
    }

    /// Runs `read` on a separate connection. No other read sees its temporary views.
    pub(crate) fn read_apart<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.inner.pool.read_apart(read)
    }

    /// Creates the folder for data that does not fit into memory, and returns its absolute path. A confined database
    /// may write only in this folder.
    pub(crate) fn make_spill_folder(&self) -> Result<PathBuf> {
        let folder = connect::spill_folder(self.path());
        file::create_folder(&folder).and_then(|()| std::path::absolute(folder)).map_err(pool::not_written)
    }
}

impl Database for DuckDb {
    type Connections = Pool;
    type Writer<'a> = DuckDbWriter<'a>;

    fn connections(&self) -> &Pool {
        &self.inner.pool
    }

    fn info(&self) -> StoreInfo {
        let Inner { pool, index, hnsw, .. } = &*self.inner;
        let store = StorePlace::local("store", pool.path().to_owned(), [connect::log_path(pool.path())]);
        let index = StorePlace::local("index", index.index().dir().to_owned(), []);
        let hnsw = hnsw.file().map(|file| StorePlace::local("index", file, []));
        StoreInfo::new("duckdb")
            .with_read_only(self.protected.clone())
            .with_places([store, index].into_iter().chain(hnsw).collect())
    }

    fn check_writable(&self) -> Result<()> {
        self.protected.as_deref().map_or(Ok(()), |reason| Err(file::refuses_writes(reason)))
    }

    fn transaction<T>(
        &self,
        operation: &'static str,
        write: impl FnMut(&mut DuckDbWriter<'_>) -> Result<T>,
    ) -> Result<T> {
        self.check_writable()?;
        if self.access == Access::ReadOnly {
            let error = Error::new(ErrorKind::Unsupported, "the store was opened read-only");
            return Err(error.with_option(ErrorOption::ReadOnly).with("file", self.path().display()));
        }
        self.inner.pool.transaction(operation, write)
    }

    /// Moves the write-ahead log into the database and updates the HNSW index, if there is one.
    fn tidy(&self) -> Result<()> {
        self.inner.pool.checkpoint();
        let Inner { hnsw, pool, store_id, .. } = &*self.inner;
        if !hnsw.is_enabled() {
            return Ok(());
        }
        pool.read_snapshot(|reader| {
            hnsw.update(&mut HnswRows::new(reader, store_id));
            Ok(())
        })
    }
}

impl EmbeddedDatabase for DuckDb {
    fn index(&self) -> &IndexUpdater<RowSnapshots<Pool>> {
        &self.inner.index
    }

    fn erase(&self) -> Result<()> {
        self.inner.pool.rewrite().and(self.inner.hnsw.remove())
    }

    fn nearest(&self, query: &VectorQuery) -> Result<Nearest> {
        let Inner { hnsw, pool, store_id, .. } = &*self.inner;
        if !hnsw.is_enabled() {
            return Ok(Nearest::NotAsked);
        }
        pool.read_snapshot(|reader| hnsw.nearest(&mut HnswRows::new(reader, store_id), query))
    }
}
