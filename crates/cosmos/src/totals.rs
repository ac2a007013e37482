//! The totals of all texts in a store, cached between searches.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::documents::TextTotals;

/// How long totals are used even if other processes write. Scores depend on them only slightly.
const MAX_AGE: Duration = Duration::from_secs(60);

/// The totals as last read. They are dropped when this process writes.
#[derive(Debug, Default)]
pub(crate) struct CachedTotals(Mutex<Cached>);

#[derive(Debug, Default)]
struct Cached {
    /// The number of writes of this process.
    writes: u64,
    totals: Option<(Instant, TextTotals)>,
}

impl CachedTotals {
    fn cached(&self) -> MutexGuard<'_, Cached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cached totals, or the number of writes so far, for [`put`](Self::put).
    pub(crate) fn get(&self, now: Instant) -> Result<TextTotals, u64> {
        let cached = self.cached();
        let fresh = cached.totals.filter(|(read, _)| now.duration_since(*read) < MAX_AGE);
        fresh.map(|(_, totals)| totals).ok_or(cached.writes)
    }

    /// Caches `totals`, unless there was a write after the first `writes`.
    pub(crate) fn put(&self, now: Instant, totals: TextTotals, writes: u64) {
        let mut cached = self.cached();
        if cached.writes == writes {
            cached.totals = Some((now, totals));
        }
    }

    /// Records a write.
    pub(crate) fn clear(&self) {
        let mut cached = self.cached();
        cached.writes += 1;
        cached.totals = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_that_were_read_before_a_write_are_not_cached() {
        let (cache, now) = (CachedTotals::default(), Instant::now());
        let before = cache.get(now).unwrap_err();
        cache.clear();
        cache.put(now, TextTotals::default(), before);
        let after = cache.get(now).unwrap_err();
        cache.put(now, TextTotals::default(), after);
        assert!(cache.get(now).is_ok());
        cache.clear();
        assert!(cache.get(now).is_err());
    }

    #[test]
    fn totals_expire() {
        let (cache, now) = (CachedTotals::default(), Instant::now());
        cache.put(now, TextTotals::default(), 0);
        assert!(cache.get(now + MAX_AGE - Duration::from_nanos(1)).is_ok());
        assert!(cache.get(now + MAX_AGE).is_err());
    }
}
