//! The HNSW index: it is made if DuckDB's extension VSS is available, used by searches without filters, and never
//! required.

use std::{fs, path::PathBuf};

use amplifier_session_core::{
    Scope, SessionStorage,
    model::{ContentType, Role, UserId},
    search::{SearchFilter, SearchResults, VectorSearchOptions},
    storage::VectorsOf,
};
use amplifier_session_duckdb::{Access, DuckDb, HnswOptions};
use amplifier_session_testkit::{FakeEmbedding, erasure::files_with, lines};
use duckdb::{Connection, params};

use super::support::{Folder, number, storage, target, whole};

/// The folder of the extension, set by `./test`.
pub(super) fn extension() -> PathBuf {
    let Some(folder) = std::env::var_os("AMPLIFIER_TEST_DUCKDB_VSS") else {
        panic!("AMPLIFIER_TEST_DUCKDB_VSS has to name the folder that .ci/duckdb-vss prints");
    };
    folder.into()
}

/// Opens the store with an HNSW index by the extension in `directory`.
pub(super) async fn with_hnsw(folder: &Folder, access: Access, directory: PathBuf) -> SessionStorage {
    let options = HnswOptions::default().with_extension_directory(Some(directory));
    let backend = DuckDb::open(folder.database(), access).await.unwrap();
    backend.use_hnsw(options);
    storage(backend)
}

async fn hnsw(folder: &Folder) -> SessionStorage {
    with_hnsw(folder, Access::ReadWrite, extension()).await
}

pub(super) fn hnsw_file(folder: &Folder) -> PathBuf {
    folder.path().join("sessions.duckdb.hnsw")
}

/// Eight of four hundred words, different for each `n`.
fn words(n: usize) -> String {
    let mut state = n as u64 * 2 + 1;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("word{}", (state >> 33) % 400)
    };
    (0..8).map(|_| word()).collect::<Vec<_>>().join(" ")
}

/// Writes messages of a session, each with one vector.
async fn put(storage: &SessionStorage, session: usize, messages: std::ops::Range<usize>) {
    let lines = messages.map(|n| lines::user(&words(session * 1_000 + n))).collect();
    storage.ingestion().sync_transcript_lines(&target(&format!("s{session}")), whole(lines)).await.unwrap();
}

async fn nearest(storage: &SessionStorage, words: &str, limit: usize) -> SearchResults {
    let options = VectorSearchOptions::new(FakeEmbedding::new().vector(words)).with_limit(limit);
    storage.search().vector_search(&Scope::Everyone, &options).await.unwrap()
}

/// The similarities of the ten nearest, best first. Checks that there are no notices.
async fn by_hnsw(storage: &SessionStorage, queries: &[String]) -> Vec<Vec<f32>> {
    let mut answers = Vec::new();
    for query in queries {
        let found = nearest(storage, query, 10).await;
        assert!(found.notices.is_empty(), "{:?}", found.notices);
        answers.push(found.results.into_iter().map(|result| result.score).collect());
    }
    answers
}

/// The share of the ten nearest vectors, computed by DuckDB over all rows, that was found. The store must not be open.
fn recall(folder: &Folder, queries: &[String], answers: &[Vec<f32>]) -> f64 {
    let connection = folder.connection();
    let mut found = 0;
    for (query, answer) in queries.iter().zip(answers) {
        let vector = FakeEmbedding::new().vector(query);
        let sql = format!(
            "SELECT min(near) FROM (
                SELECT array_cosine_similarity(vector, CAST(CAST(? AS VARCHAR) AS FLOAT[{}])) AS near
                FROM transcript_vectors ORDER BY near DESC LIMIT 10
            )",
            vector.len()
        );
        let tenth: f32 =
            connection.query_row(&sql, params![format!("{vector:?}")], |row| row.get(0)).unwrap();
        assert!(answer.is_sorted_by(|a, b| a >= b), "{answer:?}");
        found += answer.iter().filter(|near| **near >= tenth - 1e-5).count();
    }
    found as f64 / (10 * queries.len()) as f64
}

fn queries() -> Vec<String> {
    (0..60).map(|n| words(n * 37 + 5)).collect()
}

