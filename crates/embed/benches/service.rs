//! Ten thousand short texts through HTTP:
//! `cargo bench -p amplifier-session-embed --features openai,redact --bench service`.
//!
//! The service is the mock server, in this process, with 50 ms per call. The floor is the time of its responses alone:
//! calls * latency / concurrent calls. For comparison, the provider without wrappers is called with the same batches; its
//! time includes transport and decoding.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use amplifier_session_core::embedding::{EmbeddingProvider, EmbeddingPurpose};
use amplifier_session_embed::{ModelConfig, OpenAiConfig, OpenAiEmbedding, wrappers::StackOptions};
use amplifier_session_testkit::http::{MockEmbeddings, MockOptions};
use futures_util::{StreamExt, TryStreamExt, stream};

const TEXTS: usize = 10_000;
const LATENCY: Duration = Duration::from_millis(50);
const ROUNDS: usize = 5;

/// About twenty tokens, all different.
fn texts(round: usize) -> Vec<String> {
    let text = |n| {
        format!("{round} {n}: the webhook handler retries on a timeout, but the key is lost between attempts")
    };
    (0..TEXTS).map(text).collect()
}

async fn bare(provider: &OpenAiEmbedding, texts: &[String]) -> usize {
    let limits = provider.limits();
    let calls =
        texts.chunks(limits.batch_texts).map(|batch| provider.embed(batch, EmbeddingPurpose::Document));
    let made: Vec<_> = stream::iter(calls).buffered(limits.concurrent_calls).try_collect().await.unwrap();
    made.iter().map(Vec::len).sum()
}

async fn measure(batch: usize) {
    let mock =
        MockEmbeddings::start(MockOptions::default().with_latency(LATENCY).with_one_vector()).await.unwrap();
    let model = ModelConfig::new("text-embedding-3-small").with_batch_texts(batch);
    let config = OpenAiConfig::default().with_base_url(mock.openai_url()).with_model(model);
    let provider = Arc::new(OpenAiEmbedding::new(&config).unwrap());
    let limits = provider.limits();
    let stack = StackOptions::default().wrap(Arc::clone(&provider) as _).unwrap().provider();
    let (mut through, mut without) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let texts = texts(round);
        let begun = Instant::now();
        assert_eq!(bare(&provider, &texts).await, TEXTS);
        without.push(begun.elapsed());
        mock.reset_counts();
        let begun = Instant::now();
        assert_eq!(stack.embed(&texts, EmbeddingPurpose::Document).await.unwrap().len(), TEXTS);
        through.push(begun.elapsed());
    }
    let (through, without) = (median(through), median(without));
    let floor = LATENCY.mul_f64(mock.calls() as f64 / limits.concurrent_calls as f64);
    println!(
        "{:>9} {:>5} {:>9.0} ms {:>12.0} ms {:>9.0} ms {:>12.2} {:>11.1} us",
        limits.batch_texts,
        mock.calls(),
        floor.as_secs_f64() * 1e3,
        without.as_secs_f64() * 1e3,
        through.as_secs_f64() * 1e3,
        through.as_secs_f64() / floor.as_secs_f64(),
        (through.as_secs_f64() - without.as_secs_f64()) * 1e6 / TEXTS as f64,
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::main]
async fn main() {
    println!("{TEXTS} texts, {} ms a call, median of {ROUNDS}", LATENCY.as_millis());
    println!("texts/call calls        floor  no wrappers  with all of them  of the floor  more a text");
    for batch in [ModelConfig::default().batch_texts, 256, 2_048] {
        measure(batch).await;
    }
}
