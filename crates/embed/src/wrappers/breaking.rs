//! A circuit breaker: makes no calls to a service that is down.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    embedding::{EmbeddingProvider, EmbeddingPurpose},
    model::Timestamp,
};
use async_trait::async_trait;

use super::forward;
use crate::clock::{Clock, SystemClock};

/// When a service counts as down, and how long it is not called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerOptions {
    /// The number of consecutive failures that opens the breaker. Default: 5; 0 counts as 1.
    pub failures: u32,
    /// How long an open breaker rejects calls. Default: 60 s.
    pub pause: Duration,
}

impl Default for BreakerOptions {
    fn default() -> Self {
        Self { failures: 5, pause: Duration::from_secs(60) }
    }
}

impl BreakerOptions {
    /// Sets the number of consecutive failures that opens the breaker.
    #[must_use]
    pub fn with_failures(mut self, failures: u32) -> Self {
        self.failures = failures;
        self
    }
}

/// Whether a breaker lets calls through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// All calls go through.
    Closed,
    /// Calls are rejected until the pause is over.
    Open,
    /// The pause is over: one call probes the service, and others are rejected.
    HalfOpen,
}

/// Opens after a number of consecutive failures, and then rejects all calls for a while. After that pause, one call at
/// a time goes through as a probe. If the service answers it, the breaker closes; if it fails, another pause begins.
///
/// A failure is an error that is marked as retryable and does not say how long to wait. Other errors, such as a rejected
/// text, rejected credentials or a request to wait, show that the service is up. While the breaker is open, only the
/// probe counts; calls that began earlier do not.
///
/// A rejected call fails with an `Embedding` error that is not marked as retryable. Its message begins with the last
/// failure, which names the service's address and is its cause. If a probe is dropped, the next call becomes the probe.
#[derive(Debug)]
pub struct CircuitBreaking {
    inner: Arc<dyn EmbeddingProvider>,
    options: BreakerOptions,
    clock: Arc<dyn Clock>,
    circuit: Mutex<Circuit>,
}

#[derive(Debug)]
enum Circuit {
    Closed { failures: u32 },
    Open { outage: Outage, probing: bool },
}

#[derive(Debug, Clone)]
struct Outage {
    /// When it began.
    since: SystemTime,
    /// When the service last failed.
    failed: Instant,
    /// When the pause ends.
    until: Timestamp,
    cause: Error,
}

impl CircuitBreaking {
    /// Watches the calls to `inner`, with the system's clock.
    #[must_use]
    pub fn new(inner: Arc<dyn EmbeddingProvider>, options: BreakerOptions) -> Self {
        let circuit = Mutex::new(Circuit::Closed { failures: 0 });
        Self { inner, options, clock: Arc::new(SystemClock), circuit }
    }

    /// Sets the clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Whether calls go through now.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        match &*self.circuit() {
            Circuit::Closed { .. } => BreakerState::Closed,
            Circuit::Open { outage, .. } if self.pauses(outage) => BreakerState::Open,
            Circuit::Open { .. } => BreakerState::HalfOpen,
        }
    }

    fn circuit(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pauses(&self, outage: &Outage) -> bool {
        self.clock.now().saturating_duration_since(outage.failed) < self.options.pause
    }

    /// Lets a call through, possibly as a probe, or rejects it.
    fn enter(&self) -> Result<Permit<'_>> {
        let mut circuit = self.circuit();
        match &mut *circuit {
            Circuit::Closed { .. } => Ok(Permit { breaker: self, probe: false }),
            Circuit::Open { outage, probing } if *probing || self.pauses(outage) => Err(outage.error()),
            Circuit::Open { probing, .. } => {
                *probing = true;
                Ok(Permit { breaker: self, probe: true })
            }
        }
    }

    /// Counts a failed call, and opens the breaker if there were too many.
    fn failed(&self, probe: bool, error: &Error) {
        let mut circuit = self.circuit();
        match &mut *circuit {
            Circuit::Closed { failures } if failures.saturating_add(1) < self.options.failures => {
                *failures += 1
            }
            Circuit::Closed { .. } => *circuit = self.open(self.clock.wall(), error),
            Circuit::Open { outage, .. } if probe => *circuit = self.open(outage.since, error),
            Circuit::Open { .. } => {}
        }
    }

    /// Records that the service answered.
    fn answered(&self, probe: bool) {
        let mut circuit = self.circuit();
        match &mut *circuit {
            Circuit::Closed { failures } => *failures = 0,
            Circuit::Open { .. } if probe => {
                tracing::info!("the embedding service is up again");
                *circuit = Circuit::Closed { failures: 0 };
            }
            Circuit::Open { .. } => {}
        }
    }

    fn open(&self, since: SystemTime, cause: &Error) -> Circuit {
        let pause = self.options.pause;
        tracing::warn!(?pause, %cause, "the embedding service is down; calls to it are paused");
        Circuit::Open {
            outage: Outage {
                since,
                failed: self.clock.now(),
                until: timestamp(self.clock.wall(), pause),
                cause: cause.clone(),
            },
            probing: false,
        }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl EmbeddingProvider for CircuitBreaking {
    forward!(inner: space, limits, strength, is_local, address);

    async fn embed(&self, texts: &[String], purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        let permit = self.enter()?;
        let answer = self.inner.embed(texts, purpose).await;
        permit.end(&answer);
        answer
    }
}

/// A call that was let through. A probe that is dropped before it ends makes room for another one; otherwise the
/// breaker would stay half open forever.
#[derive(Debug)]
struct Permit<'a> {
    breaker: &'a CircuitBreaking,
    probe: bool,
}

impl Permit<'_> {
    fn end<T>(mut self, answer: &Result<T>) {
        let probe = std::mem::take(&mut self.probe);
        match answer {
            // A service that asks to wait is up.
            Err(error) if error.is_retryable() && error.retry_after().is_none() => {
                self.breaker.failed(probe, error);
            }
            _ => self.breaker.answered(probe),
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if !self.probe {
            return;
        }
        if let Circuit::Open { probing, .. } = &mut *self.breaker.circuit() {
            *probing = false;
        }
    }
}

impl Outage {
    fn error(&self) -> Error {
        let cause = self.cause.message();
        // A message of the service is often a sentence.
        let message = if cause.ends_with(['.', '!', '?']) {
            format!("{cause} Calls to the service are paused")
        } else {
            format!("{cause}; calls to the service are paused")
        };
        let error = Error::new(ErrorKind::Embedding, message);
        let status = self.cause.context("status");
        let error = status.into_iter().fold(error, |error, status| error.with("status", status));
        error
            .with("since", timestamp(self.since, Duration::ZERO))
            .with("until", self.until)
            .with_source(self.cause.clone())
    }
}

/// The timestamp of `time` plus `delay`.
fn timestamp(time: SystemTime, delay: Duration) -> Timestamp {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_add(delay);
    Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}
