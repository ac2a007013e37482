//! Which plan the database follows, and what it finds.

use std::{
    collections::BTreeSet,
    ops::ControlFlow,
    panic::{self, AssertUnwindSafe},
};

use amplifier_session_core::{
    Result, Scope,
    backend::{VectorQuery, meta},
    config::Settings,
    model::{ContentTypes, EmbeddingSpace, ProjectSlug, UserId},
    search::SearchFilter,
};
use amplifier_session_sql::{Query, Reader as _, backend::Connections as _, quote};

use super::{SearchMethod, candidates, graph, update};
use crate::{PostgresConfig, connection::PgReader, pool::PgPool, schema};

const DIMENSIONS: usize = 16;

/// The vectors of `many`: enough for an index. Those of `few` are compared one by one, whatever the others have.
const MANY: i64 = graph::EXACT + 2_000;
const FEW: i64 = 300;

/// Runs `test` on a store with vectors of two users, each with two projects, in a schema of its own.
async fn with_vectors(test: impl FnOnce(&PgPool) + Send + 'static) {
    let url = amplifier_session_testkit::postgres::url();
    let unique = tempfile::Builder::new().prefix("vectors_").rand_bytes(16).tempdir().unwrap();
    let schema = unique.path().file_name().unwrap().to_str().unwrap().to_lowercase();
    let config = PostgresConfig::new(url.split_once(':').unwrap().1, &Settings::default()).unwrap();
    let config = config.with_schema(schema.as_str());
    let pool = PgPool::new(&config).unwrap();
    tokio::task::spawn_blocking(move || {
        let prepared = schema::prepare(&pool, &schema, false).unwrap();
        assert!(prepared.has_copies(), "the server for tests has pgvector");
        pool.define("fill", fill).unwrap();
        update(&pool).unwrap();
        let drop = format!("DROP SCHEMA {} CASCADE", quote::name(&schema));
        let tested = panic::catch_unwind(AssertUnwindSafe(|| test(&pool)));
        pool.define("drop_schema", |reader| reader.batch("drop_schema", &drop)).unwrap();
        tested.unwrap();
    })
    .await
    .unwrap();
}

fn fill(reader: &PgReader<'_>) -> Result<()> {
    let space = EmbeddingSpace { model: "m".into(), dimensions: DIMENSIONS };
    let generation = meta::Generation { space, number: 0 }.to_value();
    let mut sql = format!(
        "SELECT setseed(0.5); INSERT INTO schema_meta (key, value) VALUES ('{}', '{generation}');",
        meta::EMBEDDING_SPACE
    );
    for (user, count) in [("many", MANY), ("few", FEW)] {
        sql += &format!(
            "INSERT INTO sessions (user_id, session_id, project_slug, host_id, created, updated, revision)
             SELECT '{user}', 's' || n, 'p' || n, 'h', now(), now(), 1 FROM generate_series(0, 1) n;
             INSERT INTO transcript_vectors (user_id, session_id, sequence, content_type, chunk_index, total_chunks,
                 span_start, span_end, token_count, embedding_model, created_at, revision, generation, vector)
             SELECT '{user}', 's' || (n % 20 = 0)::int, n, 'user_query', 0, 1, 0, 1, 1, 'm', now(), 1, 0, v.vector
             FROM generate_series(1, {count}) n, LATERAL (
                 SELECT array_agg(x / norm)::real[] vector FROM (
                     SELECT x, sqrt(sum(x * x) OVER ()) norm FROM (
                         SELECT random() - 0.5 + n * 0 x FROM generate_series(1, {DIMENSIONS})))) v;"
        );
    }
    sql += "ANALYZE sessions; ANALYZE transcript_vectors;";
    reader.batch("fill", &sql)
}

fn query(user: &str, filter: SearchFilter, number: usize) -> VectorQuery {
    let vector: Vec<f32> = (0..DIMENSIONS).map(|at| ((at * 7 + number * 13) as f32).sin()).collect();
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    VectorQuery {
        scope: Scope::User(UserId::new(user).unwrap()),
        filter,
        turns: false,
        content_types: ContentTypes::searched(),
        tools: Vec::new(),
        vector: vector.iter().map(|x| x / length).collect(),
        generation: 0,
        limit: 10,
    }
}

/// Runs `test` in a transaction, as searches are.
fn in_snapshot(pool: &PgPool, test: impl Fn(&PgReader<'_>)) {
    pool.read_snapshot(|reader| {
        test(reader);
        Ok(())
    })
    .unwrap();
}

/// How a query is run, and the plan of its statement.
fn plan(reader: &PgReader<'_>, query: &VectorQuery) -> (SearchMethod, String) {
    let method = SearchMethod::of(reader, query, &crate::VectorSupport::Copies).unwrap();
    if method == SearchMethod::Graph {
        reader.batch("plan", &graph::settings(32)).unwrap();
    }
    let mut statement = method.statement(query).unwrap().statement;
    statement.sql = format!("EXPLAIN {}", statement.sql).into();
    let mut plan = String::new();
    let lines = Query { statement, decode: |row| row.text(0) };
    reader
        .each(&lines, |line| {
            plan += &(line + "\n");
            ControlFlow::Continue(())
        })
        .unwrap();
    (method, plan)
}

fn first_project() -> SearchFilter {
    SearchFilter::default().with_project(ProjectSlug::new("p0").unwrap())
}

fn second_project() -> SearchFilter {
    SearchFilter::default().with_project(ProjectSlug::new("p1").unwrap())
}

/// One store for all, because its graph takes seconds to build.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn vectors_are_searched_on_a_graph_or_exactly() {
    with_vectors(|pool| {
        many_vectors_are_searched_on_a_graph_and_few_exactly(pool);
        a_graph_finds_what_is_nearest(pool);
        vectors_are_compared_where_their_rows_are(pool);
        an_index_that_was_not_completed_is_made_again(pool);
    })
    .await;
}

