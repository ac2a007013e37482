//! When the index is brought up to the rows, and how far it may fall behind.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
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

    /// The turn to fold; none while another has it.
    pub(crate) fn turn(self: &Arc<Self>) -> Option<Turn> {
        let mut begun = self.begun();
        if begun.is_some() {
            return None;
        }
        *begun = Some(Instant::now());
        self.unfolded_bytes.store(0, Ordering::Relaxed);
        Some(Turn(Arc::clone(self)))
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

/// Says that a fold is under way, until it is dropped: also by a panic.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Folding>);

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.begun() = None;
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_that_are_far_ahead_wait_for_the_fold_that_is_under_way() {
        let folding = Arc::new(Folding::default());
        assert!(!folding.wrote(FOLD_BYTES - 1) && folding.wrote(1));
        folding.wait();
        let turn = folding.turn().unwrap();
        assert!(folding.is_under_way() && folding.turn().is_none());
        assert!(!folding.wrote(FOLD_BYTES - 1) && folding.wrote(1));
        let fold = std::thread::spawn(move || drop(turn));
        folding.wait();
        fold.join().unwrap();
        assert!(folding.turn().is_some());
        assert!(!folding.wrote(0));
    }
}
