//! When the index is brought up to the rows, and how far it may fall behind.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// The index is brought up to the rows when this much text or this many bytes of vectors were written since: a
/// search of another process looks at what is newer row by row. Half as much slows a sync by a tenth.
const FOLD_BYTES: u64 = 1024 * 1024;

/// When as much again was written while a fold is under way, writes wait for its end: otherwise a sync that writes
/// faster than the index is folded would leave ever more to searches. But they wait no longer than this since it began:
/// a fold that builds the index anew may take minutes.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// What was written since the index was last folded, and whether a fold is under way.
#[derive(Debug, Default)]
pub(crate) struct Folding {
    unfolded_bytes: AtomicU64,
    /// When the fold that is under way began.
    begun: Mutex<Option<Instant>>,
    ended: Condvar,
}

impl Folding {
    /// Counts what was written. True when a fold should follow, after [`Folding::wait`].
    pub(crate) fn wrote(&self, bytes: u64) -> bool {
        self.unfolded_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes >= FOLD_BYTES
    }

    /// Takes the turn to fold, up to [`Folding::end`]; false while another has it.
    pub(crate) fn begin(&self) -> bool {
        let mut begun = self.begun();
        if begun.is_some() {
            return false;
        }
        *begun = Some(Instant::now());
        self.unfolded_bytes.store(0, Ordering::Relaxed);
        true
    }

    /// Gives the turn back.
    pub(crate) fn end(&self) {
        *self.begun() = None;
        self.ended.notify_all();
    }

    /// Whether there is something to wait for.
    pub(crate) fn is_under_way(&self) -> bool {
        self.begun().is_some()
    }

    /// Waits for the fold that is under way, but not for long.
    pub(crate) fn wait(&self) {
        let begun = self.begun();
        let Some(since) = *begun else { return };
        let left = LONGEST_WAIT.saturating_sub(since.elapsed());
        // Whether it has ended or the time is up, the write goes on.
        let _ = self.ended.wait_timeout_while(begun, left, |begun| *begun == Some(since));
    }

    fn begun(&self) -> MutexGuard<'_, Option<Instant>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_that_are_far_ahead_wait_for_the_fold_that_is_under_way() {
        let folding = Folding::default();
        assert!(!folding.wrote(FOLD_BYTES - 1) && folding.wrote(1));
        folding.wait();
        assert!(folding.begin() && folding.is_under_way() && !folding.begin());
        assert!(!folding.wrote(FOLD_BYTES - 1) && folding.wrote(1));
        std::thread::scope(|scope| {
            scope.spawn(|| folding.end());
            folding.wait();
        });
        assert!(folding.begin() && !folding.wrote(0));
    }
}
