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
use amplifier_session_upgrade::{NewStore, Upgrade, UpgradeOptions, UpgradeOutcome, upgrade};
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

/// Checks that a file with this content becomes a store in its place, as a check says before, and stays as a backup.
pub(crate) async fn becomes_a_store(
    folder: &Folder,
    before: &[(String, Vec<u8>)],
    generation: u32,
    store: fn(PathBuf) -> NewStore,
) {
    let old = folder.old();
    let planned = run(&old, store(old.clone()), true).await.unwrap();
    assert!(folder.content() == before);

    let done = run(&old, store(old.clone()), false).await.unwrap();
    assert_eq!((done.generation, counts(&done)), (Some(generation), [3, 45, 12, 60]));
    assert!(done.left_out.is_empty() && done.pending == 0 && done.unknown_roles == 0, "{done:?}");
    let mut expected = done.clone();
    expected.outcome = UpgradeOutcome::WouldUpgrade;
    assert_eq!(planned, expected);
    let backup = folder.join("old.python-backup");
    assert_eq!(done.backup.as_ref(), Some(&backup));
    assert!(fs::read(backup).unwrap() == before[0].1);
    assert_eq!(folder.names(), ["old", "old.index", "old.python-backup"]);
    for check in [true, false] {
        assert_eq!(run(&old, store(old.clone()), check).await.unwrap().outcome, UpgradeOutcome::UpToDate);
    }
}

/// Checks that a file and its log with this content are upgraded, and that both are renamed to the backup.
pub(crate) async fn is_upgraded_with_its_log(
    folder: &Folder,
    before: &[(String, Vec<u8>)],
    store: fn(PathBuf) -> NewStore,
) {
    let planned = run(&folder.old(), store(folder.old()), true).await.unwrap();
    assert_eq!(counts(&planned), [3, 45, 12, 60]);
    assert!(folder.content() == before);
    run(&folder.old(), store(folder.old()), false).await.unwrap();
    for (name, bytes) in before {
        let backup = folder.join(&name.replace("old", "old.python-backup"));
        assert!(fs::read(backup).unwrap() == *bytes, "{name}");
    }
}

/// Sessions, messages, events and vectors.
pub(crate) fn counts(upgrade: &Upgrade) -> [u64; 4] {
    let counts = upgrade.counts;
    [counts.sessions, counts.messages, counts.events, counts.vectors]
}

pub(crate) fn left_out(upgrade: &Upgrade) -> Vec<(&str, u64)> {
    upgrade.left_out.iter().map(|(what, count)| (what.as_str(), *count)).collect()
}
