//! Rewrites rows that are stored wrongly, although their digests say that they are stored.

use std::collections::BTreeSet;

use super::SessionIngest;
use crate::{
    ErrorKind, Result,
    model::{Digest, MessageState, TimeSource, Timestamp},
    storage::verify::Gaps,
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
        let gaps = self.repair.as_ref().map(|repair| repair.gaps.clone()).unwrap_or_default();
        let states = gaps.message_states(&*self.store.backend, &self.target.key).await;
        match (states, &mut self.repair) {
            (Ok(states), _) => {
                let missing = MessageState {
                    digest: NO_DIGEST,
                    turn: None,
                    ts: Timestamp::from_micros(0),
                    ts_source: TimeSource::Stated,
                };
                Ok(states.into_iter().map(|state| state.unwrap_or(missing)).collect())
            }
            (Err(error), Some(repair)) if error.kind() == ErrorKind::Damaged => {
                repair.messages.clear();
                repair.unknown[0] = true;
                Ok(Vec::new())
            }
            (Err(error), _) => Err(error),
        }
    }

    /// The digests of the stored events from `start` on.
    pub(super) async fn event_digests(&mut self, start: u32) -> Result<Vec<Digest>> {
        let repair = self.repair.as_mut().filter(|_| start == 0);
        let gaps = repair.as_ref().map(|repair| repair.gaps.clone()).unwrap_or_default();
        let digests = gaps.event_digests(&*self.store.backend, &self.target.key, start).await;
        match (digests, repair) {
            (Ok(digests), _) => Ok(digests.into_iter().map(|digest| digest.unwrap_or(NO_DIGEST)).collect()),
            (Err(error), Some(repair)) if error.kind() == ErrorKind::Damaged => {
                repair.events = true;
                repair.unknown[1] = true;
                Ok(Vec::new())
            }
            (Err(error), _) => Err(error),
        }
    }

    pub(super) fn repair_messages(&mut self) {
        if let Some(repair) = &self.repair {
            self.messages.written_again.clone_from(&repair.messages);
            if !repair.unknown[0] {
                self.messages.position.expect_unknown_rows();
            }
        }
    }

    pub(super) fn repair_events(&mut self) {
        if let Some(repair) = &self.repair {
            if repair.events {
                self.events.rewrite();
            }
            if !repair.unknown[1] {
                self.events.position.expect_unknown_rows();
            }
        }
    }
}

/// The digest that stands for no line.
const NO_DIGEST: Digest = Digest([0; 16]);
