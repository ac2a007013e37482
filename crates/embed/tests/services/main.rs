//! The hosted providers, against a server on this machine that checks requests.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use amplifier_session_core::{
    Error,
    embedding::{EmbeddingProvider, EmbeddingPurpose},
};
use amplifier_session_embed::{ModelConfig, OpenAiConfig, OpenAiEmbedding, Secret};
use amplifier_session_testkit::http::{MockEmbeddings, MockOptions};

mod azure;
mod breaker;
mod faults;
mod live;
mod openai;
mod secrets;

/// The only key that the server accepts.
const KEY: &str = "sk-made-up-4f9c2e71";

/// A server that requires the key.
async fn server() -> MockEmbeddings {
    MockEmbeddings::start(MockOptions::default().with_key(KEY)).await.unwrap()
}

/// A provider of `model` at `mock`, with the key.
fn provider(mock: &MockEmbeddings, model: ModelConfig) -> OpenAiEmbedding {
    OpenAiEmbedding::new(&config(mock).with_model(model)).unwrap()
}

fn config(mock: &MockEmbeddings) -> OpenAiConfig {
    OpenAiConfig::default()
        .with_base_url(mock.openai_url())
        .with_api_key(Some(Secret::new(KEY)))
        .with_model(small())
}

/// A model whose vectors are short enough to look at.
fn small() -> ModelConfig {
    ModelConfig::new("text-embedding-3-small").with_dimensions(8)
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

async fn embed(provider: &dyn EmbeddingProvider, given: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
    provider.embed(&texts(given), EmbeddingPurpose::Document).await
}

/// Checks that these are the vectors of these texts, in the same order.
fn assert_vectors(vectors: &[Vec<f32>], texts: &[&str]) {
    assert_eq!(vectors.len(), texts.len());
    for (vector, text) in vectors.iter().zip(texts) {
        let wanted = MockEmbeddings::vector(text, vector.len());
        let difference = vector.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(difference < 1e-6, "{text}: {vector:?} is not {wanted:?}");
    }
}
