//! Waits before a store or a server is tried again.

use std::time::Duration;

/// Waits that grow from failure to failure.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
    random: fastrand::Rng,
}

impl Backoff {
    /// Waits that begin with `first`, and grow up to `longest`. `seed` makes those of one process differ from those of others.
    #[must_use]
    pub fn new(first: Duration, longest: Duration, seed: u64) -> Self {
        Self { first, longest, failures: 0, random: fastrand::Rng::with_seed(seed) }
    }

    /// The wait after another failure: twice the last one, minus a random share of up to a half, so that several
    /// clients of a store do not return to it at the same moment. It is at least `asked`, the time that the service
    /// asks for.
    pub fn next(&mut self, asked: Option<Duration>) -> Duration {
        let wait = self.first.saturating_mul(1 << self.failures.min(16)).min(self.longest);
        self.failures += 1;
        let wait = wait.mul_f64(1.0 - self.random.f64() / 2.0);
        wait.max(asked.unwrap_or_default())
    }

    /// Records that the store works again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_longest_and_vary() {
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new(second, 60 * second, 1);
        let waits: Vec<_> = (0..12).map(|_| backoff.next(None)).collect();
        for (n, wait) in waits.iter().enumerate() {
            let whole = (second * 2_u32.pow(n as u32)).min(60 * second);
            assert!(*wait <= whole && *wait >= whole / 2, "wait {n} is {wait:?}");
        }
        assert_ne!(waits[10], waits[11]);
        assert_eq!(backoff.next(Some(100 * second)), 100 * second);
        backoff.reset();
        assert!(backoff.next(None) <= second);
    }
}
