//! Stores that can't be written: the file, its folder, or the index beside it.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::Command,
};

use rusqlite::Connection;

use super::{call::Ran, support::Home};

/// A home folder with a synced store in `~/kept`, which is read-only after [`Kept::protect`].
struct Kept {
    home: Home,
    scheme: &'static str,
}

impl Kept {
    fn new(scheme: &'static str) -> Self {
        let kept = Self { home: Home::with_samples(), scheme };
        kept.home.ok(&["sync", "--store", &kept.store()]);
        kept
    }

    fn folder(&self) -> PathBuf {
        self.home.path().join("kept")
    }

    fn file(&self) -> PathBuf {
        self.folder().join("sessions.db")
    }

    fn store(&self) -> String {
        format!("{}:{}", self.scheme, self.file().display())
    }

    /// Removes the permission to write from the folder and everything in it.
    fn protect(&self) {
        self.set_modes(0o400, 0o500);
    }

    fn set_modes(&self, file: u32, folder: u32) {
        for entry in fs::read_dir(self.folder()).unwrap() {
            let path = entry.unwrap().path();
            set_mode(&path, if path.is_dir() { folder } else { file });
        }
        set_mode(&self.folder(), folder);
    }

    /// Runs the program as a user to whom file permissions apply.
    fn run(&self, arguments: &[&str]) -> Ran {
        let store = self.store();
        let command = self.home.process(&[arguments, &["--store", &store]].concat());
        // The creator of a folder owns it.
        let is_root = fs::metadata(self.home.path()).unwrap().uid() == 0;
        let mut command = if is_root { without_rights_of_root(&command) } else { command };
        Ran::from(command.output().unwrap())
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // So that the folder can be removed.
        set_mode(&self.folder(), 0o700);
        self.set_modes(0o600, 0o700);
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Root ignores permissions, unless it runs without its capabilities.
pub(crate) fn without_rights_of_root(command: &Command) -> Command {
    let mut bound = Command::new("/usr/bin/setpriv");
    assert!(Path::new(bound.get_program()).exists(), "as root this test needs setpriv, of util-linux");
    bound.args(["--bounding-set", "-dac_override,-dac_read_search,-fowner"]).arg(command.get_program());
    bound.args(command.get_args()).env_clear();
    bound.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    bound
}

fn notes(ran: &Ran) -> Vec<&str> {
    ran.stderr.lines().filter(|line| line.starts_with("note:")).collect()
}

/// Commands that read have the same results as before, with one note, and create no files.
fn answers_as_before(kept: &Kept) {
    let archive = kept.home.path().join("archive.jsonl");
    let archive = archive.to_str().unwrap();
    let session = kept.home.json(&["sessions", "--limit", "1", "--store", &kept.store()]);
    let session = session["sessions"][0]["session_id"].as_str().unwrap().to_owned();
    let commands: [&[&str]; 11] = [
        &["sessions"],
        &["sessions", "--by", "project", "--since", "2020-01-01"],
        &["show", &session],
        &["show", &session, "--events"],
        &["show", "--context", &session, "--turn", "1"],
        &["events", "--limit", "5"],
        &["stats"],
        &["embeddings", "estimate"],
        &["search", "two workers", "--limit", "3"],
        &["search", "two workers", "--mode", "full-text", "--limit", "3"],
        &["export", "--out", archive],
    ];
    let before: Vec<Ran> = commands.iter().map(|command| kept.run(command)).collect();
    kept.protect();
    let names = kept.names();
    for (command, before) in commands.iter().zip(before) {
        let ran = kept.run(command);
        assert_eq!((ran.code, &ran.stdout), (0, &before.stdout), "{command:?}: {}", ran.all());
        let reported = notes(&ran);
        let others = notes(&before).len();
        assert_eq!(reported.len(), others + 1, "{command:?}: {}", ran.all());
        let said = reported.iter().filter(|note| note.starts_with("note: the store is read-only: ")).count();
        assert_eq!(said, 1, "{command:?}: {}", ran.all());
    }
    assert_eq!(kept.names(), names);
    let found = kept.run(&["search", "two workers", "--json"]).json();
    let notices = found["notices"].as_array().unwrap();
    assert!(notices.len() == 1 && notices[0].as_str().unwrap().contains("read-only"), "{notices:?}");
}

/// Commands that write fail with the reason.
fn refuses_to_write(kept: &Kept) {
    let session = kept.run(&["sessions", "--limit", "1", "--json"]).json();
    let session = session["sessions"][0]["session_id"].as_str().unwrap();
    let rewind = ["rewind", session, "--to-turn", "0", "--yes"];
    let commands: [&[&str]; 5] = [
        &["sync"],
        &["tag", session, "x"],
        &rewind,
        &["delete", session, "--yes"],
        &["embeddings", "backfill"],
    ];
    for command in commands {
        let ran = kept.run(command);
        assert_eq!(ran.code, 1, "{command:?}: {}", ran.all());
        assert!(ran.stderr.contains("error: the store is read-only: "), "{command:?}: {}", ran.all());
        assert!(ran.stderr.contains("hint: make the file and its folder writable"), "{}", ran.all());
    }
}

#[test]
fn a_sqlite_store_that_cannot_be_written_is_read() {
    let kept = Kept::new("sqlite");
    answers_as_before(&kept);
    refuses_to_write(&kept);
}

#[cfg(feature = "duckdb-system")]
#[test]
fn a_duckdb_store_that_cannot_be_written_is_read() {
    let kept = Kept::new("duckdb");
    answers_as_before(&kept);
    refuses_to_write(&kept);
    let asked = kept.run(&["sql", "SELECT count(*) AS n FROM sessions"]);
    assert_eq!(asked.code, 0, "{}", asked.all());
}

#[test]
fn reading_an_unwritable_file_creates_no_files_beside_it() {
    let kept = Kept::new("sqlite");
    set_mode(&kept.file(), 0o400);
    let names = kept.names();
    let ran = kept.run(&["sessions"]);
    assert_eq!((ran.code, notes(&ran).len()), (0, 1), "{}", ran.all());
    assert_eq!(kept.names(), names);
}

/// Another program was killed, or the folder was copied while one was writing: the newest rows are only in the log.
#[test]
fn rows_in_the_write_ahead_log_are_read() {
    let kept = Kept::new("sqlite");
    let (writing, log) = (kept.home.path().join("writing.db"), "sessions.db-wal");
    fs::copy(kept.file(), &writing).unwrap();
    let connection = Connection::open(&writing).unwrap();
    connection.execute("UPDATE sessions SET name = 'Only in the log'", []).unwrap();
    fs::copy(kept.home.path().join("writing.db-wal"), kept.folder().join(log)).unwrap();
    for entry in ["writing.db-wal", "writing.db-shm"] {
        assert!(kept.home.path().join(entry).exists());
    }
    kept.protect();
    let ran = kept.run(&["sessions"]);
    assert!(ran.code == 0 && ran.stdout.contains("Only in the log"), "{}", ran.all());
    assert!(!kept.folder().join("sessions.db-shm").exists());

    set_mode(&kept.folder().join(log), 0o000);
    let ran = kept.run(&["sessions"]);
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert!(ran.stderr.contains("sessions.db-wal holds changes and can't be read"), "{}", ran.all());
}

#[test]
fn an_earlier_layout_that_cannot_be_upgraded_is_read_from_a_copy() {
    let kept = Kept::new("sqlite");
    fs::remove_file(kept.file()).unwrap();
    let connection = Connection::open(kept.file()).unwrap();
    connection.pragma_update(None, "application_id", 0x416d_5373).unwrap();
    connection.pragma_update(None, "user_version", 10).unwrap();
    connection.execute_batch(include_str!("../../../sqlite/tests/store/layout_10.sql")).unwrap();
    drop(connection);
    kept.protect();
    let before = fs::read(kept.file()).unwrap();
    let ran = kept.run(&["sessions"]);
    assert!(ran.code == 0 && ran.stdout.contains("Rotten pears"), "{}", ran.all());
    assert!(notes(&ran).len() == 1 && ran.stderr.contains("an upgraded copy is read"), "{}", ran.all());
    assert_eq!(fs::read(kept.file()).unwrap(), before);
}

#[test]
fn a_search_works_without_an_unreadable_index() {
    let kept = Kept::new("sqlite");
    let search = ["search", "two workers", "--limit", "3"];
    let before = kept.run(&search);
    let index = kept.folder().join("sessions.db.index");
    set_mode(&index, 0o000);
    let ran = kept.run(&search);
    assert_eq!((ran.code, notes(&ran).len()), (0, 1), "{}", ran.all());
    let place =
        |text: &str| text.lines().map(|line| line.split('\t').take(4).collect()).collect::<Vec<String>>();
    assert_eq!(place(&ran.stdout), place(&before.stdout));
    set_mode(&index, 0o700);
    assert_eq!(notes(&kept.run(&search)).len(), 0);
}

/// As left by a process that read the store while it was read-only and was killed.
#[test]
fn files_left_read_only_beside_a_store_do_not_prevent_writes() {
    let kept = Kept::new("sqlite");
    let session = kept.run(&["sessions", "--limit", "1", "--json"]).json();
    let session = session["sessions"][0]["session_id"].as_str().unwrap();
    for suffix in ["-wal", "-shm"] {
        let left = kept.folder().join(format!("sessions.db{suffix}"));
        fs::write(&left, "").unwrap();
        set_mode(&left, 0o400);
    }
    let ran = kept.run(&["tag", session, "writable"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
}
