//! The clock that wrappers read and wait with.
//!
//! Retries wait and a circuit breaker pauses, but their tests must not. So they use a [`Clock`]: [`SystemClock`] in
//! programs, [`ManualClock`] in tests.

use std::{
    fmt::Debug,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use async_trait::async_trait;

/// Provides the time, and waits.
#[async_trait]
pub trait Clock: Debug + Send + Sync {
    /// A monotonic point in time, to measure durations.
    fn now(&self) -> Instant;

    /// The date and time of day, for people and services.
    fn wall(&self) -> SystemTime;

    /// Waits for `duration`.
    async fn sleep(&self, duration: Duration);
}

/// The system's clock. [`Clock::sleep`] needs a tokio runtime with its timer enabled.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A clock for tests. It stands still until it is advanced; sleeping advances it instead of waiting.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::Duration;
///
/// use amplifier_session_embed::clock::{Clock, ManualClock};
///
/// let clock = ManualClock::default();
/// let before = clock.now();
/// clock.sleep(Duration::from_secs(60)).await;
/// assert_eq!(clock.now() - before, Duration::from_secs(60));
/// assert_eq!(clock.slept(), [Duration::from_secs(60)]);
/// # }
/// ```
#[derive(Debug)]
pub struct ManualClock {
    start: Instant,
    wall: SystemTime,
    state: Mutex<ManualState>,
}

#[derive(Debug, Default)]
struct ManualState {
    passed: Duration,
    slept: Vec<Duration>,
}

impl Default for ManualClock {
    /// A clock whose [`Clock::wall`] begins at 2026-01-05 08:00:00 UTC.
    fn default() -> Self {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_600_000);
        Self { start: Instant::now(), wall, state: Mutex::default() }
    }
}

impl ManualClock {
    /// Advances the clock.
    pub fn advance(&self, duration: Duration) {
        self.state().passed += duration;
    }

    /// The durations of all sleeps so far, in order.
    #[must_use]
    pub fn slept(&self) -> Vec<Duration> {
        self.state().slept.clone()
    }

    fn state(&self) -> MutexGuard<'_, ManualState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.start + self.state().passed
    }

    fn wall(&self) -> SystemTime {
        self.wall + self.state().passed
    }

    async fn sleep(&self, duration: Duration) {
        self.advance(duration);
        self.state().slept.push(duration);
        // Other tasks run, as they would during a real wait.
        tokio::task::yield_now().await;
    }
}
