//! The cost of masking secrets: `cargo bench -p amplifier-session-secrets --bench masking`.

#![allow(clippy::unwrap_used)]

use std::{hint::black_box, time::Duration};

use amplifier_session_secrets::SecretRules;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// About twenty tokens, as people write to an agent.
const SENTENCE: &str =
    "The webhook handler retries on a timeout, but the idempotency key is lost between attempts. ";

/// Prose and code, as agents read and write them.
const PROSE: &str = include_str!("../../../docs/architecture.md");
const CODE: &str = include_str!("../../embed/src/local.rs");

fn secrets(criterion: &mut Criterion) {
    let rules = SecretRules::built_in().unwrap();
    let mut group = criterion.benchmark_group("mask");
    let token = ["gh", "p_", "9aB3xK7mQ2wE5rT8yU", "1iO4pL6zC0vN3sD7fG"].concat();
    let with_token = format!("{PROSE} {token} {PROSE}");
    let sentences = SENTENCE.repeat(1_000);
    let short = SENTENCE.repeat(3);
    for (name, text) in [
        ("a short text", short.as_str()),
        ("sentences", sentences.as_str()),
        ("prose", PROSE),
        ("code", CODE),
        ("prose with a secret", &with_token),
    ] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| rules.mask(black_box(text))));
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(3)).sample_size(50);
    targets = secrets
}
criterion_main!(benches);
