//! A home folder of its own for each run of the program.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use serde_json::Value;
use tempfile::TempDir;

/// A home folder.
pub(crate) struct Home(TempDir);

/// What a run of the program left behind.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// One where the samples lie in `~/.amplifier`.
    pub(crate) fn with_samples() -> Self {
        let home = Self::new();
        copy(&samples(), &home.amplifier());
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Where Amplifier keeps its sessions, and the program its store.
    pub(crate) fn amplifier(&self) -> PathBuf {
        self.path().join(".amplifier")
    }

    /// The program, in an environment that holds nothing of this machine's.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_amplifier-sessions"));
        command.args(arguments).env_clear().stdin(Stdio::null());
        let folder = self.path().join("tmp");
        fs::create_dir_all(&folder).unwrap();
        command.env("HOME", self.path()).env("TMPDIR", folder).env("USER", "dana");
        // Where the system's loader finds DuckDB, for a program that is linked with it.
        command.envs(std::env::var_os("LD_LIBRARY_PATH").map(|folders| ("LD_LIBRARY_PATH", folders)));
        command.env("TZ", "UTC").env("COLUMNS", "100").env("LC_ALL", "C.UTF-8");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// The standard output of a run that is expected to succeed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        ran.stdout
    }

    /// The JSON of a run that is expected to succeed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[arguments, &["--json"]].concat())).unwrap()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap_or(-1);
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ran {
    /// Everything, as one text.
    pub(crate) fn all(&self) -> String {
        format!("exit code {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

/// A home whose default store holds the samples. Tests that use it only read.
pub(crate) static SYNCED: LazyLock<Home> = LazyLock::new(|| {
    let home = Home::with_samples();
    home.ok(&["sync"]);
    home
});

/// The samples' folder, which holds `projects/`.
fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
            // A file that changed a moment ago may change again without showing it, and is read again.
            let last_week = SystemTime::now() - Duration::from_secs(7 * 24 * 3600);
            fs::File::options().write(true).open(target).unwrap().set_modified(last_week).unwrap();
        }
    }
}
