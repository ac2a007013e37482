//! Sessions that could not be read, and when to try them again.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::{changed::Changed, report::FolderFailure};

/// At most this many sessions are tried again. Others are read when all sessions are compared.
const MOST: usize = 1_000;

/// Root, project, session.
type RetryKey = (usize, String, String);

/// The sessions that could not be read.
#[derive(Debug)]
pub(super) struct Retries {
    first: Duration,
    longest: Duration,
    /// The number of failures in a row, and when the next attempt is due.
    sessions: HashMap<RetryKey, (u32, Instant)>,
}

impl Retries {
    /// The wait after the first failure of a session is `first`. After each further failure, it doubles, up to
    /// `longest`.
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, sessions: HashMap::new() }
    }

    /// Records that sessions of a root were read, and which of them failed.
    pub(super) fn record(&mut self, root: usize, read: &Changed, failed: &[FolderFailure], now: Instant) {
        let mut before = HashMap::new();
        let is_read = |(of, project, session): &RetryKey| {
            *of == root
                && (read.everything
                    || read.projects.contains(project)
                    || read.sessions.contains(&(project.clone(), session.clone())))
        };
        for (place, (failures, _)) in self.sessions.extract_if(|place, _| is_read(place)) {
            before.insert(place, failures);
        }
        for failure in failed {
            let Some(session) = &failure.session else { continue };
            let place = (root, failure.project.clone(), session.clone());
            let failures = before.get(&place).map_or(0, |failures| failures + 1);
            let wait = self.first.saturating_mul(1 << failures.min(16)).min(self.longest);
            if self.sessions.len() < MOST {
                self.sessions.insert(place, (failures, now + wait));
            }
        }
    }

    /// When the next attempt is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.sessions.values().map(|(_, due)| *due).min()
    }

    /// The due sessions of the first root that has any. They are due again later if they are not read.
    pub(super) fn due(&mut self, now: Instant) -> Option<(usize, Changed)> {
        let root = self.sessions.iter().find(|(_, (_, due))| *due <= now).map(|((root, ..), _)| *root)?;
        let mut changed = Changed::default();
        for ((of, project, session), (_, due)) in &mut self.sessions {
            if *of == root && *due <= now {
                *due = now + self.longest;
                changed.sessions.insert((project.clone(), session.clone()));
            }
        }
        Some((root, changed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(session: &str) -> FolderFailure {
        FolderFailure {
            project: "p".to_owned(),
            session: Some(session.to_owned()),
            error: "broken".to_owned(),
        }
    }

    #[test]
    fn waits_grow_until_the_session_can_be_read() {
        let second = Duration::from_secs(1);
        let (begin, mut retries) = (Instant::now(), Retries::new(second, 4 * second));
        retries.record(0, &Changed::everything(), &[failed("s"), failed("t")], begin);
        assert_eq!(retries.due(begin), None);
        let mut now = begin;
        for wait in [1, 2, 4, 4] {
            now += wait * second;
            assert_eq!(retries.next(), Some(now));
            let (root, changed) = retries.due(now).unwrap();
            assert_eq!((root, changed.count()), (0, Some(2)));
            assert_eq!(retries.due(now), None);
            retries.record(0, &changed, &[failed("s"), failed("t")], now);
        }
        let mut only_s = Changed::default();
        only_s.sessions.insert(("p".to_owned(), "s".to_owned()));
        retries.record(0, &only_s, &[], now);
        assert_eq!(retries.due(now + 9 * second).unwrap().1.count(), Some(1));
        retries.record(1, &Changed::everything(), &[], now);
        assert!(retries.next().is_some());
        retries.record(0, &Changed::everything(), &[], now);
        assert_eq!(retries.next(), None);
    }
}
