//! Stores in temporary folders.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use amplifier_session_core::{SessionStorage, embedding::EmbeddingProvider};
use amplifier_session_sqlite::{Sqlite, SqliteBackend};
use amplifier_session_testkit::FakeEmbedding;
pub(crate) use amplifier_session_testkit::store::{target, whole};

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
        self.0.path().join("sessions.sqlite")
    }

    pub(crate) async fn backend(&self) -> SqliteBackend {
        Sqlite::open(self.database()).await.unwrap()
    }

    pub(crate) async fn storage(&self) -> SessionStorage {
        let embedding: Arc<dyn EmbeddingProvider> = Arc::new(FakeEmbedding::new());
        SessionStorage::new(Arc::new(self.backend().await)).with_embedding(Some(embedding))
    }
}
