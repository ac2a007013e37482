//! Retries with exponential backoff.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use amplifier_session_core::{
    Error, Result,
    embedding::{EmbeddingProvider, EmbeddingPurpose},
};
use async_trait::async_trait;

use super::forward;
use crate::clock::{Clock, SystemClock};

/// How often and for how long a failed call is retried.
///
/// The wait after the `n`th failure is random, between 0 and `first_wait * 2^(n - 1)`, and at most `longest_wait`. This
/// is exponential backoff with full jitter, so that not all clients return at the same moment
/// (<https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/>). If the service says how long to wait,
/// the wait is that long plus a random part of `first_wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryOptions {
    /// The maximum number of attempts, including the first. Default: 6.
    pub attempts: u32,
    /// The maximum wait after the first failure. Default: 500 ms.
    pub first_wait: Duration,
    /// The maximum wait after any failure, unless the service asks for more. Default: 20 s.
    pub longest_wait: Duration,
    /// The maximum wait that the service may ask for. If it asks for more, the call fails. Default: 120 s.
    pub longest_demand: Duration,
    /// How long after the start of the first attempt the last one may start. Default: 5 minutes.
    pub total: Duration,
    /// As `total`, for queries. Default: 1 s, because a user is waiting, and the search can use words alone.
    pub query_total: Duration,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            attempts: 6,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(20),
            longest_demand: Duration::from_secs(120),
            total: Duration::from_secs(300),
            query_total: Duration::from_secs(1),
        }
    }
}

impl RetryOptions {
    /// Sets the maximum number of attempts, including the first. With 0 or 1, there are no retries.
    #[must_use]
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    fn total_for(&self, purpose: EmbeddingPurpose) -> Duration {
        match purpose {
            EmbeddingPurpose::Query => self.query_total,
            EmbeddingPurpose::Document => self.total,
        }
    }
}

/// Retries calls whose error is marked as retryable, according to [`RetryOptions`].
///
/// When it gives up, it returns the last error with the number of attempts, and mentions if the service asked for too
/// long a wait.
#[derive(Debug)]
pub struct Retrying {
    inner: Arc<dyn EmbeddingProvider>,
    options: RetryOptions,
    clock: Arc<dyn Clock>,
    random: Mutex<fastrand::Rng>,
    retries: AtomicU64,
}

impl Retrying {
    /// Retries the calls of `inner`, with the system's clock.
    #[must_use]
    pub fn new(inner: Arc<dyn EmbeddingProvider>, options: RetryOptions) -> Self {
        let random = Mutex::new(fastrand::Rng::new());
        Self { inner, options, clock: Arc::new(SystemClock), random, retries: AtomicU64::new(0) }
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
        self.random = Mutex::new(fastrand::Rng::with_seed(seed));
        self
    }

    /// The number of retries of all calls so far.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// How long to wait after the `attempt`th attempt, or the error if it was the last one. No attempt starts after
    /// `last`.
    fn wait(&self, attempt: u32, last: Option<Instant>, error: Error) -> Result<Duration> {
        if !error.is_retryable() {
            return Err(error);
        }
        let give_up = |error: Error| Err(error.with("attempts", attempt));
        if attempt >= self.options.attempts {
            return give_up(error);
        }
        let wait = match error.retry_after() {
            Some(demand) if demand > self.options.longest_demand => {
                let asked = format!("the service asks to wait {} s, which is too long", demand.as_secs());
                return give_up(error.because(asked));
            }
            Some(demand) => demand.saturating_add(self.up_to(self.options.first_wait)),
            None => self.up_to(self.longest_wait_after(attempt)),
        };
        let next = self.clock.now().checked_add(wait);
        let too_late = next.is_none_or(|next| last.is_some_and(|last| next > last));
        if too_late { give_up(error) } else { Ok(wait) }
    }

    fn longest_wait_after(&self, attempt: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        self.options.first_wait.saturating_mul(doubled).min(self.options.longest_wait)
    }

    /// A random duration of at most `most`.
    fn up_to(&self, most: Duration) -> Duration {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        Duration::from_nanos(random.u64(..=u64::try_from(most.as_nanos()).unwrap_or(u64::MAX)))
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl EmbeddingProvider for Retrying {
    forward!(inner: space, limits, strength, is_local, address);

    async fn embed(&self, texts: &[String], purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        let last = self.clock.now().checked_add(self.options.total_for(purpose));
        let mut attempt = 1;
        loop {
            let error = match self.inner.embed(texts, purpose).await {
                Ok(vectors) => return Ok(vectors),
                Err(error) => error,
            };
            tracing::debug!(attempt, %error, "an embedding call failed");
            let wait = self.wait(attempt, last, error)?;
            self.clock.sleep(wait).await;
            self.retries.fetch_add(1, Ordering::Relaxed);
            attempt += 1;
        }
    }
}
