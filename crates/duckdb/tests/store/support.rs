//! Stores in temporary folders.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use amplifier_session_core::{
    Scope, SessionStorage,
    embedding::EmbeddingProvider,
    search::{SearchMode, SearchOptions},
};
use amplifier_session_duckdb::{Access, DuckDb, DuckDbBackend};
use amplifier_session_testkit::FakeEmbedding;
pub(crate) use amplifier_session_testkit::store::{target, whole};
use duckdb::{AccessMode, Config, Connection};

/// A temporary folder for a store.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.path().join("sessions.duckdb")
    }

    pub(crate) async fn backend(&self) -> DuckDbBackend {
        DuckDb::open(self.database(), Access::ReadWrite).await.unwrap()
    }

    pub(crate) async fn storage(&self) -> SessionStorage {
        storage(self.backend().await)
    }

    /// Runs statements as another program. The store must not be open.
    pub(crate) fn execute(&self, sql: &str) {
        Connection::open(self.database()).unwrap().execute_batch(sql).unwrap();
    }

    /// The database as another program opens it to read. The store must not be open.
    pub(crate) fn connection(&self) -> Connection {
        let config = Config::default().access_mode(AccessMode::ReadOnly).unwrap();
        Connection::open_with_flags(self.database(), config).unwrap()
    }
}

pub(crate) fn storage(backend: DuckDbBackend) -> SessionStorage {
    let embedding: Arc<dyn EmbeddingProvider> = Arc::new(FakeEmbedding::new());
    SessionStorage::new(Arc::new(backend)).with_embedding(Some(embedding))
}

/// The number of messages that contain a word.
pub(crate) async fn found(storage: &SessionStorage, word: &str) -> usize {
    let options = SearchOptions::new(word).with_mode(SearchMode::FullText).with_limit(100);
    storage.search().search_transcripts(&Scope::Everyone, &options).await.unwrap().results.len()
}

/// The number that a query returns.
pub(crate) fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// The text that a query returns.
pub(crate) fn text(connection: &Connection, sql: &str) -> String {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}
