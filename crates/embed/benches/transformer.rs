//! Speed and memory of a model in a folder:
//! `AMPLIFIER_TEST_MODEL=$(.ci/model) cargo bench -p amplifier-session-embed --features local-transformer --bench transformer`.
//!
//! `RAYON_NUM_THREADS=1` measures one core.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::{hint::black_box, path::PathBuf};

use amplifier_session_core::embedding::{EmbeddingProvider, EmbeddingPurpose};
use amplifier_session_embed::TransformerEmbedding;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// About twenty tokens, as people write to an agent.
const SENTENCE: &str =
    "The webhook handler retries on a timeout, but the idempotency key is lost between attempts. ";

fn folder() -> PathBuf {
    std::env::var_os("AMPLIFIER_TEST_MODEL").expect("the folder of a model, as .ci/model prints it").into()
}

fn texts(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let provider = TransformerEmbedding::open(&folder()).unwrap();
    report_memory("after loading");
    let cases = [
        ("short query", vec!["lost idempotency key".to_owned()]),
        ("64 x 60 tokens", vec![SENTENCE.repeat(3); 64]),
        ("16 x 250 tokens", vec![SENTENCE.repeat(13); 16]),
    ];
    let mut group = criterion.benchmark_group("transformer");
    group.sample_size(10);
    for (name, texts) in cases {
        group.throughput(Throughput::Elements(texts.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                runtime.block_on(provider.embed(black_box(&texts), EmbeddingPurpose::Document)).unwrap()
            });
        });
        report_memory(name);
    }
    group.finish();
}

fn load(criterion: &mut Criterion) {
    let folder = folder();
    let mut group = criterion.benchmark_group("transformer");
    group.sample_size(10);
    group.bench_function("load", |bencher| bencher.iter(|| TransformerEmbedding::open(&folder).unwrap()));
    group.finish();
}

/// The peak memory of the process so far, if the system reports it.
fn report_memory(when: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        println!("peak memory {when}: {}", peak.trim());
    }
}

criterion_group!(benches, texts, load);
criterion_main!(benches);
