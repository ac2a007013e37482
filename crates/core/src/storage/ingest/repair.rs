//! Rewrites rows that are stored wrongly, although their digests say that they are stored.

use std::collections::BTreeSet;

use super::SessionIngest;
use crate::{
    ErrorKind, Result,
    model::{Digest, MessageState, TimeSource, Timestamp},
    storage::Gaps,
};

/// Known problems of the stored rows of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IngestRepair {
    /// Messages to write even if the store has their digest.
    pub messages: BTreeSet<u32>,
    /// Whether to write all events.
    pub events: bool,
    /// Sequences without rows.
    pub gaps: Gaps,
    /// Whether the digests of messages and of events can't be read. It is then unknown which rows exist, and no row is
    /// removed.
    unknown: [bool; 2],
}

impl IngestRepair {
    /// Writes these messages again, and all events if `events`.
    #[must_use]
    pub fn new(messages: BTreeSet<u32>, events: bool, gaps: Gaps) -> Self {
        Self { messages, events, gaps, unknown: [false; 2] }
    }
}

impl SessionIngest {
    /// Repairs rows that are stored wrongly as lines are ingested. Lines must begin at sequence 0. If digests can't be
    /// read, all rows of their kind are written.
    pub fn repair(&mut self, repair: IngestRepair) {
        self.repair = Some(repair);
    }

    /// The states of the stored messages.
    pub(super) async fn message_states(&mut self) -> Result<Vec<MessageState>> {
        let states = self.storage.backend.message_states(&self.target.key).await;
        let Some(repair) = &mut self.repair else { return states };
        match states {
            Ok(mut states) => {
                let missing = MessageState {
                    digest: NO_DIGEST,
                    turn: None,
                    ts: Timestamp::from_micros(0),
                    ts_source: TimeSource::Stated,
                };
                fill(&mut states, &repair.gaps.messages, missing);
                Ok(states)
            }
            Err(error) if error.kind() == ErrorKind::Damaged => {
                repair.messages.clear();
                repair.unknown[0] = true;
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// The digests of the stored events from `start` on.
    pub(super) fn repaired_digests(
        &mut self,
        digests: Result<Vec<Digest>>,
        start: u32,
    ) -> Result<Vec<Digest>> {
        let Some(repair) = self.repair.as_mut().filter(|_| start == 0) else { return digests };
        match digests {
            Ok(mut digests) => {
                fill(&mut digests, &repair.gaps.events, NO_DIGEST);
                Ok(digests)
            }
            Err(error) if error.kind() == ErrorKind::Damaged => {
                repair.events = true;
                repair.unknown[1] = true;
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn repair_messages(&mut self) {
        if let Some(repair) = &self.repair {
            self.messages.written_again.clone_from(&repair.messages);
            if !repair.unknown[0] {
                self.messages.pending.expect_unknown_rows();
            }
        }
    }

    pub(super) fn repair_events(&mut self) {
        if let Some(repair) = &self.repair {
            if repair.events {
                self.events.rewrite();
            }
            if !repair.unknown[1] {
                self.events.pending.expect_unknown_rows();
            }
        }
    }
}

/// The digest that stands for no line.
const NO_DIGEST: Digest = Digest([0; 16]);

/// Inserts `missing` for each missing row, so that positions are sequences.
fn fill<T: Copy>(rows: &mut Vec<T>, gaps: &[(u32, u32)], missing: T) {
    for (first, last) in gaps {
        let at = *first as usize;
        if at <= rows.len() {
            let count = (last - first) as usize + 1;
            drop(rows.splice(at..at, std::iter::repeat_n(missing, count)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_sequences_after_gaps_are_filled() {
        let mut rows = vec![0, 1, 4, 5, 7];
        fill(&mut rows, &[(2, 3), (6, 6)], -1);
        assert_eq!(rows, [0, 1, -1, -1, 4, 5, -1, 7]);
    }
}
