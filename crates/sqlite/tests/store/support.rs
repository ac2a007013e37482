//! Stores in temporary folders.

use std::{
    fs,
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

    /// The names of all files that contain `bytes`, including those in subfolders.
    pub(crate) fn files_with(&self, bytes: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        visit(self.0.path(), &mut |file| {
            let content = fs::read(file).unwrap();
            if content.windows(bytes.len()).any(|window| window == bytes) {
                found.push(file.strip_prefix(self.0.path()).unwrap().display().to_string());
            }
        });
        found
    }
}

fn visit(folder: &Path, each: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() { visit(&entry.path(), each) } else { each(&entry.path()) }
    }
}
