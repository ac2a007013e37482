//! What the wrappers cost: `cargo bench -p amplifier-session-embed --features cache,redact --bench wrappers`.
//!
//! The provider answers immediately, so the difference between a stack and the provider is the time of the wrappers.

#![allow(clippy::unwrap_used)]

use std::{hint::black_box, path::Path, sync::Arc, time::Duration};

use amplifier_session_core::{
    Result,
    embedding::{EmbeddingLimits, EmbeddingProvider, EmbeddingPurpose, ModelStrength},
    model::EmbeddingSpace,
};
use amplifier_session_embed::{
    disk_cache::{DiskCache, LIMIT_BYTES},
    wrappers::{Caching, StackOptions},
};
use async_trait::async_trait;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rusqlite::Connection;
use tokio::runtime::Runtime;

const DIMENSIONS: usize = 1_536;

/// The maximum number of texts in a call.
const BATCH: usize = 256;

/// About twenty tokens, as people write to an agent.
const SENTENCE: &str =
    "The webhook handler retries on a timeout, but the idempotency key is lost between attempts. ";

#[derive(Debug)]
struct AtOnce(EmbeddingSpace);

impl AtOnce {
    fn new() -> Arc<Self> {
        Arc::new(Self(EmbeddingSpace { model: "at-once".to_owned(), dimensions: DIMENSIONS }))
    }
}

#[async_trait]
impl EmbeddingProvider for AtOnce {
    fn space(&self) -> &EmbeddingSpace {
        &self.0
    }

    fn limits(&self) -> EmbeddingLimits {
        EmbeddingLimits {
            chunk_threshold_tokens: 8_191,
            chunk_target_tokens: 1_024,
            batch_texts: BATCH,
            batch_tokens: 100_000,
            concurrent_calls: 4,
        }
    }

    fn strength(&self) -> ModelStrength {
        ModelStrength::Contextual
    }

    fn is_local(&self) -> bool {
        false
    }

    async fn embed(&self, texts: &[String], _purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        Ok(vec![vec![0.5; DIMENSIONS]; texts.len()])
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Distinct texts of about sixty tokens.
fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number} {}", SENTENCE.repeat(3))).collect()
}

fn stack(criterion: &mut Criterion) {
    let runtime = runtime();
    let bare: Arc<dyn EmbeddingProvider> = AtOnce::new();
    let stacked = StackOptions::default().with_memory_entries(0).wrap(AtOnce::new()).unwrap().provider();
    let mut group = criterion.benchmark_group("call");
    for count in [1, BATCH, 4 * BATCH] {
        let texts = texts(count);
        group.throughput(Throughput::Elements(count as u64));
        for (name, provider) in [("bare", &bare), ("stack", &stacked)] {
            group.bench_function(format!("{name}, {count} texts"), |bencher| {
                let call = || provider.embed(black_box(&texts), EmbeddingPurpose::Document);
                bencher.iter(|| runtime.block_on(call()).unwrap());
            });
        }
    }
    group.finish();
}

fn caches(criterion: &mut Criterion) {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(DiskCache::new(folder.path().join("embeddings.db"), LIMIT_BYTES));
    let in_memory = Caching::new(AtOnce::new()).with_memory(BATCH);
    let on_disk = Caching::new(AtOnce::new()).with_memory(0).with_below(disk);
    let mut group = criterion.benchmark_group("hit");
    for count in [1, BATCH] {
        let texts = texts(count);
        group.throughput(Throughput::Elements(count as u64));
        for (name, caching) in [("memory", &in_memory), ("disk", &on_disk)] {
            let call = || caching.embed(black_box(&texts), EmbeddingPurpose::Document);
            runtime.block_on(call()).unwrap();
            group.bench_function(format!("{name}, {count} texts"), |bencher| {
                bencher.iter(|| runtime.block_on(call()).unwrap());
            });
        }
    }
    assert_eq!(in_memory.statistics().misses + on_disk.statistics().misses, 2 * BATCH as u64);
    let database = yardstick(&folder.path().join("yardstick.db"));
    group.throughput(Throughput::Elements(1));
    group.bench_function("yardstick: a select of such a row", |bencher| {
        let mut select = database.prepare("SELECT vector FROM entry WHERE key = ?1").unwrap();
        let mut next = (0_u64..BATCH as u64).cycle();
        bencher.iter(|| {
            let key = blake3::hash(&next.next().unwrap().to_le_bytes());
            select.query_row([key.as_bytes()], |row| row.get::<_, Vec<u8>>(0)).unwrap()
        });
    });
    group.finish();
}

/// The same number of rows of that size in a table without anything else.
fn yardstick(path: &Path) -> Connection {
    let database = Connection::open(path).unwrap();
    database
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE entry (key BLOB UNIQUE, vector BLOB)")
        .unwrap();
    for number in 0..BATCH as u64 {
        let key = blake3::hash(&number.to_le_bytes());
        let row = rusqlite::params![key.as_bytes(), vec![0_u8; DIMENSIONS * 4]];
        database.execute("INSERT INTO entry VALUES (?1, ?2)", row).unwrap();
    }
    database
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(3)).sample_size(50);
    targets = stack, caches
}
criterion_main!(benches);
