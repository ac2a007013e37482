//! When the index is brought up to the rows, and how far it may fall behind.

use std::{
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The index is brought up to the rows when this much text or this many bytes of vectors were written since: a
/// search looks at what is newer row by row, so that this should stay short, also while a sync writes all the time.
const FOLD_BYTES: u64 = 2 * 1024 * 1024;

/// When so much was written since a fold began, writes wait for it: otherwise a sync that writes faster than the index
/// is folded would leave ever more to searches.
const MOST_UNFOLDED: u64 = 5 * FOLD_BYTES;

/// A write waits for no longer than this. A fold that merges large segments may take many times as long.
const LONGEST_WAIT: Duration = Duration::from_millis(200);

/// What was written since the index was last folded, and whether a fold is under way.
#[derive(Debug, Default)]
pub(crate) struct Folding {
    unfolded_bytes: AtomicU64,
    under_way: Mutex<bool>,
    ended: Condvar,
}

/// What should follow a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterWrite {
    /// Nothing.
    GoOn,
    /// A fold.
    Fold,
    /// [`Folding::wait`], and then a fold.
    WaitAndFold,
}

impl Folding {
    /// Counts what was written.
    pub(crate) fn wrote(&self, bytes: u64) -> AfterWrite {
        match self.unfolded_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes {
            MOST_UNFOLDED.. => AfterWrite::WaitAndFold,
            FOLD_BYTES.. => AfterWrite::Fold,
            _ => AfterWrite::GoOn,
        }
    }

    /// The turn to fold; none while another has it.
    pub(crate) fn turn(self: &Arc<Self>) -> Option<Turn> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *under_way, true) {
            return None;
        }
        self.unfolded_bytes.store(0, Ordering::Relaxed);
        Some(Turn(Arc::clone(self)))
    }

    /// Waits for the fold that is under way, but not for long.
    pub(crate) fn wait(&self) {
        let under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        // Whether it has ended or the time is up, the write goes on.
        let _ = self.ended.wait_timeout_while(under_way, LONGEST_WAIT, |under_way| *under_way);
    }
}

/// Says that a fold is under way, until it is dropped: also by a panic.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Folding>);

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.under_way.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_that_are_far_ahead_wait_for_the_fold_that_is_under_way() {
        let folding = Arc::new(Folding::default());
        assert_eq!(folding.wrote(FOLD_BYTES - 1), AfterWrite::GoOn);
        assert_eq!(folding.wrote(1), AfterWrite::Fold);
        let turn = folding.turn().unwrap();
        assert!(folding.turn().is_none());
        assert_eq!(folding.wrote(MOST_UNFOLDED), AfterWrite::WaitAndFold);
        let fold = std::thread::spawn(move || drop(turn));
        folding.wait();
        fold.join().unwrap();
        assert!(folding.turn().is_some());
        assert_eq!(folding.wrote(0), AfterWrite::GoOn);
    }
}
