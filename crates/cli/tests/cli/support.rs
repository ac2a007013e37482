//! Home folders for runs of the program, and a shared one.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::call::{Call, Ran};

/// A home folder.
pub(crate) struct Home {
    folder: PathBuf,
    /// Removes the folder on drop, unless other processes use it too.
    _temporary: Option<TempDir>,
}

impl Home {
    /// An empty one.
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        Self { folder: temporary.path().to_owned(), _temporary: Some(temporary) }
    }

    /// A home folder with the samples in `~/.amplifier`.
    pub(crate) fn with_samples() -> Self {
        let home = Self::new();
        home.put_samples();
        home
    }

    /// A home folder whose default store contains the samples, without vectors.
    pub(crate) fn without_vectors() -> Self {
        let home = Self::with_samples();
        home.ok(&["sync", "--embedding", "none"]);
        home
    }

    /// The home that `make` fills, for tests that only read in it. nextest gives each test a process of its own: the first
    /// of a run that wants this home makes it, the others use it as it is.
    pub(crate) fn shared(name: &str, make: impl FnOnce(&Self)) -> Self {
        let Ok(run) = std::env::var("NEXTEST_RUN_ID") else {
            // All tests are in this process.
            let home = Self::new();
            make(&home);
            return home;
        };
        // Another run may be using the same target folder.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("home-{name}")).join(run);
        fs::create_dir_all(&folder).unwrap();
        let lock = File::create(folder.join("lock")).unwrap();
        lock.lock().unwrap();
        let made = folder.join("made");
        let home = Self { folder: folder.join("home"), _temporary: None };
        if !made.exists() {
            remove_old(folder.parent().unwrap());
            let _ = fs::remove_dir_all(home.path());
            fs::create_dir(home.path()).unwrap();
            make(&home);
            fs::write(&made, "").unwrap();
        }
        home
    }

    /// A copy of a shared home, for tests that write there or need the store for themselves. What a sync noted of its
    /// root is not true of the copy.
    #[cfg(feature = "duckdb-system")]
    pub(crate) fn copy_of_shared(name: &str, make: impl FnOnce(&Self)) -> Self {
        let (shared, home) = (Self::shared(name, make), Self::new());
        copy(shared.path(), home.path());
        home
    }

    /// Puts the samples into `~/.amplifier`.
    pub(crate) fn put_samples(&self) {
        copy(&samples(), &self.amplifier());
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// The folder of Amplifier's sessions and of the default store.
    pub(crate) fn amplifier(&self) -> PathBuf {
        self.path().join(".amplifier")
    }

    /// Writes a session with this transcript into `~/.amplifier`, and returns its folder.
    pub(crate) fn write_session(&self, project: &str, session: &str, transcript: &str) -> PathBuf {
        let folder = self.amplifier().join("projects").join(project).join("sessions").join(session);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("transcript.jsonl"), transcript).unwrap();
        folder
    }

    /// Writes the configuration file.
    pub(crate) fn configure(&self, text: &str) {
        let folder = self.path().join(".config/amplifier-sessions");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), text).unwrap();
    }

    /// A call of the command line, in an environment without variables of this machine.
    pub(crate) fn call(&self, arguments: &[&str]) -> Call {
        let folder = self.path().join("tmp");
        fs::create_dir_all(&folder).unwrap();
        Call::new(self.path(), arguments)
            .env("HOME", self.path())
            .env("TMPDIR", folder)
            .env("USER", "dana")
            .env("TZ", "UTC")
            .env("COLUMNS", "100")
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm")
    }

    /// As [`Home::call`], as a process: for tests of signals, pipes, limits of the system and the current folder.
    pub(crate) fn process(&self, arguments: &[&str]) -> Command {
        self.call(arguments).process()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.call(arguments).run()
    }

    pub(crate) fn run_json(&self, arguments: &[&str]) -> Ran {
        self.run(&[arguments, &["--json"]].concat())
    }

    /// The standard output of a run that is expected to succeed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        ran.stdout
    }

    /// The JSON of a run that is expected to succeed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run_json(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        ran.json()
    }
}

/// A home folder whose default store contains the samples. Tests that use it only read.
pub(crate) static SYNCED: LazyLock<Home> = LazyLock::new(|| {
    Home::shared("synced", |home| {
        home.put_samples();
        home.ok(&["sync"]);
    })
});

/// Removes the folders in `folder` that are older than the longest run.
fn remove_old(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|time| time.elapsed());
        if age.is_ok_and(|age| age.is_ok_and(|age| age > Duration::from_secs(6 * 3600))) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The folder of the samples, with `projects/`.
fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
            // A file that has just changed may change again within the same time stamp, so it is read again.
            let last_week = SystemTime::now() - Duration::from_secs(7 * 24 * 3600);
            fs::File::options().write(true).open(target).unwrap().set_modified(last_week).unwrap();
        }
    }
}