fn many_vectors_are_searched_on_a_graph_and_few_exactly(pool: &PgPool) {
    in_snapshot(pool, |reader| {
        let many = [SearchFilter::default(), first_project()].map(|filter| query("many", filter, 0));
        let few = [query("few", SearchFilter::default(), 0), query("many", second_project(), 0)];
        for exact in few {
            let (method, plan) = plan(reader, &exact);
            assert_eq!(method, SearchMethod::Exact, "{plan}");
            assert!(!plan.contains("transcript_vectors_nearest_0") && plan.contains("Sort"), "{plan}");
        }
        for graph in many {
            let (method, plan) = plan(reader, &graph);
            assert_eq!(method, SearchMethod::Graph, "{plan}");
            assert!(plan.contains("Index Scan using transcript_vectors_nearest_0"), "{plan}");
            assert!(!plan.contains("Sort") && !plan.contains("Seq Scan on transcript_vectors"), "{plan}");
        }
    })
}

fn a_graph_finds_what_is_nearest(pool: &PgPool) {
    in_snapshot(pool, |reader| {
        let found = |query: &VectorQuery, support| {
            let found = candidates(reader, query, &support).unwrap().items;
            found.into_iter().map(|found| found.message_ref).collect::<BTreeSet<_>>()
        };
        let mut missed = 0;
        for number in 0..50 {
            let query = query("many", first_project(), number);
            assert_eq!(
                SearchMethod::of(reader, &query, &crate::VectorSupport::Copies).unwrap(),
                SearchMethod::Graph
            );
            let all = found(&query, crate::VectorSupport::Unavailable(String::new()));
            let graph = found(&query, crate::VectorSupport::Copies);
            assert_eq!((all.len(), graph.len()), (10, 10));
            assert!(graph.iter().all(|message| message.session.user_id.as_str() == "many"));
            missed += all.difference(&graph).count();
        }
        // 99 of 100.
        assert!(missed <= 5, "{missed} of 500 are missed");
    })
}

fn an_index_that_was_not_completed_is_made_again(pool: &PgPool) {
    let run = |sql: &str| pool.define("test", |reader| reader.batch("test", sql)).unwrap();
    let exact_below = || pool.read(|reader| graph::exact_below(reader, "test", 0)).unwrap();
    assert_eq!(exact_below(), Some(graph::EXACT));
    run("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'transcript_vectors_nearest_0'::regclass");
    assert_eq!(exact_below(), None);
    update(pool).unwrap();
    assert_eq!(exact_below(), Some(graph::EXACT));
    run(
        "UPDATE schema_meta SET value = replace(value, '\"number\":0', '\"number\":1') WHERE key = 'embedding_space'",
    );
    update(pool).unwrap();
    assert_eq!(exact_below(), None, "the generation is gone");
}

/// Vectors that do not fit into a page are stored elsewhere, but never the ids of their rows.
fn vectors_are_compared_where_their_rows_are(pool: &PgPool) {
    pool.define("test", |reader| {
        for (dimensions, is_in_row) in [(1_536, true), (3_072, true), (16_000, false)] {
            let sql = format!(
                "INSERT INTO transcript_vectors (user_id, session_id, sequence, content_type, chunk_index,
                     total_chunks, span_start, span_end, token_count, embedding_model, created_at, revision,
                     generation, vector)
                 SELECT repeat('u', 40), gen_random_uuid(), {dimensions}, 'user_query', 0, 1, 0, 1, 1,
                     repeat('m', 40), now(), 1, 9, array_agg(random())::real[]
                 FROM generate_series(1, {dimensions})"
            );
            reader.batch("test", &sql)?;
            let sql = format!(
                "SELECT (pg_column_toast_chunk_id(half) IS NULL)::int::bigint,
                     (coalesce(pg_column_toast_chunk_id(user_id), pg_column_toast_chunk_id(session_id),
                         pg_column_toast_chunk_id(embedding_model)) IS NULL)::int::bigint
                 FROM transcript_vectors WHERE generation = 9 AND sequence = {dimensions}"
            );
            let query = Query::new("test", sql, [], |row| Ok((row.integer(0)?, row.integer(1)?)));
            assert_eq!(reader.first(&query)?, Some((i64::from(is_in_row), 1)), "{dimensions}");
        }
        Ok(())
    })
    .unwrap();
}