/// The HNSW file, opened as by another program with the extension.
fn opened(folder: &Folder) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    let (extension, file) = (extension(), hnsw_file(folder));
    let load = format!(
        "LOAD '{}'; SET hnsw_enable_experimental_persistence = true; ATTACH '{}' AS hnsw; USE hnsw",
        extension.join("vss.duckdb_extension").display(),
        file.display()
    );
    connection.execute_batch(&load).unwrap();
    connection
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_extension_everything_works_with_a_notice() {
    let folder = Folder::new();
    let none = folder.path().join("extensions");
    let storage = with_hnsw(&folder, Access::ReadWrite, none.clone()).await;
    put(&storage, 0, 0..20).await;
    storage.update_index().await.unwrap();
    let found = nearest(&storage, &words(3), 10).await;
    assert_eq!(found.results.len(), 10);
    assert_eq!(found.results[0].sequence, 3);
    let [notice] = found.notices.as_slice() else { panic!("{:?}", found.notices) };
    for says in ["the HNSW index was not used", "vss", &none.display().to_string()] {
        assert!(notice.contains(says), "{notice}");
    }
    assert!(!hnsw_file(&folder).exists());
    put(&storage, 0, 0..30).await;
    drop(storage);
    assert_eq!(number(&folder.connection(), "SELECT count(*) FROM transcript_vectors"), 30);
}

#[ignore = "needs DuckDB's extension: AMPLIFIER_TEST_DUCKDB_VSS, see .ci/duckdb-vss"]
#[tokio::test(flavor = "multi_thread")]
async fn the_index_finds_what_sql_finds() {
    let folder = Folder::new();
    let storage = hnsw(&folder).await;
    for session in 0..16 {
        put(&storage, session, 0..250).await;
    }
    storage.update_index().await.unwrap();
    // Added to the existing index, which is not rebuilt; and removed from it.
    put(&storage, 16, 0..100).await;
    put(&storage, 3, 0..200).await;
    storage.update_index().await.unwrap();
    let queries = queries();
    let answers = by_hnsw(&storage, &queries).await;
    drop(storage);
    let recall = recall(&folder, &queries, &answers);
    assert!(recall >= 0.99, "{recall}");

    // The store's own file has no index. The other file has a table with an index, and no log.
    assert_eq!(number(&folder.connection(), "SELECT count(*) FROM duckdb_indexes()"), 0);
    assert!(!folder.path().join("sessions.duckdb.hnsw.wal").exists());
    let other = opened(&folder);
    let of_store = format!("ATTACH '{}' AS store (READ_ONLY)", folder.database().display());
    other.execute_batch(&of_store).unwrap();
    let alive = "SELECT count(*) FROM vectors SEMI JOIN store.transcript_vectors USING (key)";
    assert_eq!(number(&other, alive), 4_050);
    assert_eq!(number(&other, "SELECT removed FROM held"), 50);
    let plan: String = other
        .query_row(
            "EXPLAIN SELECT key FROM vectors ORDER BY array_cosine_distance(vector,
                 CAST((SELECT list(1.0) FROM range(64)) AS FLOAT[64])) LIMIT 10",
            [],
            |row| row.get(1),
        )
        .unwrap();
    assert!(!plan.contains("HNSW_INDEX_SCAN"), "{plan}");
    let ones = vec![1.0_f32; 64];
    let sql = "EXPLAIN SELECT key FROM vectors ORDER BY array_cosine_distance(vector, CAST(?1 AS FLOAT[64])) LIMIT 10";
    let plan: String = other.query_row(sql, [format!("{ones:?}")], |row| row.get(1)).unwrap();
    assert!(plan.contains("HNSW_INDEX_SCAN"), "{plan}");
}

#[ignore = "needs DuckDB's extension: AMPLIFIER_TEST_DUCKDB_VSS, see .ci/duckdb-vss"]
#[tokio::test(flavor = "multi_thread")]
async fn filtered_searches_do_not_use_the_hnsw_index() {
    let folder = Folder::new();
    let storage = hnsw(&folder).await;
    put(&storage, 0, 0..400).await;
    storage.update_index().await.unwrap();
    drop(storage);
    // Swaps messages 7 and 8 in the HNSW index, so that a search that uses the index does not find message 7.
    let connection = opened(&folder);
    let key = |sequence: u32| {
        let sql = format!("SELECT key FROM transcript_vectors WHERE sequence = {sequence}");
        number(&folder.connection(), &sql)
    };
    let swap = "UPDATE vectors SET key = ?1 + ?2 - key WHERE key IN (?1, ?2)";
    connection.execute(swap, [key(7), key(8)]).unwrap();
    connection.execute_batch("CHECKPOINT").unwrap();
    drop(connection);

    for access in [Access::ReadWrite, Access::ReadOnly] {
        let storage = with_hnsw(&folder, access, extension()).await;
        let vector = || VectorSearchOptions::new(FakeEmbedding::new().vector(&words(7))).with_limit(3);
        let asks_it = async |scope: Scope, options: VectorSearchOptions| {
            let found = storage.search().vector_search(&scope, &options).await.unwrap();
            assert!(found.notices.is_empty(), "{:?}", found.notices);
            found.results.iter().all(|result| result.sequence != 7)
        };
        let ana = || Scope::User(UserId::new("ana").unwrap());
        assert!(asks_it(Scope::Everyone, vector()).await);
        // All messages are hers.
        assert!(asks_it(ana(), vector()).await);
        let questions = [ContentType::UserQuery].into_iter().collect();
        assert!(!asks_it(ana(), vector().with_content_types(questions)).await);
        let by_role = SearchFilter::default().with_role(Role::User);
        assert!(!asks_it(ana(), vector().with_filter(by_role)).await);
        let by_project = SearchFilter::default().with_project(target("s").project_slug);
        assert!(!asks_it(Scope::Everyone, vector().with_filter(by_project)).await);
        drop(storage);
    }
    let storage = hnsw(&folder).await;
    let mut others = target("s0");
    others.key.user_id = UserId::new("ben").unwrap();
    storage.ingestion().sync_transcript_lines(&others, whole(vec![lines::user(&words(7))])).await.unwrap();
    storage.update_index().await.unwrap();
    let options = VectorSearchOptions::new(FakeEmbedding::new().vector(&words(7))).with_limit(1);
    let hers = storage.search().vector_search(&Scope::User(target("s").key.user_id), &options).await.unwrap();
    assert_eq!(hers.results[0].sequence, 7);
    assert_eq!(hers.results[0].user_id.as_str(), "ana");
}

