//! Measures a store in DuckDB beside one in SQLite, and DuckDB asked directly, in the same run.
//!
//! ```text
//! cargo bench -p amplifier-session-duckdb --bench store                 all
//! cargo bench -p amplifier-session-duckdb --bench store -- sync         taking in 10,000 messages and 20,000 events
//! cargo bench -p amplifier-session-duckdb --bench store -- semantic     search by meaning among 100,000 vectors of 384 numbers
//! ```
//!
//! DuckDB has to be found: see docs/duckdb.md.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement: it prints, and stops at an error"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use amplifier_session_core::{
    Result, SessionStorage,
    backend::prelude::*,
    embedding::{EmbeddingLimits, EmbeddingProvider, EmbeddingPurpose, ModelStrength},
    model::{EmbeddingSpace, HostId, UserId},
    search::VectorSearchOptions,
};
use amplifier_session_duckdb::{Access, DuckDb};
use amplifier_session_sqlite::Sqlite;
use amplifier_session_sync::{NoProgress, SyncOptions, sync};
use amplifier_session_testkit::{
    Random,
    corpus::{Corpus, CorpusSize},
    lines,
    store::{ana, target, whole},
};
use duckdb::{AccessMode, Config, Connection};

/// The one of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often each is measured; the best counts, since everything else on the machine only makes it slower.
const RUNS: usize = 3;
const DIMENSIONS: usize = 384;
const QUERIES: u64 = 50;

#[tokio::main]
async fn main() {
    // Cargo adds `--bench`.
    let typed: Vec<String> = std::env::args().skip(1).filter(|one| one != "--bench").collect();
    let asked = |name: &str| typed.is_empty() || typed.iter().any(|one| one == name);
    if asked("sync") {
        measure_sync().await;
    }
    if asked("semantic") {
        measure_semantic().await;
    }
}

async fn store(folder: &Path, kind: &str) -> (SessionStorage, PathBuf) {
    let file = folder.join(format!("sessions.{kind}"));
    let backend: Arc<dyn StorageBackend> = match kind {
        "sqlite" => Arc::new(Sqlite::open(&file).await.unwrap()),
        _ => Arc::new(DuckDb::open(&file, Access::ReadWrite).await.unwrap()),
    };
    (SessionStorage::new(backend), file)
}

async fn measure_sync() {
    let made = tempfile::tempdir().unwrap();
    let size = CorpusSize { sessions: 200, messages: 50, events: 100 };
    Corpus::new(1).write(made.path(), size).unwrap();
    let kinds = ["sqlite", "duckdb"];
    let (mut best, mut bytes) = ([f64::INFINITY; 2], [[0; 2]; 2]);
    for _ in 0..RUNS {
        for (n, kind) in kinds.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let start = Instant::now();
            let (storage, file) = store(folder.path(), kind).await;
            let options =
                SyncOptions::new(made.path(), UserId::new("ana").unwrap(), HostId::new("here").unwrap());
            let report = sync(&storage, &options, &NoProgress).await.unwrap();
            assert_eq!(report.sessions.failed, 0);
            drop(storage);
            best[n] = best[n].min(start.elapsed().as_secs_f64());
            bytes[n] = [
                fs::metadata(&file).unwrap().len(),
                size_of(&folder.path().join(format!("sessions.{kind}.index"))),
            ];
        }
    }
    println!("| sync without embeddings | seconds | ratio | file | index |\n| --- | --- | --- | --- | --- |");
    for (n, kind) in kinds.into_iter().enumerate() {
        let [file, index] = bytes[n].map(|bytes| bytes / 1_000_000);
        println!("| {kind} | {:.2} | {:.2} | {file} MB | {index} MB |", best[n], best[n] / best[0]);
    }
    println!();
}

fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(
            |entry| {
                if entry.path().is_dir() { size_of(&entry.path()) } else { entry.metadata().unwrap().len() }
            },
        )
        .sum()
}

/// A model whose vector of the text `n` is the `n`th of those made up: in 500 clusters, as those of texts are.
#[derive(Debug)]
struct MadeUp(EmbeddingSpace);

impl MadeUp {
    fn vector(n: u64) -> Vec<f32> {
        let [mut centre, mut around] = [Random(n % 500), Random(n + 1_000)];
        let vector: Vec<f32> = (0..DIMENSIONS)
            .map(|_| (2.0 * centre.part() - 1.0 + 1.5 * (around.part() - 0.5)) as f32)
            .collect();
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.into_iter().map(|x| x / length).collect()
    }
}

