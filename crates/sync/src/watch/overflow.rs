//! Limits how often everything is compared because notifications were lost.

use std::time::Duration;

use tokio::time::Instant;

/// If notifications keep getting lost, for example because another program writes millions of files in the root,
/// comparing everything each time would keep the processor busy.
#[derive(Debug, Default)]
pub(super) struct Overflow {
    /// When everything was last compared because of lost notifications.
    last: Option<Instant>,
    /// Whether notifications were lost since.
    is_pending: bool,
}

impl Overflow {
    /// Records that notifications were lost. Returns whether to compare everything now; otherwise, [`Overflow::is_due`]
    /// returns true later.
    pub(super) fn add(&mut self, now: Instant, gap: Duration) -> bool {
        self.is_pending = true;
        self.is_due(now, gap)
    }

    /// Whether to compare everything now, because notifications were lost earlier.
    pub(super) fn is_due(&mut self, now: Instant, gap: Duration) -> bool {
        let is_due = self.is_pending && self.last.is_none_or(|last| now.duration_since(last) >= gap);
        if is_due {
            (self.last, self.is_pending) = (Some(now), false);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_in_a_row_are_one() {
        let (begin, gap) = (Instant::now(), Duration::from_secs(10));
        let after = |seconds| begin + Duration::from_secs(seconds);
        let mut overflow = Overflow::default();
        assert!(!overflow.is_due(begin, gap) && overflow.add(begin, gap));
        assert!(
            !overflow.add(after(1), gap) && !overflow.add(after(2), gap) && !overflow.is_due(after(9), gap)
        );
        assert!(overflow.is_due(after(10), gap) && !overflow.is_due(after(30), gap));
        assert!(overflow.add(after(31), gap));
    }
}
