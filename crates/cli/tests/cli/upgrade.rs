//! `upgrade` as its users meet it, and killed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use amplifier_session_storage::{OpenOptions, open};
use amplifier_session_testkit::{
    python_library::{Dialect, PythonLibrary, assert_upgraded},
    rounds,
};
use rusqlite::Connection;

use crate::{support::Home, terminal::Terminal};

/// The default store, as the Python library wrote it.
fn old(home: &Home, generation: u32, more: &str) -> PathBuf {
    let file = home.amplifier().join("sessions.sqlite");
    fs::create_dir_all(home.amplifier()).unwrap();
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch(&PythonLibrary::new(generation, Dialect::Sqlite).sql()).unwrap();
    connection.execute_batch(more).unwrap();
    file
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn help() {
    crate::output::text("help_upgrade", &["upgrade", "--help"]);
}

#[test]
fn the_life_of_an_old_store() {
    let home = Home::new();
    home.shows("error_upgrade_missing", &["upgrade"]);
    let file = old(
        &home,
        2,
        "UPDATE transcript_vectors SET embedding_model = 'other' WHERE id LIKE '1%_msg_0_user_query_0'",
    );
    let before = fs::read(&file).unwrap();
    let root = home.path().join("root");
    fs::create_dir_all(root.join("projects")).unwrap();
    let sync = ["sync", "--root", root.to_str().unwrap()];
    for command in [&["sessions"][..], &["search", "x"], &sync, &["stats"], &["embeddings", "backfill"]] {
        let ran = home.run(command);
        assert_eq!(ran.code, 1, "{command:?}");
        assert!(
            ran.stderr.contains("Python library amplifier_session_storage, generation 2"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains(" upgrade` converts it to a store"), "{}", ran.stderr);
    }
    home.shows("error_old_store", &["sessions"]);
    let refused = home.run(&["--read-only", "upgrade"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(fs::read(&file).unwrap() == before);
    home.shows("upgrade_check", &["upgrade", "--check"]);
    home.shows("upgrade_check_json", &["upgrade", "--check", "--json"]);
    Terminal::new(&home).shows("upgrade_check_terminal", &["upgrade", "--check", "--color", "never"]);
    assert_eq!(names(&home.amplifier()), ["sessions.sqlite"]);
    assert!(fs::read(&file).unwrap() == before);
    home.shows("upgrade", &["upgrade"]);
    home.shows("upgrade_again", &["upgrade"]);
    home.shows("upgrade_again_json", &["upgrade", "--json"]);
    let backup = home.amplifier().join("sessions.sqlite.python-backup");
    assert!(fs::read(&backup).unwrap() == before);
    let backup = backup.to_str().unwrap();
    home.shows("upgrade_skipped", &["upgrade", backup]);
    home.shows("upgrade_other_store", &["--store", "sqlite:~/other.sqlite", "upgrade", backup, "--check"]);
    home.shows("upgrade_then_search", &["--user", "alice", "search", "answer1x2", "--limit", "1"]);
    home.shows("upgrade_then_embeddings", &["embeddings", "--scope", "all"]);
}

#[test]
fn an_unknown_version_is_refused_untouched() {
    let home = Home::new();
    let file = old(&home, 3, "UPDATE schema_meta SET value = '7'");
    let before = fs::read(&file).unwrap();
    home.shows("error_upgrade_newer", &["upgrade"]);
    assert_eq!(home.run(&["upgrade", "--check"]).code, 1);
    assert!(fs::read(&file).unwrap() == before);
    assert_eq!(names(&home.amplifier()), ["sessions.sqlite"]);
}

/// A program that may write to the file would go on writing to the backup.
#[cfg(unix)]
#[test]
fn a_file_that_another_program_has_open_is_not_renamed() {
    let home = Home::new();
    let file = old(&home, 2, "PRAGMA journal_mode = WAL");
    let program = Connection::open(&file).unwrap();
    program.query_row("SELECT count(*) FROM sessions", [], |_| Ok(())).unwrap();
    let before = names(&home.amplifier());
    let ran = home.call(&["upgrade"]).run_process();
    assert_eq!(ran.code, 1);
    let says = format!("another program (PID {}) has", std::process::id());
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    assert_eq!(names(&home.amplifier()), before);
    home.ok(&["--store", "sqlite:~/other.sqlite", "upgrade", file.to_str().unwrap()]);
    drop(program);
    home.ok(&["upgrade"]);
}

/// Killed at moments all over an upgrade, the old file is there under one of its names, and the next upgrade ends it.
#[test]
fn a_killed_upgrade_is_ended_by_the_next() {
    let moments = rounds(6, 36);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let begun = Instant::now();
    let home = Home::new();
    old(&home, 1, "");
    home.ok(&["upgrade"]);
    let mut whole = begun.elapsed();
    let mut killed = 0;
    for moment in 0..moments {
        let (home, generation) = (Home::new(), moment % 3 + 1);
        let file = old(&home, generation, "");
        let before = fs::read(&file).unwrap();
        let mut child =
            home.process(&["upgrade"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        let backup = home.amplifier().join("sessions.sqlite.python-backup");
        // Half of the runs are killed after a delay, the others when the backup exists, which hits the renames.
        let reached = || match moment % 2 {
            0 => begun.elapsed() >= whole * moment / moments,
            _ => backup.exists(),
        };
        while !reached() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(50));
        }
        let elapsed = begun.elapsed();
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            // The machine was slower when the time was measured.
            whole = whole.min(elapsed);
        } else {
            killed += 1;
        }
        let is_kept =
            [&file, &backup].into_iter().any(|file| fs::read(file).is_ok_and(|read| read == before));
        assert!(is_kept, "moment {moment}");
        home.ok(&["upgrade"]);
        assert!(fs::read(&backup).unwrap() == before, "moment {moment}");
        let left = names(&home.amplifier());
        assert_eq!(left, ["sessions.sqlite", "sessions.sqlite.index", "sessions.sqlite.python-backup"]);
        let url = format!("sqlite:{}", file.display());
        runtime.block_on(async { assert_upgraded(&open(&url, OpenOptions::default()).await.unwrap()).await });
    }
    assert!(killed > 0, "only {killed} upgrades were killed before they ended");
}
