//! The oldest store and archive that are carried over, with the model that is built in.

use std::fs;

use amplifier_session_testkit::earlier;
use rusqlite::Connection;

use crate::support::Home;

fn most_similar(home: &Home, store: &str) -> String {
    let search = [
        "search",
        "how are leaves and peelings layered",
        "--mode",
        "semantic",
        "--limit",
        "1",
        "--store",
        store,
    ];
    home.json(&search)["results"][0]["address"].as_str().unwrap().to_owned()
}

#[test]
fn a_store_with_layout_10_is_searched_completed_and_verified() {
    let (home, store) = (Home::new(), "sqlite:~/garden.sqlite");
    let connection = Connection::open(home.path().join("garden.sqlite")).unwrap();
    connection.pragma_update(None, "application_id", 0x416d_5373).unwrap();
    connection.pragma_update(None, "user_version", 10).unwrap();
    connection.execute_batch(include_str!("../../../sqlite/tests/store/layout_10.sql")).unwrap();
    drop(connection);
    assert_eq!(most_similar(&home, store), "22222222#1");
    assert_eq!(home.json(&["embeddings", "backfill", "--store", store])["messages"], 3);
    let verified = home.json(&["verify", "--store", store]);
    assert_eq!(verified["difference_count"], 0, "{verified}");
}

#[test]
fn an_archive_is_imported_with_its_vectors() {
    let (home, archive) = (Home::new(), "garden.jsonl");
    fs::write(home.path().join(archive), earlier::ARCHIVE).unwrap();
    let file = home.path().join(archive);
    let stores = ["sqlite:~/b.sqlite", "duckdb:~/b.duckdb"];
    for store in stores.into_iter().take(if cfg!(feature = "duckdb-system") { 2 } else { 1 }) {
        home.ok(&["import", file.to_str().unwrap(), "--store", store]);
        assert_eq!(most_similar(&home, store), "22222222#1");
    }
}
