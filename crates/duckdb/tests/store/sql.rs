//! SQL queries: what they return, and what is refused.

use std::{path::PathBuf, sync::Arc};

use amplifier_session_core::{
    ErrorField, ErrorKind, Scope, SessionStorage,
    embedding::EmbeddingProvider,
    model::{RawJson, UserId},
    search::{SearchMode, SearchOptions},
    storage::{StatisticsOptions, SyncLines},
};
use amplifier_session_duckdb::sql::{READY_VIEWS, SqlForm, SqlQuery, SqlReader, SqlRow};
use amplifier_session_testkit::{FakeEmbedding, erasure::files, lines, views};
use duckdb::Connection;

use crate::support::{Folder, target, whole};

/// A store with a session of Ana's, opened for queries.
async fn reader(folder: &Folder) -> SqlReader {
    let storage = folder.storage().await;
    let messages = vec![lines::user("a green pear"), lines::assistant("a red apple")];
    storage.ingestion().sync_transcript_lines(&target("s"), whole(messages)).await.unwrap();
    let events = vec![lines::logger_event("tool:post")];
    storage.ingestion().sync_event_lines(&target("s"), whole(events)).await.unwrap();
    drop(storage);
    SqlReader::open(folder.database()).await.unwrap()
}

async fn rows(reader: &SqlReader, query: &SqlQuery) -> Vec<SqlRow> {
    let mut answer = reader.query(&Scope::Everyone, query).await.unwrap();
    let mut rows = Vec::new();
    while let Some(more) = answer.next_rows().await.unwrap() {
        rows.extend(more);
    }
    rows
}

/// The cells of the only row, as text.
async fn row(reader: &SqlReader, sql: &str) -> Vec<String> {
    row_in(reader, sql, SqlForm::Text).await
}