#[ignore = "needs DuckDB's extension: AMPLIFIER_TEST_DUCKDB_VSS, see .ci/duckdb-vss"]
#[tokio::test(flavor = "multi_thread")]
async fn an_outdated_index_is_not_used_until_updated() {
    let folder = Folder::new();
    let storage = hnsw(&folder).await;
    let says = async |what: &str| {
        let found = nearest(&storage, &words(3), 5).await;
        assert_eq!(found.results[0].sequence, 3);
        match found.notices.as_slice() {
            [] => assert_eq!(what, ""),
            [notice] => assert!(!what.is_empty() && notice.contains(what), "{notice}"),
            notices => panic!("{notices:?}"),
        }
    };
    put(&storage, 0, 0..20).await;
    says("does not exist yet").await;
    storage.update_index().await.unwrap();
    says("").await;
    put(&storage, 1, 0..5).await;
    says("not up to date").await;
    storage.update_index().await.unwrap();
    says("").await;
    // Truncates the transcript.
    put(&storage, 0, 0..19).await;
    says("not up to date").await;
    storage.update_index().await.unwrap();
    says("").await;
    // A write without vectors does not outdate the index.
    storage.ingestion().sync_event_lines(&target("s0"), whole(vec![lines::logger_event("x")])).await.unwrap();
    says("").await;
    let [ana, ben] = ["ana", "ben"].map(|user| UserId::new(user).unwrap());
    storage.backend().rename_user(&ana, &ben).await.unwrap();
    says("").await;
    // Another model, with vectors of another length.
    let other = FakeEmbedding::new().with_model("other").with_dimensions(24);
    let vector = other.vector(&words(3));
    let storage = storage.with_embedding(Some(std::sync::Arc::new(other)));
    assert!(
        storage
            .vectors()
            .rebuild(&VectorsOf::user(ben.clone()), &mut |_| {})
            .await
            .unwrap()
            .failure
            .is_none()
    );
    storage.update_index().await.unwrap();
    let options = VectorSearchOptions::new(vector).with_limit(1);
    let found = storage.search().vector_search(&Scope::Everyone, &options).await.unwrap();
    assert_eq!((found.results[0].sequence, found.notices), (3, vec![]));
    drop(storage);
    assert_eq!(number(&opened(&folder), "SELECT count(*) FROM vectors WHERE len(vector) = 24"), 24);
}

