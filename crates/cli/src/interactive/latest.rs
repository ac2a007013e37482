//! Tracks requests of which only the newest matters.

/// Numbers requests. One runs at a time. A request that is superseded before it starts is never started, and an older
/// answer never replaces a newer one.
#[derive(Debug, Default)]
pub(super) struct Latest {
    wanted: u64,
    started: u64,
    answered: u64,
    is_running: bool,
}

impl Latest {
    /// Records that a new request is wanted.
    pub(super) fn want(&mut self) {
        self.wanted += 1;
    }

    /// Records that no request is wanted any more. The answer of a running one is ignored.
    pub(super) fn forget(&mut self) {
        self.wanted += 1;
        (self.started, self.answered) = (self.wanted, self.wanted);
    }

    /// The number of the request to start now, if any.
    pub(super) fn start(&mut self) -> Option<u64> {
        if self.is_running || self.started == self.wanted {
            return None;
        }
        self.started = self.wanted;
        self.is_running = true;
        Some(self.started)
    }

    /// Whether to use the answer to a request.
    pub(super) fn accepts(&mut self, number: u64) -> bool {
        self.is_running = false;
        let is_newer = number > self.answered;
        self.answered = self.answered.max(number);
        is_newer
    }

    /// Whether the newest request has no answer yet.
    pub(super) fn is_open(&self) -> bool {
        self.answered < self.wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_runs_at_a_time_and_only_the_newest_follows() {
        let mut latest = Latest::default();
        assert_eq!(latest.start(), None);
        latest.want();
        assert_eq!(latest.start(), Some(1));
        latest.want();
        latest.want();
        assert_eq!(latest.start(), None);
        assert!(latest.accepts(1) && latest.is_open());
        assert_eq!(latest.start(), Some(3));
        assert!(latest.accepts(3) && !latest.is_open());
        assert_eq!(latest.start(), None);
    }

    #[test]
    fn an_answer_that_is_no_longer_wanted_is_ignored() {
        let mut latest = Latest::default();
        latest.want();
        let number = latest.start().unwrap();
        latest.forget();
        assert!(!latest.is_open() && !latest.accepts(number));
        latest.want();
        assert!(latest.start().is_some_and(|number| latest.accepts(number)));
        assert!(!latest.accepts(number));
    }
}
