//! Combines all wrappers in the right order.

use std::sync::Arc;

#[cfg(feature = "redact")]
use amplifier_session_core::content::Redaction;
use amplifier_session_core::{Result, embedding::EmbeddingProvider};

#[cfg(feature = "redact")]
use super::Redacting;
use super::{
    Batching, BreakerOptions, BreakerState, CacheStatistics, Caching, CircuitBreaking, Limiting,
    RetryOptions, Retrying, VectorCache, caching::MEMORY_ENTRIES,
};
use crate::clock::{Clock, SystemClock};

/// The settings of all wrappers; see [their order](super).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StackOptions {
    /// The models for which secrets are masked; by default, models that are not on this machine.
    #[cfg(feature = "redact")]
    pub redaction: Redaction,
    /// How many vectors are kept in memory. Default: 1,000; 0 keeps none.
    pub memory_entries: usize,
    /// The cache below the one in memory, such as `DiskCache`. By default, there is none.
    pub cache: Option<Arc<dyn VectorCache>>,
    /// The namespace in caches, see [`Caching::with_namespace`]. Default: empty.
    pub namespace: String,
    /// How often and for how long a failed call is retried.
    pub retry: RetryOptions,
    /// When a service counts as down.
    pub breaker: BreakerOptions,
    /// The clock to read and to wait with. Default: the system's.
    pub clock: Arc<dyn Clock>,
    /// The seed of the random waits. Default: random.
    pub seed: Option<u64>,
}

impl Default for StackOptions {
    fn default() -> Self {
        Self {
            #[cfg(feature = "redact")]
            redaction: Redaction::default(),
            memory_entries: MEMORY_ENTRIES,
            cache: None,
            namespace: String::new(),
            retry: RetryOptions::default(),
            breaker: BreakerOptions::default(),
            clock: Arc::new(SystemClock),
            seed: None,
        }
    }
}

impl StackOptions {
    /// Sets the models for which secrets are masked.
    #[cfg(feature = "redact")]
    #[must_use]
    pub fn with_redaction(mut self, redaction: Redaction) -> Self {
        self.redaction = redaction;
        self
    }

    /// Sets how many vectors are kept in memory; 0 keeps none.
    #[must_use]
    pub fn with_memory_entries(mut self, entries: usize) -> Self {
        self.memory_entries = entries;
        self
    }

    /// Sets the cache below the one in memory.
    #[must_use]
    pub fn with_cache(mut self, cache: Arc<dyn VectorCache>) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Sets the namespace in caches.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets how often and for how long a failed call is retried.
    #[must_use]
    pub fn with_retry(mut self, retry: RetryOptions) -> Self {
        self.retry = retry;
        self
    }

    /// Sets when a service counts as down.
    #[must_use]
    pub fn with_breaker(mut self, breaker: BreakerOptions) -> Self {
        self.breaker = breaker;
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the seed of the random waits, to make them reproducible.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Wraps `provider` in all wrappers.
    ///
    /// # Errors
    ///
    /// `Embedding` if the built-in rules for secrets can't be read, which would be a mistake in the build.
    pub fn wrap(self, provider: Arc<dyn EmbeddingProvider>) -> Result<Stack> {
        let limiting = Arc::new(Limiting::new(provider));
        let breaking =
            Arc::new(CircuitBreaking::new(limiting, self.breaker).with_clock(Arc::clone(&self.clock)));
        let mut retrying = Retrying::new(Arc::clone(&breaking) as _, self.retry).with_clock(self.clock);
        if let Some(seed) = self.seed {
            retrying = retrying.with_seed(seed);
        }
        let retrying = Arc::new(retrying);
        let batching = Arc::new(Batching::new(Arc::clone(&retrying) as _));
        let mut caching =
            Caching::new(batching).with_memory(self.memory_entries).with_namespace(self.namespace);
        if let Some(cache) = self.cache {
            caching = caching.with_below(cache);
        }
        let caching = Arc::new(caching);
        #[cfg(feature = "redact")]
        let redacting = Arc::new(Redacting::new(Arc::clone(&caching) as _, self.redaction)?);
        Ok(Stack {
            #[cfg(feature = "redact")]
            redacting,
            caching,
            retrying,
            breaking,
        })
    }
}

/// A provider in all wrappers.
#[derive(Debug, Clone)]
pub struct Stack {
    #[cfg(feature = "redact")]
    redacting: Arc<Redacting>,
    caching: Arc<Caching>,
    retrying: Arc<Retrying>,
    breaking: Arc<CircuitBreaking>,
}

/// The activity of the wrappers so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackStatistics {
    /// How many secrets were masked in texts that reached the wrappers unmasked.
    pub masked_secrets: u64,
    /// The sources of vectors.
    pub cache: CacheStatistics,
    /// The number of retries.
    pub retries: u64,
    /// Whether calls go through now.
    pub breaker: BreakerState,
}

impl Stack {
    /// The wrapped provider.
    #[must_use]
    pub fn provider(&self) -> Arc<dyn EmbeddingProvider> {
        #[cfg(feature = "redact")]
        let outermost = Arc::clone(&self.redacting) as _;
        #[cfg(not(feature = "redact"))]
        let outermost = Arc::clone(&self.caching) as _;
        outermost
    }

    /// The activity of the wrappers so far.
    #[must_use]
    pub fn statistics(&self) -> StackStatistics {
        #[cfg(feature = "redact")]
        let masked_secrets = self.redacting.masked();
        #[cfg(not(feature = "redact"))]
        let masked_secrets = 0;
        StackStatistics {
            masked_secrets,
            cache: self.caching.statistics(),
            retries: self.retrying.retries(),
            breaker: self.breaking.state(),
        }
    }
}
