//! `copy`, and `export --vectors`.

use std::fs;

use crate::support::{Home, SYNCED};

/// A store of another kind, if this build has one.
const OTHER: &str =
    if cfg!(feature = "duckdb-system") { "duckdb:~/other.duckdb" } else { "sqlite:~/other.sqlite" };

/// A home folder with the samples and their vectors in the default store.
fn synced() -> Home {
    let home = Home::with_samples();
    home.ok(&["sync"]);
    home
}

/// The archive of a store, without vectors, which stores may round.
fn archive(home: &Home, store: &str) -> String {
    let file = home.path().join("archive.jsonl");
    home.ok(&["export", "--out", file.to_str().unwrap(), "--store", store]);
    fs::read_to_string(file).unwrap()
}

#[test]
fn sessions_and_vectors_are_copied_to_another_kind_of_store_and_back() {
    let home = synced();
    home.ok(&["edit", "38e6d1f5", "--name", "By hand"]);
    home.shows("copy", &["copy", "--to", OTHER]);
    home.shows("copy_again", &["copy", "--to", OTHER]);
    let back = "sqlite:~/back.sqlite";
    home.shows("copy_back", &["copy", "--from", OTHER, "--to", back]);
    let ours = archive(&home, "sqlite:~/.amplifier/sessions.sqlite");
    assert!(ours == archive(&home, OTHER) && ours == archive(&home, back), "the stores differ");
    let search = ["search", "why was the customer charged twice", "--no-refresh"];
    assert_eq!(
        home.json(&search)["results"],
        home.json(&[&search[..], &["--store", back]].concat())["results"]
    );
    for store in [OTHER, back] {
        let synced = home.json(&["sync", "--store", store]);
        assert_eq!(synced["sessions"]["unchanged"], 12, "{synced}");
        assert_eq!(synced["vectors"], serde_json::json!({}), "{synced}");
        home.json(&["verify", "--store", store]);
    }
    let report = home.json(&["copy", "--to", OTHER]);
    assert_eq!((&report["sessions"], &report["unchanged"]), (&0.into(), &12.into()), "{report}");
}

#[test]
fn sessions_that_differ_are_named_and_left_alone() {
    let home = synced();
    home.ok(&["copy", "--to", OTHER]);
    home.ok(&["edit", "38e6d1f5", "--name", "Mine", "--store", OTHER]);
    home.shows("error_copy_conflict", &["copy", "--to", OTHER]);
    let report = home.run_json(&["copy", "--to", OTHER]);
    assert_eq!((report.code, &report.json()["not_copied"][0]["because"]), (1, &"conflict".into()));
    home.shows("copy_replace", &["copy", "--to", OTHER, "--replace"]);
    home.ok(&["delete", "38e6d1f5", "--yes", "--store", OTHER]);
    home.shows("copy_deleted", &["copy", "--to", OTHER]);
}

#[test]
fn a_project_and_a_period_choose_sessions() {
    let home = synced();
    home.shows("copy_project", &["copy", "--to", OTHER, "--project", "-home-dana-payments-api"]);
    home.shows("copy_nothing", &["copy", "--to", OTHER, "--project", "nowhere"]);
    let report = home.run_json(&["copy", "--to", "sqlite:~/late.sqlite", "--since", "2100-01-01"]);
    assert_eq!(report.code, 3);
}

#[test]
fn vectors_of_another_model_are_left_out() {
    let home = synced();
    let other = ["--store", "sqlite:~/other.sqlite"];
    home.ok(
        &[&["copy", "--to", "sqlite:~/other.sqlite"], &["--project", "-home-dana-payments-api"][..]].concat()
    );
    // As if another model had made the vectors there.
    let file = home.path().join("other.sqlite");
    let sql = "UPDATE schema_meta SET value = replace(value, '\"model\":\"', '\"model\":\"other-')";
    rusqlite::Connection::open(file).unwrap().execute(sql, []).unwrap();
    home.shows("copy_other_model", &["copy", "--to", "sqlite:~/other.sqlite"]);
    assert_eq!(home.json(&[&["sessions"], &other[..]].concat())["sessions"].as_array().unwrap().len(), 12);
}

#[test]
fn what_can_not_be_copied_is_an_error() {
    let home = synced();
    home.shows("error_copy_same", &["copy", "--to", "sqlite:~/.amplifier/../.amplifier/sessions.sqlite"]);
    home.shows("error_copy_missing", &["copy", "--from", "sqlite:~/missing.sqlite", "--to", OTHER]);
    assert!(!home.path().join("missing.sqlite").exists());
    assert_eq!(SYNCED.run(&["copy"]).code, 2);
}

#[test]
fn archives_can_have_vectors() {
    let home = synced();
    let file = home.path().join("vectors.jsonl");
    let file = file.to_str().unwrap();
    home.shows("export_vectors", &["export", "--out", file, "--vectors"]);
    home.shows("import_vectors", &["import", file, "--store", "sqlite:~/other.sqlite"]);
    let search = ["search", "why was the customer charged twice", "--no-refresh"];
    let other = [&search[..], &["--store", "sqlite:~/other.sqlite"]].concat();
    assert_eq!(home.json(&search)["results"], home.json(&other)["results"]);
}
