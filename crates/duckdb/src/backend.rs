//! The database: opening it, SQL for people, and what DuckDB does in its own way.

use std::{fmt, path::Path, sync::Arc};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope,
    backend::{StoreInfo, StorePlace, VectorQuery},
    blocking,
};
use amplifier_session_index::{IndexUpdater, SearchIndex};
use amplifier_session_sql::{
    embedded::{Database, Embedded, Nearest, RowSnapshots},
    file,
};

use crate::{
    connect::{self, Access},
    connection::Write,
    hnsw::{Hnsw, HnswOptions},
    open_files,
    pool::Pool,
    sql::{self, SqlAnswer, SqlQuery},
};

/// Sessions in one DuckDB file. Cheap to clone; all that a process opens of a file share one database.
pub type DuckDbBackend = Embedded<DuckDb>;

/// A DuckDB file with its search index.
pub struct DuckDb {
    inner: Arc<Inner>,
    access: Access,
    /// Why the file can't be written, if that is so.
    protected: Option<String>,
}

struct Inner {
    /// Dropped first: nobody else opens its file while the store's is open.
    hnsw: Hnsw,
    index: IndexUpdater<RowSnapshots<Pool>>,
    pool: Arc<Pool>,
}

impl DuckDb {
    /// Opens the store in the file `path`, which is created when it is missing and may be written, for its owner alone. The
    /// search index lies beside it, in the folder `<path>.index`. A file that can't be written, or in whose folder nothing can be
    /// created, is opened to read it, whatever `access` says: see [`StoreInfo::read_only`].
    ///
    /// # Errors
    ///
    /// `StorageConnection` when the file can't be opened, is in use by another process, or is no store of this library
    /// in a version that it knows: such a file is left untouched. A process that has it open for reading only can't open
    /// it for writing beside.
    pub async fn open(path: impl AsRef<Path>, access: Access) -> Result<DuckDbBackend> {
        let path = path.as_ref().to_owned();
        blocking(move || Self::open_now(&path, access)).await?
    }

    fn open_now(path: &Path, access: Access) -> Result<DuckDbBackend> {
        let protected = file::read_only(path);
        let access = if protected.is_some() { Access::ReadOnly } else { access };
        let inner = open_files::shared(path, |file| {
            let pool = Arc::new(Pool::open(path, access, file)?);
            let index = SearchIndex::open(connect::beside(path, ".index"));
            let index = IndexUpdater::new(index, RowSnapshots::new(Arc::clone(&pool)));
            Ok(Inner { hnsw: Hnsw::new(pool.path(), access), index, pool })
        })?;
        if (access, inner.pool.access()) == (Access::ReadWrite, Access::ReadOnly) {
            let message = "this process has the database open for reading only";
            return Err(Error::new(ErrorKind::StorageConnection, message).with("file", path.display()));
        }
        Ok(Embedded::new(Self { inner, access, protected }))
    }

    /// Has an HNSW index too, which DuckDB's extension VSS makes in the file `<path>.hnsw`, for whatever opens this file in
    /// this process. Searches that leave nothing out use it, when it is up to date, which `update_index` brings it.
    /// Without the extension everything goes as without the index, and such searches say so.
    pub fn use_hnsw(&self, options: HnswOptions) {
        self.inner.hnsw.ask_for(options);
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.inner.pool.path()
    }

    /// Asks a question in SQL; the views of [`READY_VIEWS`](crate::READY_VIEWS) are there for it. It
    /// reads this database and no other file.
    ///
    /// # Errors
    ///
    /// `Unsupported` when the store was not opened for reading only; `Validation` (`scope`) when it holds sessions of others
    /// and `scope` is not [`Scope::Everyone`], because SQL sees the whole store; `Validation` (`query`) when the query is
    /// not one statement that reads, or DuckDB does not understand it.
    pub async fn sql(&self, scope: &Scope, query: &SqlQuery) -> Result<SqlAnswer> {
        self.check_sql()?;
        let (inner, scope, query) = (Arc::clone(&self.inner), scope.clone(), query.clone());
        let (asking, awaiting) = sql::asking();
        // Goes on while the rows are read.
        tokio::task::spawn_blocking(move || {
            let asked = inner.pool.read_apart(|connection| {
                sql::answer(connection, &scope, &query, &asking);
                Ok(())
            });
            asked.unwrap_or_else(|error| asking.fail(error));
            // Who has seen the end of the answer may count on the store to be let go.
            drop(inner);
            drop(asking);
        });
        awaiting.answer().await
    }

    /// Writes the answer to a question in SQL to `file`, as Parquet, for its owner alone; returns how many rows there are. The
    /// types of columns are kept.
    ///
    /// # Errors
    ///
    /// As [`Self::sql`]; `StorageIo` when the file can't be written.
    pub async fn sql_to_parquet(&self, scope: &Scope, query: &SqlQuery, file: &Path) -> Result<u64> {
        self.check_sql()?;
        let (scope, query, file) = (scope.clone(), query.clone(), file.to_owned());
        let inner = Arc::clone(&self.inner);
        let write = move || {
            inner.pool.read_apart(|connection| {
                sql::write_parquet(connection, &scope, &query, inner.pool.path(), &file)
            })
        };
        blocking(write).await?
    }

    fn check_sql(&self) -> Result<()> {
        if self.inner.pool.access() == Access::ReadOnly {
            return Ok(());
        }
        // A database that may be written reaches other files too.
        let message = "questions in SQL are asked of a store that was opened for reading only";
        Err(Error::new(ErrorKind::Unsupported, message)
            .with_operation("sql")
            .with("file", self.path().display()))
    }
}

impl fmt::Debug for DuckDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DuckDb").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Database for DuckDb {
    type Connections = Pool;
    type Writer<'a> = Write<'a>;

    fn connections(&self) -> &Pool {
        &self.inner.pool
    }

    fn index(&self) -> &IndexUpdater<RowSnapshots<Pool>> {
        &self.inner.index
    }

    fn info(&self) -> StoreInfo {
        let Inner { pool, index, hnsw } = &*self.inner;
        let store = StorePlace::local("store", pool.path().to_owned(), [pool.log_path()]);
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
        write: impl FnOnce(&mut Write<'_>) -> Result<T>,
    ) -> Result<T> {
        self.check_writable()?;
        if self.access == Access::ReadOnly {
            let error = Error::new(ErrorKind::Unsupported, "the store was opened read-only");
            return Err(error.with("option", "read_only").with("file", self.path().display()));
        }
        self.inner.pool.transaction(operation, write)
    }

    fn erase(&self) -> Result<()> {
        self.inner.pool.rewrite().and(self.inner.hnsw.remove())
    }

    /// Works off the write-ahead log, and brings the HNSW index up to date if there is one.
    fn tidy(&self) -> Result<()> {
        self.inner.pool.checkpoint();
        self.inner.hnsw.update(&self.inner.pool);
        Ok(())
    }

    fn nearest(&self, query: &VectorQuery) -> Result<Nearest> {
        self.inner.hnsw.nearest(&self.inner.pool, query)
    }
}
