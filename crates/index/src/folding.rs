//! When the index is updated, and how far it may fall behind.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// The index is updated after this many bytes of text or vectors were written, because searches of other processes read
/// newer rows one by one. Half of this would slow a sync by a tenth.
const FOLD_BYTES: u64 = 1024 * 1024;

/// If as much again is written during a fold, writes wait for its end: otherwise a sync that writes faster than the
/// index is folded would leave more and more to searches. They wait at most this long after the fold began, because a
/// fold that rebuilds the index may take minutes.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// The number of bytes written since the last fold, and whether a fold is running.
#[derive(Debug, Default)]
pub(crate) struct Folding {
    unfolded_bytes: AtomicU64,
    /// When the running fold began.
    begun: Mutex<Option<Instant>>,
    ended: Condvar,
}

impl Folding {
    /// Counts written bytes. Returns true if a fold should follow, after [`Folding::wait`].
    pub(crate) fn wrote(&self, bytes: u64) -> bool {
        self.unfolded_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes >= FOLD_BYTES
    }

    /// Begins a fold, which lasts until [`Folding::end`]. Returns false if one is running.
    pub(crate) fn begin(&self) -> bool {
        let mut begun = self.begun();
        if begun.is_some() {
            return false;
        }
        *begun = Some(Instant::now());
        self.unfolded_bytes.store(0, Ordering::Relaxed);
        true
    }

    /// Ends the fold.
    pub(crate) fn end(&self) {
        *self.begun() = None;
        self.ended.notify_all();
    }

    /// Whether a fold is running.
    pub(crate) fn is_running(&self) -> bool {
        self.begun().is_some()
    }

    /// Waits for the running fold, up to [`LONGEST_WAIT`].
    pub(crate) fn wait(&self) {
        let begun = self.begun();
        let Some(since) = *begun else { return };
        let left = LONGEST_WAIT.saturating_sub(since.elapsed());
        // The write continues whether the fold has ended or the time is up.
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
    fn writes_wait_for_a_running_fold() {
        let folding = Folding::default();
        assert!(!folding.wrote(FOLD_BYTES - 1) && folding.wrote(1));
        folding.wait();
        assert!(folding.begin() && folding.is_running() && !folding.begin());
        assert!(!folding.wrote(FOLD_BYTES - 1) && folding.wrote(1));
        std::thread::scope(|scope| {
            scope.spawn(|| folding.end());
            folding.wait();
        });
        assert!(folding.begin() && !folding.wrote(0));
    }
}
