//! A limit on concurrent calls.

use std::sync::Arc;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    embedding::{EmbeddingLimits, EmbeddingProvider, EmbeddingPurpose},
};
use async_trait::async_trait;
use tokio::sync::Semaphore;

use super::forward;

/// Limits the number of calls at the same time. Other calls wait in the order in which they were made.
#[derive(Debug)]
pub struct Limiting {
    inner: Arc<dyn EmbeddingProvider>,
    calls: usize,
    turns: Semaphore,
}

impl Limiting {
    /// As many calls as the limits of `inner` allow.
    #[must_use]
    pub fn new(inner: Arc<dyn EmbeddingProvider>) -> Self {
        let calls = inner.limits().concurrent_calls;
        Self::with_calls(inner, calls)
    }

    /// At most `calls` calls; 0 counts as 1. The wrapper reports this number in its own limits.
    #[must_use]
    pub fn with_calls(inner: Arc<dyn EmbeddingProvider>, calls: usize) -> Self {
        let calls = calls.clamp(1, Semaphore::MAX_PERMITS);
        Self { inner, calls, turns: Semaphore::new(calls) }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl EmbeddingProvider for Limiting {
    forward!(space, strength, is_local, address);

    fn limits(&self) -> EmbeddingLimits {
        EmbeddingLimits { concurrent_calls: self.calls, ..self.inner.limits() }
    }

    async fn embed(&self, texts: &[String], purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        let closed =
            |source| Error::new(ErrorKind::Embedding, "the queue of calls is closed").with_source(source);
        let _turn = self.turns.acquire().await.map_err(closed)?;
        self.inner.embed(texts, purpose).await
    }
}