async fn row_in(reader: &SqlReader, sql: &str, form: SqlForm) -> Vec<String> {
    let rows = rows(reader, &SqlQuery::new(sql).with_form(form)).await;
    let [row] = rows.as_slice() else { panic!("{sql}: {rows:?}") };
    row.iter().map(|cell| cell.clone().unwrap_or_else(|| "NULL".to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn event_payloads_of_any_size_are_shown() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    // As it is, compressed, and in three pieces.
    let lengths = [10, 20_000, 600_000];
    let event = |length: usize| {
        RawJson::new(format!(
            r#"{{"ts":"2026-01-01T00:00:00Z","event":"tool:post","data":{{"filler":"{}"}}}}"#,
            "é".repeat(length)
        ))
    };
    let events = SyncLines::whole(lengths.map(event).to_vec());
    storage.ingestion().sync_event_lines(&target("s"), events).await.unwrap();
    drop(storage);
    let reader = SqlReader::open(folder.database()).await.unwrap();
    let sql = "SELECT length(data ->> '$.filler') FROM events_with_data ORDER BY sequence";
    let found = rows(&reader, &SqlQuery::new(sql)).await;
    assert_eq!(found, lengths.map(|length| vec![Some(length.to_string())]));
    let chunks = "SELECT max(chunk_count) FROM events_with_data";
    assert_eq!(row(&reader, chunks).await, ["5"]);
    drop(reader);

    // What is damaged shows as nothing.
    let connection = Connection::open(folder.database()).unwrap();
    connection
        .execute_batch(
            "UPDATE events SET raw = 'no zstd' WHERE sequence = 1;
             DELETE FROM event_chunks WHERE chunk_index = 1;",
        )
        .unwrap();
    drop(connection);
    let reader = SqlReader::open(folder.database()).await.unwrap();
    let found = rows(&reader, &SqlQuery::new(sql)).await;
    assert_eq!(found, [vec![Some("10".to_owned())], vec![None], vec![None]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn views_have_the_texts_of_the_library() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    storage
        .ingestion()
        .sync_transcript_lines(&target("s"), SyncLines::whole(views::messages()))
        .await
        .unwrap();
    let session = &target("s").key.session_id;
    let messages =
        storage.reading().get_transcript_lines(&Scope::Everyone, session, None, 1_000).await.unwrap();
    drop(storage);
    let reader = SqlReader::open(folder.database()).await.unwrap();
    let fields = rows(&reader, &SqlQuery::new(views::FIELDS)).await;
    views::check(&messages, &fields, &rows(&reader, &SqlQuery::new(views::TEXTS)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_each_type_are_formatted() {
    let folder = Folder::new();
    let reader = reader(&folder).await;
    let values =
        "SELECT 9223372036854775807 AS big, 170141183460469231731687303715884105727::HUGEINT AS huge,
        1.10::DECIMAL(4, 2) AS price, 'nan'::DOUBLE AS nan, true AS yes, NULL AS nothing,
        TIMESTAMP '2026-01-31 09:30:00.5' AS ts, DATE '2026-01-31' AS day, encode('é') AS bytes,
        '\\xFF\\x00'::BLOB AS raw, ['a', 'b'] AS list, {'n': 1} AS object, 'x' AS x, 'y' AS x; ";
    let text = row(&reader, values).await;
    let huge = "170141183460469231731687303715884105727";
    let expected = ["9223372036854775807", huge, "1.10", "nan", "true", "NULL"];
    assert_eq!(text[..6], expected);
    let expected = ["2026-01-31T09:30:00.500000Z", "2026-01-31", "é", "ff00", "[a, b]", "{'n': 1}", "x", "y"];
    assert_eq!(text[6..], expected);
    let json = row_in(&reader, values, SqlForm::Json).await;
    assert_eq!(json[..6], ["9223372036854775807", huge, "1.10", "\"nan\"", "true", "NULL"]);
    let expected = [
        "\"2026-01-31T09:30:00.500000Z\"",
        "\"2026-01-31\"",
        "\"é\"",
        "\"ff00\"",
        "[\"a\",\"b\"]",
        "{\"n\":1}",
        "\"x\"",
        "\"y\"",
    ];
    assert_eq!(json[6..], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_keep_their_order_and_stop_at_the_limit() {
    let folder = Folder::new();
    let reader = reader(&folder).await;
    let query = SqlQuery::new("SELECT n FROM range(5000) t(n) ORDER BY n DESC");
    let all = rows(&reader, &query).await;
    let expected: Vec<SqlRow> = (0..5000).rev().map(|n| vec![Some(n.to_string())]).collect();
    assert_eq!(all, expected);
    assert_eq!(rows(&reader, &query.clone().with_limit(Some(3))).await, expected[..3]);
    let answer = reader.query(&Scope::Everyone, &query).await.unwrap();
    drop(answer);
    assert_eq!(rows(&reader, &query).await.len(), 5000, "an answer that nobody reads is no harm");
}

/// The views hold no vectors. The tables do: they are the asking person's own.
#[tokio::test(flavor = "multi_thread")]
async fn only_tables_hold_vectors() {
    let folder = Folder::new();
    let reader = reader(&folder).await;
    let counted =
        "SELECT (SELECT count(*) FROM transcript_vectors), (SELECT count(*) FROM vectors_with_context)";
    assert_eq!(row(&reader, counted).await, ["2", "2"]);
    let refused = SqlQuery::new("SELECT vector FROM vectors_with_context");
    assert!(reader.query(&Scope::Everyone, &refused).await.unwrap_err().message().contains("\"vector\""));
    let own = "SELECT count(vector), min(len(vector)) > 0 FROM transcript_vectors";
    assert_eq!(row(&reader, own).await, ["2", "true"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_leaves_no_views_to_other_reads() {
    let folder = Folder::new();
    let reader = reader(&folder).await;
    assert_eq!(row(&reader, "SELECT 1").await, ["1"]);
    let embedding: Arc<dyn EmbeddingProvider> = Arc::new(FakeEmbedding::new());
    let storage = SessionStorage::new(Arc::new(reader.backend().clone())).with_embedding(Some(embedding));
    let options = SearchOptions::new("a green pear").with_mode(SearchMode::Semantic);
    let found = storage.search().search_transcripts(&Scope::Everyone, &options).await.unwrap();
    assert_eq!(found.results.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn semicolons_and_comments_around_a_statement_are_dropped() {
    let folder = Folder::new();
    let reader = reader(&folder).await;
    for (sql, expected) in [
        ("; SELECT 1", "1"),
        ("SELECT 1;; -- done;", "1"),
        ("SELECT 1 -- a ; b\n /* c; */ ; /* d */", "1"),
        ("SELECT '; -- x'", "; -- x"),
        ("SELECT 'a; ' || '; -- ' -- b", "a; ; -- "),
        ("SELECT $$ ; $$;", " ; "),
    ] {
        assert_eq!(row(&reader, sql).await, [expected], "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_do_more_than_read_are_refused() {
    let folder = Folder::new();
    let reader = reader(&folder).await;
    let outside = folder.path().join("outside.csv");
    std::fs::write(&outside, "a\n1\n").unwrap();
    let outside = outside.display();
    for (sql, says) in [
        ("DELETE FROM sessions".to_owned(), "does more than read"),
        ("CREATE TEMP TABLE t AS SELECT 1".to_owned(), "does more than read"),
        (format!("ATTACH '{outside}'"), "does more than read"),
        (format!("COPY sessions TO '{outside}'"), "does more than read"),
        ("SET lock_configuration = false".to_owned(), "does more than read"),
        ("LOAD vss".to_owned(), "does more than read"),
        ("SELECT 1; DELETE FROM sessions".to_owned(), "does more than read"),
        ("SELECT 1; SELECT 2".to_owned(), "must be one statement"),
        ("  -- nothing".to_owned(), "no statement"),
        (format!("FROM read_csv('{outside}')"), "file system operations are disabled"),
        (format!("FROM '{outside}'"), "file system operations are disabled"),
        (format!("FROM glob('{}/*')", folder.path().display()), "disabled"),
        ("SELECT x FROM sessions".to_owned(), "\"x\" not found"),
        ("SELECT 1) UNION ALL (SELECT 2".to_owned(), "syntax error"),
        ("SELEC 1".to_owned(), "LINE 1: SELEC 1"),
        ("SELECT ?".to_owned(), ""),
    ] {
        let refused = reader.query(&Scope::Everyone, &SqlQuery::new(&sql)).await;
        let Err(error) = refused else { panic!("{sql} was taken") };
        assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(ErrorField::Query)), "{sql}");
        assert!(error.message().contains(says), "{sql}: {error}");
    }
    for (sql, says) in [
        (format!("FROM read_blob('{outside}')"), "disabled"),
        (format!("FROM read_text('{outside}')"), "disabled"),
        ("SELECT CAST(role AS INTEGER) FROM transcripts".to_owned(), "Could not convert"),
    ] {
        let error = match reader.query(&Scope::Everyone, &SqlQuery::new(&sql)).await {
            Err(error) => error,
            // It may not be known before the first row.
            Ok(mut answer) => answer.next_rows().await.map(drop).expect_err(&sql),
        };
        assert!(error.message().contains(says), "{sql}: {error}");
    }
    for sql in [
        "FROM range(3)",
        "SELECT unnest([1, 2])",
        "SELECT j.value FROM sessions, json_each(to_json([session_id])) j",
        "FROM duckdb_tables()",
        "SELECT table_name FROM information_schema.tables",
        "SHOW ALL TABLES",
        "FROM pragma_table_info('sessions')",
        "PIVOT transcripts ON role IN ('user', 'assistant') USING count(*)",
        "SHOW TABLES",
        "DESCRIBE sessions",
        "SUMMARIZE sessions",
        "VALUES (1)",
        "WITH x AS (SELECT 1) FROM x;",
    ] {
        assert!(!rows(&reader, &SqlQuery::new(sql)).await.is_empty(), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_other_users_needs_the_scope_everyone() {
    let folder = Folder::new();
    drop(reader(&folder).await);
    let query = SqlQuery::new("SELECT count(*) FROM sessions");
    let ana = Scope::from(UserId::new("ana").unwrap());
    let reader = SqlReader::open(folder.database()).await.unwrap();
    let mut answer = reader.query(&ana, &query).await.unwrap();
    while answer.next_rows().await.unwrap().is_some() {}
    drop(reader);

    let storage = folder.storage().await;
    let mut of_eve = target("e");
    of_eve.key.user_id = UserId::new("eve").unwrap();
    storage
        .ingestion()
        .sync_transcript_lines(&of_eve, whole(vec![lines::user("a private plum")]))
        .await
        .unwrap();
    drop(storage);
    let reader = SqlReader::open(folder.database()).await.unwrap();
    let viewer = Scope::from(amplifier_session_core::Viewer::new(UserId::new("ana").unwrap()));
    for scope in [&ana, &viewer] {
        let error = reader.query(scope, &query).await.unwrap_err();
        assert_eq!(error.field(), Some(ErrorField::Scope));
        assert!(error.message().contains("sessions of another user"), "{error}");
        let file = folder.path().join("out.parquet");
        assert!(reader.query_to_parquet(scope, &query, &file).await.is_err() && !file.exists());
    }
    assert_eq!(row(&reader, &query.sql).await, ["2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_open_for_writing_is_not_queried() {
    let folder = Folder::new();
    let _writable = folder.storage().await;
    let error = SqlReader::open(folder.database()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[tokio::test(flavor = "multi_thread")]
async fn parquet_keeps_types_and_leaves_no_other_file() {
    let folder = Folder::new();
    let reader = reader(&folder).await;
    let file = folder.path().join("it's here.parquet");
    let query = SqlQuery::new("SELECT sequence, ts, raw, tags, chunk_index, role AS \"a \"\"role\"\"\"
        FROM transcripts JOIN sessions USING (user_id, session_id) JOIN transcript_vectors USING (sequence) ORDER BY 1");
    assert_eq!(reader.query_to_parquet(&Scope::Everyone, &query, &file).await.unwrap(), 2);
    drop(reader);
    let is_parquet = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "parquet");
    let written: Vec<_> = files(folder.path()).into_iter().filter(is_parquet).collect();
    assert_eq!(written, [file.as_path()]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let connection = Connection::open_in_memory().unwrap();
    let path = file.display().to_string().replace('\'', "''");
    let sql =
        format!("SELECT string_agg(column_name || ' ' || column_type, ', ') FROM (DESCRIBE FROM '{path}')");
    let types: String = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
    assert_eq!(
        types,
        "sequence UINTEGER, ts TIMESTAMP, raw BLOB, tags VARCHAR[], chunk_index UINTEGER, a \"role\" VARCHAR"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn views_have_their_listed_columns() {
    let folder = Folder::new();
    let reader = reader(&folder).await;
    for view in READY_VIEWS {
        let query = SqlQuery::new(format!("FROM {}", view.name));
        let answer = reader.query(&Scope::Everyone, &query).await.unwrap();
        let columns: Vec<&str> = answer.columns().iter().map(|column| column.name.as_str()).collect();
        assert_eq!(columns, view.columns, "{}", view.name);
        assert!(view.about.len() < 120);
    }
}

/// What logs claim is not checked: numbers that are none, too large, or below nothing, count as `core` counts them.
#[tokio::test(flavor = "multi_thread")]
async fn views_count_as_the_statistics_do() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    let event = |event_type: &str, rest: &str| {
        let line = format!(r#"{{"event":"{event_type}","ts":"2026-01-05T08:00:00Z","data":{{{rest}}}}}"#);
        RawJson::new(line)
    };
    let events = vec![
        event(
            "llm:response",
            r#""model":"m","provider":"p","usage":{"input_tokens":7.9,"output_tokens":-3,"cost":0.25}"#,
        ),
        event(
            "llm:response",
            r#""model":"m","usage":{"input":"many","prompt_tokens":12,"cache_read":3},"cost_usd":0.5"#,
        ),
        event("llm:response", r#""usage":{"completion_tokens":5,"cache_creation_input_tokens":2}"#),
        event("llm:response", r#""model":"m","usage":"none","error":"boom""#),
        event("llm:response", r#""model":"m","usage":{}"#),
        event("tool:pre", r#""tool_name":"t""#),
        event("tool:post", r#""tool_name":"t","duration_ms":10,"status":"error","error":{"type":"T"}"#),
        event("tool:error", r#""tool_name":"t","duration_ms":"x","error_type":"T""#),
        event("tool:selected", r#""tool_name":"only_named""#),
        event("note", r#""text":"\"usage\"""#),
    ];
    storage.ingestion().sync_event_lines(&target("s"), SyncLines::whole(events)).await.unwrap();
    let stats =
        storage.statistics().get_statistics(&Scope::Everyone, &StatisticsOptions::default()).await.unwrap();
    drop(storage);
    let reader = SqlReader::open(folder.database()).await.unwrap();

    let tokens = "SELECT sum(calls), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
        sum(cache_write_tokens), sum(cost) FROM tokens_by_model_and_day";
    let [day] = stats.days.as_slice() else { panic!("{:?}", stats.days) };
    let of = day.usage;
    let expected = [of.calls, of.input_tokens, of.output_tokens, of.cache_read_tokens, of.cache_write_tokens]
        .map(|n| n.to_string());
    let reported = row(&reader, tokens).await;
    assert_eq!((&reported[..5], reported[5].as_str()), (&expected[..], "0.75"));
    assert_eq!(of.cost.to_string(), "0.75");
    assert_eq!(reported[0], stats.models.iter().map(|model| model.usage.calls).sum::<u64>().to_string());

    for tool in &stats.tools {
        let sql = format!("SELECT calls, failures FROM tool_use WHERE tool = '{}'", tool.tool);
        assert_eq!(row(&reader, &sql).await, [tool.uses.to_string(), tool.failures.to_string()]);
    }
    assert_eq!(
        row(&reader, "SELECT failure_rate, mean_ms FROM tool_use WHERE tool = 't'").await,
        ["1.0", "10.0"]
    );
    let failures: u64 = stats.event_types.iter().map(|of| of.failures).sum();
    assert_eq!(row(&reader, "SELECT sum(errors) FROM errors_by_type").await, [failures.to_string()]);
}
