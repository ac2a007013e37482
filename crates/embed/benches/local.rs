//! Speed of the built-in model: `cargo bench -p amplifier-session-embed --bench local`.
//!
//! `RAYON_NUM_THREADS=1` measures one core.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;

use amplifier_session_core::embedding::{EmbeddingProvider, EmbeddingPurpose};
use amplifier_session_embed::LocalEmbedding;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// About twenty tokens, as people write to an agent.
const SENTENCE: &str =
    "The webhook handler retries on a timeout, but the idempotency key is lost between attempts. ";

fn texts(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let provider = LocalEmbedding::new();
    let cases = [
        ("short query", vec!["lost idempotency key".to_owned()]),
        ("60 tokens", vec![SENTENCE.repeat(3)]),
        ("500 tokens", vec![SENTENCE.repeat(25)]),
        ("256 x 60 tokens", vec![SENTENCE.repeat(3); 256]),
        ("256 x 500 tokens", vec![SENTENCE.repeat(25); 256]),
    ];
    let mut group = criterion.benchmark_group("embed");
    for (name, texts) in cases {
        group.throughput(Throughput::Elements(texts.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                runtime.block_on(provider.embed(black_box(&texts), EmbeddingPurpose::Document)).unwrap()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, texts);
criterion_main!(benches);
