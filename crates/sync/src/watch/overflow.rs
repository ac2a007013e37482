//! Limits how often everything is compared because notifications were lost.

use std::time::Duration;

use tokio::time::Instant;

/// If notifications are lost again and again, for example because another program writes millions of files in the root,
/// comparing everything each time would keep the processor busy.
#[derive(Debug, Default)]
pub(super) struct Overflow {
    /// When everything was last compared because of it.
    last: Option<Instant>,
    /// Whether notifications were lost since.
    is_pending: bool,
}

impl Overflow {
    /// Notifications were lost. Whether everything is to be compared now; otherwise it is later, see
    /// [`Overflow::is_due`].
    pub(super) fn add(&mut self, now: Instant, gap: Duration) -> bool {
        self.is_pending = true;
        self.is_due(now, gap)
    }

    /// Whether everything is to be compared now, because notifications were lost a while ago.
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
