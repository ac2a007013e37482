//! From a store's URL to a storage.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use amplifier_session_core::{
    Error, ErrorKind, Result, SessionStorage, StorageSettings, backend::StorageBackend,
    embedding::EmbeddingProvider,
};
use amplifier_session_sqlite::SqliteBackend;

use crate::StoreUrl;

/// What can be chosen when a store is opened.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// What makes vectors. Default: nothing, so that searches go by words alone.
    pub embedding: Option<Arc<dyn EmbeddingProvider>>,
    /// The storage's settings.
    pub settings: StorageSettings,
    /// Whether nothing is written. A DuckDB store that several processes look at is opened so by all of them. Default: no.
    pub read_only: bool,
    /// Whether a DuckDB store has an HNSW index too, which DuckDB's extension VSS makes; other stores have none. Default: no.
    pub hnsw: bool,
    /// Where DuckDB's extensions are. Default: where DuckDB installs them.
    pub extension_directory: Option<PathBuf>,
    /// The folder that `~` stands for. Default: unknown, so that a URL with `~` is refused.
    pub home: Option<PathBuf>,
}

impl OpenOptions {
    /// The defaults, with `~` standing for the home folder of this process' environment.
    #[must_use]
    pub fn from_env() -> Self {
        Self { home: std::env::home_dir(), ..Self::default() }
    }

    /// Sets what makes vectors.
    #[must_use]
    pub fn with_embedding(mut self, embedding: Option<Arc<dyn EmbeddingProvider>>) -> Self {
        self.embedding = embedding;
        self
    }

    /// Sets the storage's settings.
    #[must_use]
    pub fn with_settings(mut self, settings: StorageSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets whether nothing is written.
    #[must_use]
    pub fn with_read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Sets whether a DuckDB store has an HNSW index too.
    #[must_use]
    pub fn with_hnsw(mut self, hnsw: bool) -> Self {
        self.hnsw = hnsw;
        self
    }

    /// Sets where DuckDB's extensions are.
    #[must_use]
    pub fn with_extension_directory(mut self, directory: Option<PathBuf>) -> Self {
        self.extension_directory = directory;
        self
    }

    /// Sets the folder that `~` stands for.
    #[must_use]
    pub fn with_home(mut self, home: Option<PathBuf>) -> Self {
        self.home = home;
        self
    }
}

/// Opens the store at `url`, which is made when it does not exist: see [`StoreUrl`] for what a URL looks like.
///
/// # Errors
///
/// `Validation` when `url` is none, or its scheme is unknown; `Unsupported` for a backend that is not built in;
/// those of the backend.
pub async fn open(url: &str, options: OpenOptions) -> Result<SessionStorage> {
    open_at(&StoreUrl::parse(url, options.home.as_deref())?, options).await
}

/// [`open`], for a URL that is read already.
///
/// # Errors
///
/// Those of the backend; `Unsupported` for a backend that is not built in, or one that can't be opened for reading only.
pub async fn open_at(url: &StoreUrl, options: OpenOptions) -> Result<SessionStorage> {
    let backend: Arc<dyn StorageBackend> = match url {
        StoreUrl::Sqlite(_) if options.read_only => {
            let message = "a SQLite store has no reading only: many processes may read it while others write";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        StoreUrl::Sqlite(path) => Arc::new(SqliteBackend::open(path).await?),
        StoreUrl::DuckDb(path) => duckdb(path, &options).await?,
    };
    Ok(SessionStorage::new(backend).with_embedding(options.embedding).with_settings(options.settings))
}

#[cfg(feature = "duckdb-system")]
async fn duckdb(path: &Path, options: &OpenOptions) -> Result<Arc<dyn StorageBackend>> {
    use amplifier_session_duckdb::{Access, DuckDbBackend, HnswOptions};

    let access = if options.read_only { Access::ReadOnly } else { Access::ReadWrite };
    let backend = DuckDbBackend::open(path, access).await?;
    if !options.hnsw {
        return Ok(Arc::new(backend));
    }
    let hnsw = HnswOptions::default().with_extension_directory(options.extension_directory.clone());
    Ok(Arc::new(backend.with_hnsw(hnsw)))
}

#[cfg(not(feature = "duckdb-system"))]
async fn duckdb(_: &Path, _: &OpenOptions) -> Result<Arc<dyn StorageBackend>> {
    Err(StoreUrl::duckdb_not_built_in())
}

#[cfg(all(test, feature = "duckdb-system"))]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_duckdb_store_is_opened_by_its_url() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("duckdb:{}", folder.path().join("s.duckdb").display());
        let read_only = OpenOptions::default().with_read_only(true);
        let missing = open(&url, read_only.clone()).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::StorageConnection);
        let storage = open(&url, OpenOptions::default()).await.unwrap();
        assert_eq!(storage.backend().capabilities().name, "duckdb");
        drop(storage);
        open(&url, read_only).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_hnsw_index_that_cannot_be_made_is_no_reason_not_to_open() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("duckdb:{}", folder.path().join("s.duckdb").display());
        let nowhere = Some(folder.path().join("extensions"));
        let options = OpenOptions::default().with_hnsw(true).with_extension_directory(nowhere);
        open(&url, options).await.unwrap().update_index().await.unwrap();
    }
}
