//! A store in a folder of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use amplifier_session_core::{SessionStorage, embedding::EmbeddingProvider};
use amplifier_session_duckdb::{Access, DuckDb};
use amplifier_session_testkit::FakeEmbedding;
pub(crate) use amplifier_session_testkit::store::{target, whole};

/// A folder for a store.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path().join("sessions.duckdb")
    }

    pub(crate) async fn storage(&self) -> SessionStorage {
        let backend = DuckDb::open(self.database(), Access::ReadWrite).await.unwrap();
        let embedding: Arc<dyn EmbeddingProvider> = Arc::new(FakeEmbedding::new());
        SessionStorage::new(Arc::new(backend)).with_embedding(Some(embedding))
    }

    /// The names of the files of this kind, also in subfolders.
    pub(crate) fn files_ending(&self, suffix: &str) -> Vec<String> {
        files(self.path()).into_iter().filter(|name| name.ends_with(suffix)).collect()
    }
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .flat_map(|entry| match entry.path().is_dir() {
            true => files(&entry.path()),
            false => vec![entry.file_name().into_string().unwrap()],
        })
        .collect()
}
