//! Tests against the real services. They cost money and need a key, so they are ignored by default:
//!
//!     OPENAI_API_KEY=... cargo test -p amplifier-session-embed --features azure-openai --test services -- --ignored

use amplifier_session_core::embedding::EmbeddingProvider;
use amplifier_session_embed::{AzureOpenAiConfig, AzureOpenAiEmbedding, OpenAiConfig, OpenAiEmbedding};

use crate::embed;

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Checks that texts with the same meaning are nearer to each other than to another.
async fn assert_sense(model: &dyn EmbeddingProvider) {
    let texts =
        ["The import times out at night.", "Why does the nightly import fail?", "I like green apples."];
    let vectors = embed(model, &texts).await.unwrap();
    let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    let [import, question, apples] = &vectors[..] else { panic!("not three vectors") };
    assert!((cosine(import, import) - 1.0).abs() < 1e-4);
    assert!(cosine(import, question) > cosine(import, apples));
}

#[tokio::test]
#[ignore = "needs OPENAI_API_KEY, and the network"]
async fn openai() {
    let config = OpenAiConfig::from_env(env).unwrap();
    assert_sense(&OpenAiEmbedding::new(&config).unwrap()).await;
}

#[tokio::test]
#[ignore = "needs AZURE_OPENAI_ENDPOINT with a key or a sign-in, and the network"]
async fn azure_openai() {
    let config = AzureOpenAiConfig::from_env(env).unwrap();
    assert_sense(&AzureOpenAiEmbedding::new(&config).unwrap()).await;
}
