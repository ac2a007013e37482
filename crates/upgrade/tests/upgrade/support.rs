//! Old files in folders of their own, and stores to copy them to.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use amplifier_session_core::{
    Result, SessionStorage,
    backend::{Opening, StorageBackend},
    model::Timestamp,
};
use amplifier_session_sqlite::Sqlite;
use amplifier_session_testkit::python_library::{Dialect, PythonLibrary};
use amplifier_session_upgrade::{NewStore, Upgrade, UpgradeOptions, upgrade};
use rusqlite::Connection;

pub(crate) const GENERATIONS: [u32; 3] = [1, 2, 3];

/// A folder.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// The file that most tests upgrade.
    pub(crate) fn old(&self) -> PathBuf {
        self.join("old")
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The files with their bytes.
    pub(crate) fn content(&self) -> Vec<(String, Vec<u8>)> {
        let read = |name: String| fs::read(self.join(&name)).map(|bytes| (name, bytes)).unwrap();
        self.names().into_iter().map(read).collect()
    }
}

/// A folder with a SQLite file of a generation, changed by `more`.
pub(crate) fn sqlite_file(generation: u32, more: &str) -> Folder {
    let folder = Folder::new();
    let connection = Connection::open(folder.old()).unwrap();
    connection.execute_batch(&PythonLibrary::new(generation, Dialect::Sqlite).sql()).unwrap();
    connection.execute_batch(more).unwrap();
    folder
}

/// A SQLite store in a file.
pub(crate) fn sqlite_store(file: PathBuf) -> NewStore {
    let open = |file: Option<PathBuf>, _| -> Opening {
        Box::pin(async { Ok(Arc::new(Sqlite::open(file.unwrap()).await?) as Arc<dyn StorageBackend>) })
    };
    NewStore { name: "sqlite".to_owned(), file: Some(file), open: Box::new(open) }
}

/// A store that is open already.
pub(crate) fn open_store(backend: &Arc<dyn StorageBackend>) -> NewStore {
    let backend = Arc::clone(backend);
    let open = move |_, _| -> Opening {
        let backend = Arc::clone(&backend);
        Box::pin(async { Ok(backend) })
    };
    NewStore { name: "memory".to_owned(), file: None, open: Box::new(open) }
}

pub(crate) async fn run(old: &Path, store: NewStore, check: bool) -> Result<Upgrade> {
    let options = UpgradeOptions::new(Timestamp::from_micros(0)).with_check(check);
    upgrade(old, store, options, Box::new(|_| {})).await
}

/// Upgrades a SQLite file in place.
pub(crate) async fn in_place(old: &Path) -> Result<Upgrade> {
    run(old, sqlite_store(old.to_owned()), false).await
}

pub(crate) async fn opened(file: PathBuf) -> SessionStorage {
    SessionStorage::new(Arc::new(Sqlite::open(file).await.unwrap()))
}

/// Sessions, messages, events and vectors.
pub(crate) fn counts(upgrade: &Upgrade) -> [u64; 4] {
    let counts = upgrade.counts;
    [counts.sessions, counts.messages, counts.events, counts.vectors]
}

pub(crate) fn left_out(upgrade: &Upgrade) -> Vec<(&str, u64)> {
    upgrade.left_out.iter().map(|(what, count)| (what.as_str(), *count)).collect()
}
