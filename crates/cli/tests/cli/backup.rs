//! `backup`, and what is left of a process that is told to end or killed.

use std::{
    fs,
    path::Path,
    process::{Child, Stdio},
    time::Duration,
};

use rusqlite::Connection;

use crate::support::Home;

#[test]
fn a_store_in_use_is_copied_as_a_whole() {
    let home = Home::without_vectors();
    let at = |name: &str| home.path().join(name).display().to_string();
    let store = Connection::open(home.amplifier().join("sessions.sqlite")).unwrap();
    store.query_row("SELECT count(*) FROM sessions", [], |row| row.get::<_, u32>(0)).unwrap();
    // This stays in the log, because another connection has the store open.
    home.ok(&["edit", "38e6d1f5", "--name", "By hand"]);
    home.ok(&["export", "--out", &at("before.jsonl")]);
    // Somebody else writes meanwhile.
    store.execute_batch("BEGIN IMMEDIATE; UPDATE transcripts SET turn = 99").unwrap();
    let copied = home.json(&["backup", &at("copy.sqlite")]);
    assert_eq!(copied["file"], at("copy.sqlite"));
    let file = fs::metadata(at("copy.sqlite")).unwrap();
    assert_eq!(copied["bytes"], file.len());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    }
    drop(store);
    let copy = format!("sqlite:{}", at("copy.sqlite"));
    home.ok(&["export", "--out", &at("after.jsonl"), "--store", &copy]);
    assert!(
        fs::read(at("before.jsonl")).unwrap() == fs::read(at("after.jsonl")).unwrap(),
        "the exports differ"
    );
    // The next sync makes the index again.
    let search = ["search", "charged twice", "--mode", "full-text", "--no-refresh"];
    let search_copy = || home.json(&[&search[..], &["--store", &copy]].concat());
    let found = home.json(&search);
    assert_eq!(search_copy()["results"], found["results"]);
    home.ok(&["sync", "--store", &copy, "--embedding", "none"]);
    let copied = search_copy();
    assert_eq!((&copied["results"], &copied["notices"]), (&found["results"], &found["notices"]));

    let again = home.run(&["backup", &at("copy.sqlite")]);
    assert!(again.code == 1 && again.stderr.contains("copy.sqlite already exists"), "{}", again.all());
    let own = home.run(&["backup", &at(".amplifier/sessions.sqlite-wal")]);
    assert_eq!(own.code, 2, "{}", own.all());
    let missing = home.run(&["backup", &at("b.sqlite"), "--store", "sqlite:~/missing.sqlite"]);
    assert!(missing.code == 1 && missing.stderr.contains("no store at"), "{}", missing.all());
    assert!(!Path::new(&at("b.sqlite")).exists() && !Path::new(&at("missing.sqlite")).exists());
}

#[cfg(feature = "duckdb-system")]
#[test]
fn other_stores_are_exported() {
    let home = Home::new();
    home.shows("error_backup", &["backup", "b.duckdb", "--store", "duckdb:a.duckdb"]);
}

/// Begins a backup that has to wait because the store is locked, and waits for its unfinished file.
#[cfg(unix)]
fn waiting(home: &Home) -> Child {
    let file = home.path().join("copy.sqlite");
    let mut command = home.process(&["backup", file.to_str().unwrap()]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while unfinished(home) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

/// The number of unfinished files.
#[cfg(unix)]
fn unfinished(home: &Home) -> usize {
    let names = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with(".copy.sqlite.unfinished-")).count()
}

#[cfg(unix)]
#[test]
fn unfinished_files_are_removed() {
    use std::process::Command;

    let home = Home::without_vectors();
    let locked = Connection::open(home.amplifier().join("sessions.sqlite")).unwrap();
    locked
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; UPDATE transcripts SET turn = turn")
        .unwrap();
    let mut told = waiting(&home);
    let sent = Command::new("kill").args(["-TERM", &told.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(told.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(unfinished(&home), 0);

    let mut killed = waiting(&home);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(unfinished(&home), 1);
    drop(locked);
    home.ok(&["backup", home.path().join("copy.sqlite").to_str().unwrap()]);
    assert_eq!(unfinished(&home), 0);
}