#[ignore = "needs DuckDB's extension: AMPLIFIER_TEST_DUCKDB_VSS, see .ci/duckdb-vss"]
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_or_foreign_hnsw_index_is_rebuilt() {
    let folder = Folder::new();
    let storage = hnsw(&folder).await;
    put(&storage, 0, 0..600).await;
    storage.update_index().await.unwrap();
    drop(storage);
    let (file, log) = (hnsw_file(&folder), folder.path().join("sessions.duckdb.hnsw.wal"));
    let good = fs::read(&file).unwrap();
    let elsewhere = Folder::new();
    let other = hnsw(&elsewhere).await;
    put(&other, 0, 0..600).await;
    other.update_index().await.unwrap();
    drop(other);
    let foreign = fs::read(hnsw_file(&elsewhere)).unwrap();
    let overwritten = {
        let mut bytes = good.clone();
        let length = bytes.len();
        bytes[12_288..length].fill(0x5a);
        bytes
    };
    for (what, bytes, log_bytes) in [
        ("none", None, None),
        ("empty", Some(Vec::new()), None),
        ("no database", Some(b"no database at all".to_vec()), None),
        ("cut off", Some(good[..good.len() / 2].to_vec()), None),
        ("overwritten", Some(overwritten), None),
        ("of another store", Some(foreign), None),
        ("not written to its end", Some(good.clone()), Some(b"some log".to_vec())),
    ] {
        let _ = fs::remove_file(&file);
        bytes.into_iter().for_each(|bytes| fs::write(&file, bytes).unwrap());
        log_bytes.into_iter().for_each(|bytes| fs::write(&log, bytes).unwrap());
        let storage = hnsw(&folder).await;
        for notices in [1, 0] {
            let found = nearest(&storage, &words(3), 5).await;
            assert_eq!((found.results.len(), found.results[0].sequence), (5, 3), "{what}");
            assert_eq!(found.notices.len(), notices, "{what}: {:?}", found.notices);
            storage.update_index().await.unwrap();
        }
        drop(storage);
        assert!(!log.exists(), "{what}");
    }
}

#[ignore = "needs DuckDB's extension: AMPLIFIER_TEST_DUCKDB_VSS, see .ci/duckdb-vss"]
#[tokio::test(flavor = "multi_thread")]
async fn deleted_vectors_are_removed_from_the_hnsw_index() {
    let folder = Folder::new();
    let storage = hnsw(&folder).await;
    put(&storage, 0, 0..20).await;
    put(&storage, 1, 0..20).await;
    storage.update_index().await.unwrap();
    drop(storage);
    assert!(hnsw_file(&folder).exists());
    let vector = FakeEmbedding::new().vector(&words(3));
    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    assert!(files_with(folder.path(), &bytes[..32]).contains(&"sessions.duckdb.hnsw".to_owned()));
    // Also if the HNSW index is no longer enabled.
    let storage = folder.storage().await;
    let target = target("s0");
    storage
        .sessions()
        .delete_session(&target.key.user_id, &target.project_slug, &target.key.session_id)
        .await
        .unwrap();
    drop(storage);
    assert!(!hnsw_file(&folder).exists());
    assert_eq!(files_with(folder.path(), &bytes[..32]), Vec::<String>::new());
}

#[cfg(unix)]
#[ignore = "needs DuckDB's extension: AMPLIFIER_TEST_DUCKDB_VSS, see .ci/duckdb-vss"]
#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_can_access_the_hnsw_file() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new();
    let storage = hnsw(&folder).await;
    for messages in [20, 25] {
        put(&storage, 0, 0..messages).await;
        storage.update_index().await.unwrap();
        let mode = fs::metadata(hnsw_file(&folder)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
    let places = storage.backend().info().places;
    assert!(places.iter().any(|place| place.location.ends_with(".hnsw")), "{places:?}");
}

/// Users can make an index in the store's own file with the DuckDB program. DuckDB without the extension cannot write
/// to the table then, but the backend can.
#[ignore = "needs DuckDB's extension: AMPLIFIER_TEST_DUCKDB_VSS, see .ci/duckdb-vss"]
#[tokio::test(flavor = "multi_thread")]
async fn an_index_in_the_stores_own_file_is_removed() {
    let folder = Folder::new();
    put(&folder.storage().await, 0, 0..20).await;
    let connection = Connection::open_in_memory().unwrap();
    let make = format!(
        "LOAD '{}'; SET hnsw_enable_experimental_persistence = true; ATTACH '{}' AS store; USE store;
         CREATE INDEX theirs ON transcript_vectors USING HNSW (vector) WITH (metric = 'cosine'); CHECKPOINT",
        extension().join("vss.duckdb_extension").display(),
        folder.database().display()
    );
    connection.execute_batch(&make).unwrap();
    drop(connection);
    assert_eq!(number(&folder.connection(), "SELECT count(*) FROM duckdb_indexes()"), 1);
    let read_only = storage(DuckDb::open(folder.database(), Access::ReadOnly).await.unwrap());
    assert_eq!(nearest(&read_only, &words(3), 1).await.results[0].sequence, 3);
    drop(read_only);
    let storage = folder.storage().await;
    put(&storage, 0, 0..15).await;
    put(&storage, 1, 0..15).await;
    drop(storage);
    assert_eq!(number(&folder.connection(), "SELECT count(*) FROM duckdb_indexes()"), 0);
    assert_eq!(number(&folder.connection(), "SELECT count(*) FROM transcript_vectors"), 30);
}
