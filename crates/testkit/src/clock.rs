//! A clock controlled by a test.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use amplifier_session_core::model::Timestamp;

/// A clock that stands still or advances by a fixed step with each reading. Clones share the clock.
///
/// ```
/// use amplifier_session_testkit::TestClock;
///
/// let clock = TestClock::ticking("2026-01-05T08:00:00Z", 1_000_000);
/// assert_eq!(clock.now().to_string(), "2026-01-05T08:00:00.000000Z");
/// assert_eq!(clock.now().to_string(), "2026-01-05T08:00:01.000000Z");
/// ```
#[derive(Debug, Clone)]
pub struct TestClock {
    micros: Arc<AtomicI64>,
    step: i64,
}

impl TestClock {
    /// A clock that returns `time` (ISO 8601) until it is changed; the epoch if `time` is invalid.
    #[must_use]
    pub fn fixed(time: &str) -> Self {
        Self::ticking(time, 0)
    }

    /// A clock that returns `time` (ISO 8601) first and advances by `step_micros` with each reading.
    #[must_use]
    pub fn ticking(time: &str, step_micros: i64) -> Self {
        let start = Timestamp::parse(time).map_or(0, Timestamp::as_micros);
        Self { micros: Arc::new(AtomicI64::new(start)), step: step_micros }
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.fetch_add(self.step, Ordering::SeqCst))
    }

    /// Sets the clock to `time` (ISO 8601).
    pub fn set(&self, time: &str) {
        self.micros.store(Timestamp::parse(time).map_or(0, Timestamp::as_micros), Ordering::SeqCst);
    }

    /// Advances the clock.
    pub fn advance(&self, micros: i64) {
        self.micros.fetch_add(micros, Ordering::SeqCst);
    }

    /// The clock as a function, for `SessionStorage::with_clock`.
    pub fn function(&self) -> impl Fn() -> Timestamp + Send + Sync + 'static {
        let clock = self.clone();
        move || clock.now()
    }
}
