//! Tables and views as other programs see them.

use std::sync::Arc;

use amplifier_session_core::{
    Scope, SessionStorage,
    embedding::EmbeddingProvider,
    model::RawJson,
    search::VectorSearchOptions,
    storage::{SyncLines, VectorsOf},
};
use amplifier_session_sql::views::{EVENTS_WITH_DATA, TRANSCRIPTS_WITH_CONTENT};
use amplifier_session_testkit::{
    FakeEmbedding,
    adr::{self, DescribedColumn},
    lines,
};
use duckdb::params;

use super::support::{Folder, number, target, text, whole};

fn vector_type(folder: &Folder) -> String {
    let sql = "SELECT data_type FROM duckdb_columns()
        WHERE table_name = 'transcript_vectors' AND column_name = 'vector'";
    text(&folder.connection(), sql)
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_are_arrays_of_the_length_of_their_model() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    let messages = whole(vec![lines::user("a green pear"), lines::assistant("a red apple")]);
    storage.ingestion().sync_transcript_lines(&target("s"), messages).await.unwrap();
    let length = FakeEmbedding::new().vector("x").len();
    drop(storage);
    assert_eq!(vector_type(&folder), format!("FLOAT[{length}]"));
    assert_eq!(number(&folder.connection(), "SELECT count(*) FROM vectors_of_generations"), 2);

    // Another model, with vectors of another length.
    let other: Arc<dyn EmbeddingProvider> =
        Arc::new(FakeEmbedding::new().with_model("other").with_dimensions(24));
    let backend = Arc::new(folder.backend().await);
    let storage = SessionStorage::new(backend).with_embedding(Some(other));
    let of = VectorsOf::user(target("s").key.user_id);
    assert!(storage.vectors().rebuild(&of, &mut |_| {}).await.unwrap().failure.is_none());
    drop(storage);
    assert_eq!(vector_type(&folder), "FLOAT[24]");
    let connection = folder.connection();
    assert_eq!(number(&connection, "SELECT count(*) FROM other_vectors"), 0);
    assert_eq!(text(&connection, "SELECT any_value(embedding_model) FROM vectors_of_generations"), "other");
}

#[tokio::test(flavor = "multi_thread")]
async fn views_have_the_contents_of_lines() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    let mut raw: Vec<RawJson> = vec![lines::user("a pear").at("2026-01-05T08:00:00+02:00").raw()];
    raw.push(RawJson::new(b"{\"role\":\"user\",\"content\":\"\xff\"}".to_vec()));
    storage.ingestion().sync_transcript_lines(&target("s"), SyncLines::whole(raw)).await.unwrap();
    let event = lines::logger_event("tool:post").data(serde_json::json!({"tool_name": "bash"}));
    storage.ingestion().sync_event_lines(&target("s"), whole(vec![event])).await.unwrap();
    drop(storage);
    let connection = folder.connection();
    let first = "FROM transcripts_with_content WHERE sequence = 0";
    assert_eq!(text(&connection, &format!("SELECT id {first}")), "s_msg_0");
    assert_eq!(text(&connection, &format!("SELECT content ->> '$' {first}")), "a pear");
    assert_eq!(text(&connection, &format!("SELECT CAST(ts AS VARCHAR) {first}")), "2026-01-05 06:00:00");
    // Invalid UTF-8 is stored, but the view has `NULL`.
    let second = "FROM transcripts_with_content WHERE sequence = 1";
    assert_eq!(number(&connection, &format!("SELECT count(*) {second} AND content IS NULL")), 1);
    assert_eq!(text(&connection, "SELECT data ->> '$.tool_name' FROM events_with_data"), "bash");
    for view in [TRANSCRIPTS_WITH_CONTENT, EVENTS_WITH_DATA] {
        let sql = "SELECT column_name FROM duckdb_columns() WHERE table_name = ?1 ORDER BY column_index";
        let mut statement = connection.prepare(sql).unwrap();
        let names = statement.query_map([view.name], |row| row.get(0)).unwrap();
        let names: Vec<String> = names.map(Result::unwrap).collect();
        assert_eq!(names, view.columns().collect::<Vec<_>>(), "{}", view.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nearest_vectors_agree_with_duckdb() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    let words = ["pear", "apple", "plum", "fig", "rose", "river", "stone", "lamp"];
    for session in 0..6 {
        let message = |n: usize| {
            let word = |k: usize| words[(n * 7 + session * 3 + k * k) % words.len()];
            lines::user(&format!("{} {} {} {n}", word(0), word(n % 5), word(session)))
        };
        let messages = whole((0..40).map(message).collect());
        storage.ingestion().sync_transcript_lines(&target(&format!("s{session}")), messages).await.unwrap();
    }
    storage.update_index().await.unwrap();
    let queries: Vec<Vec<f32>> =
        words.iter().map(|word| FakeEmbedding::new().vector(&format!("{word} pear 3"))).collect();
    let mut answers = Vec::new();
    for query in &queries {
        let options = VectorSearchOptions::new(query.clone()).with_limit(10);
        let results = storage.search().vector_search(&Scope::Everyone, &options).await.unwrap().results;
        answers.push(results.into_iter().map(|result| result.score).collect::<Vec<f32>>());
    }
    drop(storage);

    let connection = folder.connection();
    let length = queries[0].len();
    let sql = format!(
        "SELECT array_cosine_similarity(vector, CAST(CAST(? AS VARCHAR) AS FLOAT[{length}])) AS near
         FROM transcript_vectors ORDER BY near DESC LIMIT 10"
    );
    for (query, answer) in queries.iter().zip(answers) {
        let mut statement = connection.prepare(&sql).unwrap();
        let near = statement.query_map(params![format!("{query:?}")], |row| row.get(0)).unwrap();
        let near: Vec<f32> = near.map(Result::unwrap).collect();
        assert_eq!(answer.len(), near.len());
        for (ours, theirs) in answer.iter().zip(&near) {
            assert!((ours - theirs).abs() < 1e-5, "{answer:?} {near:?}");
        }
    }
}

/// There are no indexes: DuckDB checks unique ones before the deletions of the same transaction. Writers replace the
/// vector of a turn instead, which a promise of the conformance suite checks.
#[tokio::test(flavor = "multi_thread")]
async fn vectors_of_turns_are_in_the_table_of_the_adr() {
    let folder = Folder::new();
    drop(folder.backend().await);
    let connection = folder.connection();
    let sql = "SELECT column_name, data_type, NOT is_nullable FROM duckdb_columns()
        WHERE table_name = 'message_embeddings'";
    let mut columns = connection.prepare(sql).unwrap();
    let columns = columns.query_map([], |row| {
        Ok(DescribedColumn { name: row.get(0)?, data_type: row.get(1)?, is_required: row.get(2)? })
    });
    let types = [
        ("uuid", "VARCHAR"),
        ("text", "VARCHAR"),
        ("int", "BIGINT"),
        ("bool", "BOOLEAN"),
        ("vector", "BLOB"),
        ("timestamptz", "TIMESTAMP"),
    ];
    adr::check_columns(&columns.unwrap().map(Result::unwrap).collect::<Vec<_>>(), &types);
}
