//! Databases that the Python library itself wrote. The project has its own: `testkit::python_library`.

use std::{collections::BTreeMap, fs, io::Read as _, path::PathBuf};

use amplifier_session_storage::{
    OpenOptions, Scope, SessionStorage,
    backend::SessionQuery,
    model::Timestamp,
    open,
    search::{SearchOptions, VectorSearchOptions},
};
use serde_json::Value;

use crate::support::Home;

/// A message by session and sequence: role, turn, time, content.
type Messages = BTreeMap<(String, u32), (String, Option<u32>, Timestamp, Value)>;

fn sample(name: &str) -> PathBuf {
    super::data("python-library-databases").join(name)
}

/// A copy of a sample, and its bytes.
fn copied(home: &Home, name: &str) -> (PathBuf, Vec<u8>) {
    let mut bytes = fs::read(sample(name)).unwrap();
    if name.ends_with(".gz") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).unwrap();
        bytes = plain;
    }
    let file = home.path().join("old");
    fs::write(&file, &bytes).unwrap();
    (file, bytes)
}

/// Upgrades a copy of a sample in place; returns its storage.
async fn upgraded(home: &Home, scheme: &str, name: &str, generation: u64) -> SessionStorage {
    let (file, bytes) = copied(home, name);
    let url = format!("{scheme}:{}", file.display());
    assert_eq!(home.run(&["--store", &url, "sessions"]).code, 1);
    let planned = home.json(&["--store", &url, "upgrade", "--check"]);
    assert!(fs::read(&file).unwrap() == bytes);
    let done = home.json(&["--store", &url, "upgrade"]);
    for report in [&planned, &done] {
        assert_eq!(report["generation"], generation);
        let counts = ["sessions", "messages", "events", "vectors"].map(|name| report[name].as_u64().unwrap());
        assert_eq!(counts, [3, 45, 12, 60]);
        assert_eq!(report["space"], serde_json::json!({"model": "fake-64", "dimensions": 64}));
    }
    assert!(fs::read(done["backup"].as_str().unwrap()).unwrap() == bytes);
    assert_eq!(home.json(&["--store", &url, "upgrade"])["outcome"], "up_to_date");
    open(&url, OpenOptions::default()).await.unwrap()
}

async fn messages(storage: &SessionStorage) -> Messages {
    let mut messages = Messages::new();
    for session in storage.sessions().search_sessions(&SessionQuery::new(Scope::Everyone)).await.unwrap() {
        let scope = Scope::from(session.user_id.clone());
        let id = &session.session_id;
        for message in storage.reading().get_transcript_lines(&scope, id, None, usize::MAX).await.unwrap() {
            let said = (message.role.to_string(), message.turn, message.ts, message.content());
            messages.insert((id.to_string(), message.sequence), said);
        }
    }
    messages
}

/// What the tables of a SQLite sample hold.
fn held(name: &str) -> (Messages, Vec<(String, u32, Vec<f32>)>) {
    let connection =
        rusqlite::Connection::open_with_flags(sample(name), rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY);
    let connection = connection.unwrap();
    let sql = "SELECT session_id, sequence, role, turn, ts, content_json FROM transcripts";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        let (ts, content): (String, String) = (row.get(4)?, row.get(5)?);
        let said = (
            row.get(2)?,
            row.get(3)?,
            Timestamp::parse(&ts).unwrap(),
            serde_json::from_str(&content).unwrap(),
        );
        Ok(((row.get(0)?, row.get(1)?), said))
    });
    let messages = rows.unwrap().map(Result::unwrap).collect();
    let sql = match name {
        "v1.sqlite" => {
            "SELECT session_id, sequence, coalesce(user_query_vector_json, assistant_response_vector_json, tool_output_vector_json)
             FROM transcripts"
        }
        _ => {
            "SELECT t.session_id, t.sequence, v.vector_json FROM transcript_vectors v JOIN transcripts t ON t.id = v.parent_id"
        }
    };
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        let vector: String = row.get(2)?;
        Ok((row.get(0)?, row.get(1)?, serde_json::from_str(&vector).unwrap()))
    });
    let vectors = rows.unwrap().map(Result::unwrap).collect();
    (messages, vectors)
}

/// Everything that the SQLite sample of a generation holds; those of DuckDB say the same.
async fn assert_holds(storage: &SessionStorage, name: &str) {
    let (expected, vectors) = held(name);
    assert_eq!(expected.len(), 45);
    assert_eq!(messages(storage).await, expected);
    for (session, sequence, vector) in vectors {
        // Some messages say the same, and so have the same vector.
        let options = VectorSearchOptions::new(vector).with_limit(45).with_min_similarity(Some(0.9999));
        let found = storage.search().vector_search(&Scope::Everyone, &options).await.unwrap().results;
        assert!(
            found.iter().any(|found| found.session_id.as_str() == session && found.sequence == sequence),
            "{session} {sequence}"
        );
    }
    let found = storage
        .search()
        .search_transcripts(&Scope::Everyone, &SearchOptions::new("packaging"))
        .await
        .unwrap();
    assert_eq!(found.results.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "reads files from outside: see .ci/outside"]
async fn sqlite_of_each_generation() {
    for (name, generation) in [("v1.sqlite", 1), ("v2.sqlite", 2)] {
        let home = Home::new();
        assert_holds(&upgraded(&home, "sqlite", name, generation).await, name).await;
    }
}

/// The HNSW index of the second is not needed, nor the extension that it was made with.
#[cfg(feature = "duckdb-system")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "reads files from outside: see .ci/outside"]
async fn duckdb_of_each_generation() {
    for (name, generation, same) in [("v1.duckdb.gz", 1, "v1.sqlite"), ("v2-hnsw.duckdb.gz", 2, "v2.sqlite")]
    {
        let home = Home::new();
        assert_holds(&upgraded(&home, "duckdb", name, generation).await, same).await;
    }
}

#[cfg(feature = "duckdb-system")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "reads files from outside: see .ci/outside"]
async fn sqlite_to_a_store_in_duckdb() {
    let home = Home::new();
    let (file, bytes) = copied(&home, "v2.sqlite");
    let url = format!("duckdb:{}", home.path().join("new.duckdb").display());
    let arguments = ["--store", &url, "upgrade", file.to_str().unwrap()];
    assert_eq!(home.json(&arguments)["sessions"], 3);
    assert_eq!(home.json(&arguments)["skipped"], 3);
    assert!(fs::read(&file).unwrap() == bytes);
    assert_holds(&open(&url, OpenOptions::default()).await.unwrap(), "v2.sqlite").await;
}
