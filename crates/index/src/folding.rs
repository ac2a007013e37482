//! Determines when the index is updated, and how far it may fall behind.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The index is updated after this many bytes of text or vectors were written, because searches of other processes read
/// newer rows one by one. Half of this would slow a sync by a tenth.
const FOLD_BYTES: u64 = 1024 * 1024;

/// If as much again is written during a fold, writes wait for its end: otherwise, a sync that writes faster than the
/// index is folded would leave more and more rows to searches. They wait at most this long for a fold, because one that
/// rebuilds the index may take minutes.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// The number of bytes written since the last fold, and whether a fold is running.
#[derive(Debug, Default)]
pub(crate) struct Folding {
    unfolded_bytes: AtomicU64,
    fold: Mutex<FoldState>,
    ended: Condvar,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum FoldState {
    #[default]
    None,
    Running,
    /// Running, and one write has already waited [`LONGEST_WAIT`] for it. Other writes do not wait.
    Long,
}

impl Folding {
    /// Counts written bytes. Returns true if a fold should follow, after [`Folding::wait`].
    pub(crate) fn wrote(&self, bytes: u64) -> bool {
        self.unfolded_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes >= FOLD_BYTES
    }

    /// Begins a fold, which lasts until [`Folding::end`]. Returns false if one is running.
    pub(crate) fn begin(&self) -> bool {
        let mut fold = self.fold();
        if *fold != FoldState::None {
            return false;
        }
        *fold = FoldState::Running;
        self.unfolded_bytes.store(0, Ordering::Relaxed);
        true
    }

    /// Ends the fold.
    pub(crate) fn end(&self) {
        *self.fold() = FoldState::None;
        self.ended.notify_all();
    }

    /// Whether a fold is running.
    pub(crate) fn is_running(&self) -> bool {
        *self.fold() != FoldState::None
    }

    /// Waits for the running fold, up to [`LONGEST_WAIT`].
    pub(crate) fn wait(&self) {
        let is_running = |fold: &mut FoldState| *fold == FoldState::Running;
        let waited = self.ended.wait_timeout_while(self.fold(), LONGEST_WAIT, is_running);
        let (mut fold, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            *fold = FoldState::Long;
        }
    }

    fn fold(&self) -> MutexGuard<'_, FoldState> {
        self.fold.lock().unwrap_or_else(PoisonError::into_inner)
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