#[async_trait::async_trait]
impl EmbeddingProvider for MadeUp {
    fn space(&self) -> &EmbeddingSpace {
        &self.0
    }

    fn limits(&self) -> EmbeddingLimits {
        EmbeddingLimits {
            chunk_threshold_tokens: 8_192,
            chunk_target_tokens: 1_024,
            batch_texts: 256,
            batch_tokens: 100_000,
            concurrent_calls: 1,
        }
    }

    fn strength(&self) -> ModelStrength {
        ModelStrength::Contextual
    }

    fn is_local(&self) -> bool {
        true
    }

    async fn embed(&self, texts: &[String], _: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        Ok(texts.iter().map(|text| Self::vector(text.parse().unwrap())).collect())
    }
}

async fn measure_semantic() {
    let folder = tempfile::tempdir().unwrap();
    let queries: Vec<Vec<f32>> = (0..QUERIES).map(|n| MadeUp::vector(1_000_000 + 7 * n)).collect();
    let mut rows = Vec::new();
    for kind in ["sqlite", "duckdb"] {
        let (storage, file) = store(folder.path(), kind).await;
        let space = EmbeddingSpace { model: "made-up".to_owned(), dimensions: DIMENSIONS };
        let storage = storage.with_embedding(Some(Arc::new(MadeUp(space))));
        for session in 0..100 {
            let all = (0..1_000).map(|n| lines::user(&(session * 1_000 + n).to_string())).collect();
            storage
                .ingestion()
                .sync_transcript_lines(&target(&format!("s{session}")), whole(all))
                .await
                .unwrap();
        }
        storage.update_index().await.unwrap();
        let (scope, mut found) = (ana(), Vec::new());
        let mut times = Vec::new();
        for round in 0..RUNS {
            found.clear();
            for query in &queries {
                let start = Instant::now();
                let results = storage
                    .search()
                    .vector_search(&scope, &VectorSearchOptions::new(query.clone()))
                    .await
                    .unwrap();
                let hits = results.results.iter().map(|hit| (hit.session_id.to_string(), hit.sequence));
                found.push(hits.collect::<Vec<_>>());
                if round > 0 {
                    times.push(start.elapsed().as_secs_f64() * 1e3);
                }
            }
        }
        rows.push((format!("{kind}, through the index"), times));
        drop(storage);
        if kind == "duckdb" {
            let (times, exact) = nearest(&file, &queries);
            rows.push(("DuckDB alone, `array_cosine_similarity` of all".to_owned(), times));
            let both = found.iter().zip(&exact);
            let hits: usize =
                both.map(|(ours, all)| ours.iter().filter(|hit| all.contains(hit)).count()).sum();
            println!(
                "recall@10 against `array_cosine_similarity`: {:.4}\n",
                hits as f64 / (10 * queries.len()) as f64
            );
        }
    }
    println!("| semantic search, 100,000 x {DIMENSIONS}, warm | p50 | p95 |\n| --- | --- | --- |");
    for (name, times) in rows {
        let [middle, slow] = [0.5, 0.95].map(|part| at(&times, part));
        println!("| {name} | {middle:.2} ms | {slow:.2} ms |");
    }
    println!();
}

/// The messages of the ten nearest vectors to each query, asked of DuckDB, and how long that took.
fn nearest(file: &Path, queries: &[Vec<f32>]) -> (Vec<f64>, Vec<Vec<(String, u32)>>) {
    let config = Config::default().access_mode(AccessMode::ReadOnly).unwrap();
    let connection = Connection::open_with_flags(file, config).unwrap();
    let sql = format!(
        "SELECT session_id, sequence FROM transcript_vectors
         ORDER BY array_cosine_similarity(vector, CAST(?1 AS FLOAT[{DIMENSIONS}])) DESC LIMIT 10"
    );
    let mut statement = connection.prepare(&sql).unwrap();
    let answers = queries.iter().map(|query| {
        let (start, query) = (Instant::now(), format!("{query:?}"));
        let rows = statement.query_map([query], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let rows: Vec<_> = rows.map(Result::unwrap).collect();
        (start.elapsed().as_secs_f64() * 1e3, rows)
    });
    answers.unzip()
}

fn at(times: &[f64], part: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[(part * (times.len() - 1) as f64) as usize]
}
