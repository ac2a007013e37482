//! Another attempt, later.

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

/// How often and how long a call is made again.
///
/// Before the attempt after the `n`th failure lies a random wait between 0 and `first_wait * 2^(n - 1)`, but not more
/// than `longest_wait`: exponential backoff with full jitter, which spreads the clients of a service that comes back
/// (<https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/>). Where the service says how long to
/// wait, it is waited that long, and a random part of `first_wait` on top for the same reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryOptions {
    /// The most attempts, the first included; 6 by default.
    pub attempts: u32,
    /// The longest wait after the first failure; 500 ms by default.
    pub first_wait: Duration,
    /// The longest wait of our own choice; 20 s by default.
    pub longest_wait: Duration,
    /// The longest wait that the service may ask for; 120 s by default. If it asks for more, the call fails.
    pub longest_demand: Duration,
    /// No attempt begins later than this after the first one began; 5 minutes by default.
    pub total: Duration,
    /// The same for the text of a query, for which somebody waits who can search by words instead; 1 s by default.
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
    /// Sets the most attempts, the first included; 0 counts as 1, and 1 means that nothing is tried again.
    #[must_use]
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets the longest wait after the first failure, and the longest of all.
    #[must_use]
    pub fn with_waits(mut self, first: Duration, longest: Duration) -> Self {
        (self.first_wait, self.longest_wait) = (first, longest);
        self
    }

    /// Sets the longest wait that the service may ask for.
    #[must_use]
    pub fn with_longest_demand(mut self, demand: Duration) -> Self {
        self.longest_demand = demand;
        self
    }

    /// Sets how long after the first attempt the last one may begin.
    #[must_use]
    pub fn with_total(mut self, total: Duration) -> Self {
        self.total = total;
        self
    }

    /// Sets the same for the text of a query.
    #[must_use]
    pub fn with_query_total(mut self, total: Duration) -> Self {
        self.query_total = total;
        self
    }

    fn total_for(&self, purpose: EmbeddingPurpose) -> Duration {
        match purpose {
            EmbeddingPurpose::Query => self.query_total,
            EmbeddingPurpose::Document => self.total,
        }
    }
}

/// Makes a call again whose error is marked as retryable; [`RetryOptions`] says how often and when.
///
/// When it gives up it returns the last error, with the number of attempts and, if that was it, the demand that was
/// too long.
#[derive(Debug)]
pub struct Retrying {
    inner: Arc<dyn EmbeddingProvider>,
    options: RetryOptions,
    clock: Arc<dyn Clock>,
    random: Mutex<fastrand::Rng>,
    retries: AtomicU64,
}

impl Retrying {
    /// Retries the calls of `inner`, by the time of the system.
    #[must_use]
    pub fn new(inner: Arc<dyn EmbeddingProvider>, options: RetryOptions) -> Self {
        let random = Mutex::new(fastrand::Rng::new());
        Self { inner, options, clock: Arc::new(SystemClock), random, retries: AtomicU64::new(0) }
    }

    /// Sets what tells the time and waits.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets where the random numbers begin, so that the waits are the same each time.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.random = Mutex::new(fastrand::Rng::with_seed(seed));
        self
    }

    /// How many attempts were made after a failure, over all calls.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// How long to wait after the `attempt`th attempt, or the error when it was the last one; none begins after `last`.
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
                let asked = format!(
                    "the service asks to wait {} s, longer than this program waits",
                    demand.as_secs()
                );
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

    /// A random duration, `most` at the most.
    fn up_to(&self, most: Duration) -> Duration {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        Duration::from_nanos(random.u64(..=u64::try_from(most.as_nanos()).unwrap_or(u64::MAX)))
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl EmbeddingProvider for Retrying {
    forward!(space, limits, strength, is_local, address);

    async fn embed(&self, texts: &[String], purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        let last = self.clock.now().checked_add(self.options.total_for(purpose));
        let mut attempt = 1;
        loop {
            let error = match self.inner.embed(texts, purpose).await {
                Ok(vectors) => return Ok(vectors),
                Err(error) => error,
            };
            tracing::debug!(attempt, %error, "a call for embeddings failed");
            let wait = self.wait(attempt, last, error)?;
            self.clock.sleep(wait).await;
            self.retries.fetch_add(1, Ordering::Relaxed);
            attempt += 1;
        }
    }
}
