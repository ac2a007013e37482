//! The totals of a store, kept between searches.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::search::Totals;

/// For how long they are taken for true, while other processes write.
const AGE: Duration = Duration::from_secs(60);

/// The last totals that were read, unless this process wrote since.
#[derive(Debug, Default)]
pub(crate) struct KeptTotals(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// How often this process wrote.
    writes: u64,
    totals: Option<(Instant, Totals)>,
}

impl KeptTotals {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self) -> Option<Totals> {
        let (read, totals) = self.kept().totals?;
        (read.elapsed() < AGE).then_some(totals)
    }

    /// To be called before totals are read, and its answer to be handed to [`KeptTotals::put`].
    pub(crate) fn ask(&self) -> u64 {
        self.kept().writes
    }

    /// Keeps totals, unless there was a write since they were asked for.
    pub(crate) fn put(&self, asked: u64, totals: Totals) {
        let mut kept = self.kept();
        if kept.writes == asked {
            kept.totals = Some((Instant::now(), totals));
        }
    }

    /// Something was written.
    pub(crate) fn forget(&self) {
        let mut kept = self.kept();
        kept.writes += 1;
        kept.totals = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_before_a_write_is_not_kept() {
        let kept = KeptTotals::default();
        let asked = kept.ask();
        kept.forget();
        kept.put(asked, Totals::default());
        assert!(kept.get().is_none());
        kept.put(kept.ask(), Totals::default());
        assert!(kept.get().is_some());
        kept.forget();
        assert!(kept.get().is_none());
    }
}
