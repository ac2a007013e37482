//! Stores of which a part can't be read: `salvage`, and what other commands say.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::support::Home;

const PAGE: usize = 8192;

/// A home folder with a store, and the store's file.
fn home() -> (Home, PathBuf) {
    let home = Home::with_samples();
    home.ok(&["sync"]);
    let file = home.amplifier().join("sessions.sqlite");
    (home, file)
}

/// Destroys a page of the file.
fn destroy(file: &Path, page: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[page * PAGE..][..PAGE].fill(0x5a);
    fs::write(file, bytes).unwrap();
}

/// The first page with these bytes: those of a row.
fn page_with(file: &Path, text: &str) -> usize {
    let bytes = fs::read(file).unwrap();
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    at / PAGE
}

#[test]
fn a_whole_store_is_copied() {
    let (home, _) = home();
    // As a killed `salvage` leaves it.
    let left = home.path().join(".saved.sqlite.unfinished-1");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("saved.sqlite"), "half").unwrap();
    home.shows("salvage", &["salvage", "--to", "~/saved.sqlite"]);
    assert!(!left.exists());
    let saved = format!("sqlite:{}", home.path().join("saved.sqlite").display());
    let [before, after] = [home.json(&["sessions"]), home.json(&["sessions", "--store", &saved])];
    assert_eq!(before, after);
    let found = home.json(&["search", "charged twice", "--no-refresh", "--store", &saved]);
    assert!(!found["results"].as_array().unwrap().is_empty(), "{found}");
    home.shows("error_salvage_existing", &["salvage", "--to", "~/saved.sqlite"]);
    home.shows(
        "error_salvage_missing",
        &["salvage", "--to", "~/b.sqlite", "--store", "sqlite:~/missing.sqlite"],
    );
}

#[test]
fn a_damaged_page_is_named_and_the_rest_is_saved() {
    let (home, file) = home();
    let session = "38e6d1f5";
    let sql = "SELECT raw FROM transcripts WHERE session_id LIKE '38e6d1f5%' AND sequence = 1";
    let line: String =
        rusqlite::Connection::open(&file).unwrap().query_row(sql, [], |row| row.get(0)).unwrap();
    destroy(&file, page_with(&file, &line));
    let archive = home.path().join("archive.jsonl");
    for command in [&["export", "--out", archive.to_str().unwrap()][..], &["show", session]] {
        let ran = home.run(command);
        assert_eq!(ran.code, 1, "{command:?}: {}", ran.all());
        assert!(
            ran.stderr.contains("damaged: message") && ran.stderr.contains("salvage --to"),
            "{}",
            ran.all()
        );
        assert!(ran.stderr.contains("sessions.sqlite"), "{}", ran.all());
    }
    let ran = home.run_json(&["salvage", "--to", "~/saved.sqlite"]);
    assert_eq!(ran.code, 1, "{}", ran.all());
    let report = ran.json();
    assert_eq!(report["sessions"], 12, "{report}");
    let missing = report["missing"].as_array().unwrap();
    assert!(!missing.is_empty() && missing.iter().all(|row| row["sequence"].is_number()), "{report}");
    // The folders are still there.
    let saved = format!("sqlite:{}", home.path().join("saved.sqlite").display());
    let synced = home.json(&["sync", "--store", &saved]);
    assert!(synced["messages"]["written"].as_u64().is_some_and(|written| written > 0), "{synced}");
    home.ok(&["export", "--out", archive.to_str().unwrap(), "--store", &saved]);
}

#[test]
fn a_destroyed_first_page_is_explained() {
    let (home, file) = home();
    destroy(&file, 0);
    home.shows("error_first_page", &["sessions"]);
    let ran = home.run_json(&["salvage", "--to", "~/saved.sqlite"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    assert_eq!(ran.json()["sessions"], 12);
}

#[cfg(feature = "duckdb-system")]
#[test]
fn other_stores_are_copied_by_opening_them() {
    let home = Home::with_samples();
    let synced = home.json(&["sync", "--store", "duckdb:~/a.duckdb"]);
    let report = home.json(&["salvage", "--to", "sqlite:~/b.sqlite", "--store", "duckdb:~/a.duckdb"]);
    assert_eq!(report["sessions"], 12);
    let made = synced["vectors"].as_object().unwrap().values().map(|count| count.as_u64().unwrap());
    assert_eq!(report["vectors"], made.sum::<u64>());
    assert_eq!(report["turns"], synced["turns"]);
}

#[cfg(unix)]
#[test]
fn temporary_files_of_killed_processes_are_removed_and_those_in_use_stay() {
    let home = Home::with_samples();
    let leftover = |name: &str| {
        let folder = home.path().join("tmp").join(format!(".amplifier-sessions.unfinished-{name}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("archive.jsonl"), "text of sessions").unwrap();
        folder
    };
    let (killed, used) = (leftover("killed"), leftover("used"));
    let lock = fs::File::open(&used).unwrap();
    lock.lock().unwrap();
    home.ok(&["sync", "--dry-run"]);
    assert!(!killed.exists() && used.join("archive.jsonl").exists());
    assert_eq!(fs::read_dir(used.parent().unwrap()).unwrap().count(), 1);
}
