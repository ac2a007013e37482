//! Derives data again that a verification found to be wrong, from rows that are right.

use std::collections::{BTreeMap, BTreeSet};

use super::SessionCheck;
use crate::{
    Result, SessionStorage,
    backend::{MessagesToEmbed, SequenceRange, SessionChange, StorageBackendExt},
    model::{HostId, Message, ProjectSlug, RowKind, Session, SessionKey, VectorState},
};

/// Number of messages written at a time.
const WRITTEN: usize = 64;

/// Data of a session that can be derived again from its rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowRepair {
    /// Whether counts of the session are wrong.
    pub counts: bool,
    /// Whether some rows belong to nothing.
    pub stray: bool,
    /// Messages with another turn, and the right one.
    pub turns: BTreeMap<u32, Option<u32>>,
    /// Messages that lack vectors.
    pub vectors_to_make: BTreeSet<u32>,
    /// Messages with vectors that are wrong.
    pub vectors_to_remove: BTreeSet<u32>,
}

impl RowRepair {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl SessionStorage {
    /// Derives again what `check` found to be wrong in a session: counts, turns, and vectors, which become pending.
    /// Removes rows that belong to nothing. Does not change damaged and missing rows, nor counts if rows are missing.
    ///
    /// # Errors
    ///
    /// `Conflict` (retryable) if another process writes the session at the same time; errors of the backend.
    pub async fn repair_session(&self, key: &SessionKey, check: &SessionCheck) -> Result<()> {
        let repair = &check.repair;
        if repair.is_empty() {
            return Ok(());
        }
        if repair.stray {
            self.backend.remove_stray_rows(key).await?;
        }
        // A message that is written again has no vectors.
        let written: BTreeSet<u32> = repair.turns.keys().chain(&repair.vectors_to_remove).copied().collect();
        let written: Vec<u32> = written.difference(&check.damaged[0]).copied().collect();
        for sequences in written.chunks(WRITTEN) {
            self.write_again(key, sequences, repair).await?;
        }
        let to_make: Vec<u32> =
            repair.vectors_to_make.iter().filter(|sequence| !written.contains(sequence)).copied().collect();
        if !to_make.is_empty() {
            self.backend.mark_pending(key, MessagesToEmbed::At(to_make)).await?;
        }
        if (repair.counts || !repair.turns.is_empty()) && check.gaps.is_empty() {
            self.count_again(key).await?;
        }
        Ok(())
    }

    /// Rewrites messages with the right turn and without vectors.
    async fn write_again(&self, key: &SessionKey, sequences: &[u32], repair: &RowRepair) -> Result<()> {
        let Some(stored) = self.backend.get_session(key).await? else { return Ok(()) };
        let mut change = SessionChange::new(stored.session, Some(stored.version));
        for sequence in sequences {
            let range = SequenceRange { start: *sequence, limit: 1 };
            let found: Vec<Message> = self.readable_page(key, range, &mut Vec::new()).await?;
            let Some(mut message) = found.into_iter().find(|found| found.sequence == *sequence) else {
                continue;
            };
            if let Some(turn) = repair.turns.get(sequence) {
                message.turn = *turn;
            }
            if message.vectors != VectorState::Nothing {
                message.vectors = VectorState::Pending;
            }
            change.messages.put.push(message);
        }
        self.backend.write_one(change).await.map(drop)
    }

    /// Counts the rows of a session and its turns.
    async fn count_again(&self, key: &SessionKey) -> Result<()> {
        let Some(stored) = self.backend.get_session(key).await? else { return Ok(()) };
        let rows = self.backend.session_rows(key).await?;
        let states = self.backend.message_states(key).await?;
        let turns: BTreeSet<u32> = states.into_iter().filter_map(|state| state.turn).collect();
        let mut session = stored.session.clone();
        session.message_count = u32::try_from(rows.messages.count).unwrap_or(u32::MAX);
        session.event_count = u32::try_from(rows.events.count).unwrap_or(u32::MAX);
        session.turn_count = turns.len() as u32;
        if session != stored.session {
            self.backend.write_one(SessionChange::new(session, Some(stored.version))).await?;
        }
        Ok(())
    }

    /// Creates the record of a session that has stored rows but no record. A sync of its files completes it.
    ///
    /// # Errors
    ///
    /// `Conflict` if it exists; errors of the backend.
    pub async fn recreate_session(
        &self,
        key: &SessionKey,
        host: &HostId,
        project: &ProjectSlug,
    ) -> Result<()> {
        let session = Session::new(key.clone(), host.clone(), project.clone(), self.now());
        self.backend.write_one(SessionChange::new(session, None)).await?;
        self.count_again(key).await
    }
}

impl SessionCheck {
    /// The damaged rows of a kind.
    #[must_use]
    pub fn damaged_of(&self, row: RowKind) -> &BTreeSet<u32> {
        let [messages, events] = &self.damaged;
        if row == RowKind::Message { messages } else { events }
    }
}
