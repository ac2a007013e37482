//! A limit on concurrent calls.

use std::sync::Arc;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    embedding::{EmbeddingProvider, EmbeddingPurpose},
};
use async_trait::async_trait;
use tokio::sync::Semaphore;

use super::forward;

/// Makes at most as many calls at the same time as the provider's limits allow, and at least one. Other calls wait in the
/// order in which they were made.
#[derive(Debug)]
pub struct Limiting {
    inner: Arc<dyn EmbeddingProvider>,
    turns: Semaphore,
}

impl Limiting {
    /// Limits the calls to `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn EmbeddingProvider>) -> Self {
        let calls = inner.limits().concurrent_calls.clamp(1, Semaphore::MAX_PERMITS);
        Self { inner, turns: Semaphore::new(calls) }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl EmbeddingProvider for Limiting {
    forward!(inner: space, limits, strength, is_local, address);

    async fn embed(&self, texts: &[String], purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        let closed =
            |source| Error::new(ErrorKind::Embedding, "the queue of calls is closed").with_source(source);
        let _turn = self.turns.acquire().await.map_err(closed)?;
        self.inner.embed(texts, purpose).await
    }
}
