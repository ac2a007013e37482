//! Compares derived data in a store with the lines, and counts with rows.

mod events;
mod gaps;
mod messages;
mod repair;
mod sequences;
mod turns;
mod vectors;

use std::collections::{BTreeMap, BTreeSet};

use self::sequences::Sequences;
use super::store::{StoreContext, Verification};
use crate::{
    Error, ErrorKind, Result,
    backend::{IndexProblem, StoredSession, StrayRows, meta::Generations},
    model::{DamagedRow, Difference, DifferenceKind, RowKind, SessionKey, UserId},
};

pub use gaps::Gaps;
pub use repair::RowRepair;

/// At most this many differences of a session are listed.
const LISTED: usize = 1_000;

/// The result of verifying a stored session.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SessionCheck {
    /// Number of messages that were read.
    pub messages: u64,
    /// Number of events that were read.
    pub events: u64,
    /// Number of vectors of the current generation that were read.
    pub vectors: u64,
    /// Number of messages whose vectors are pending.
    pub pending_vectors: u64,
    /// Number of vectors of turns of the current generation that were read.
    pub turn_vectors: u64,
    /// Number of events whose lines are not stored.
    pub events_without_line: u64,
    /// The first 1,000 differences.
    pub differences: Vec<Difference>,
    /// The total number of differences.
    pub difference_count: u64,
    /// Missing sequences.
    pub gaps: Gaps,
    /// Messages and events whose rows can't be read, or whose line does not match its digest.
    pub damaged: [BTreeSet<u32>; 2],
    /// Data that can be derived again from the rows.
    pub repair: RowRepair,
}

impl SessionCheck {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.difference_count == 0
    }

    fn add(&mut self, difference: Difference) {
        self.difference_count += 1;
        if self.differences.len() < LISTED {
            self.differences.push(difference);
        }
    }
}

/// A session that is being checked.
struct Checking<'a> {
    store: &'a StoreContext,
    stored: &'a StoredSession,
    key: SessionKey,
    held: Generations,
    check: SessionCheck,
}

impl Verification<'_> {
    /// Compares a stored session with itself. Reads all of its rows, a few at a time, and changes nothing.
    ///
    /// Compares every line with its digest, sequences, counts, turns (if the session was synced from files), the
    /// vectors of each message and turn, and the pieces of large events. If another process writes the session
    /// meanwhile, the result may contain differences that do not exist: compare the version before and after.
    ///
    /// # Errors
    ///
    /// Errors of the backend, except `Damaged`, which is a difference.
    pub async fn check_session(self, stored: &StoredSession) -> Result<SessionCheck> {
        let (key, held) = (stored.session.key(), self.store.generations().await?);
        let check = SessionCheck::default();
        let mut checking = Checking { store: self.store, stored, key, held, check };
        checking.messages().await?;
        checking.events().await?;
        checking.stray_rows().await?;
        Ok(checking.check)
    }

    /// The sessions of `user` that have stored rows but no stored record.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn check_records(self, user: &UserId) -> Result<Vec<SessionKey>> {
        let stray = self.store.backend.stray_rows(user, None).await?.into_iter();
        Ok(stray.filter_map(|of| if let StrayRows::Session(key) = of { Some(key) } else { None }).collect())
    }
}

impl From<IndexProblem> for Difference {
    fn from(IndexProblem { message, reason }: IndexProblem) -> Self {
        match message {
            Some(message) => Self::of(&message.session, DifferenceKind::Index, reason)
                .at_row(RowKind::Message, message.sequence),
            None => Self::new(DifferenceKind::Index, reason),
        }
    }
}

impl Checking<'_> {
    fn find(&mut self, kind: DifferenceKind, reason: impl Into<String>) {
        let difference = Difference::of(&self.key, kind, reason);
        self.check.add(difference);
    }

    fn find_at(&mut self, kind: DifferenceKind, row: RowKind, sequence: u32, reason: impl Into<String>) {
        let difference = Difference::of(&self.key, kind, reason).at_row(row, sequence);
        self.check.add(difference);
    }

    /// Adds rows that can't be read.
    fn find_damaged(&mut self, rows: Vec<DamagedRow>) -> Vec<u32> {
        let mut sequences = Vec::new();
        for DamagedRow { kind, sequence, reason, .. } in rows {
            let Some(sequence) = sequence else {
                self.find(DifferenceKind::Damaged, reason);
                continue;
            };
            self.find_at(DifferenceKind::Damaged, kind, sequence, reason);
            let [messages, events] = &mut self.check.damaged;
            let rows = if kind == RowKind::Message { messages } else { events };
            rows.insert(sequence);
            sequences.push(sequence);
        }
        sequences
    }

    /// Records damage that can't be attributed to a row as a difference, and returns `None`.
    fn unless_damaged<T>(&mut self, row: RowKind, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if error.kind() == ErrorKind::Damaged => {
                let difference = Difference::of(&self.key, DifferenceKind::Damaged, with_rows(row, &error));
                self.check.add(difference);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Adds the sequences without rows, and the count of the session if it is wrong.
    fn find_gaps(&mut self, row: RowKind, sequences: &Sequences, stated: u32) {
        for (first, last) in &sequences.gaps {
            let reason = if first == last { "it is missing" } else { "they are missing" };
            let difference = Difference::of(&self.key, DifferenceKind::Gap, reason);
            self.check.add(difference.at_rows(row, *first, *last));
        }
        // A row that is missing at the end looks the same as a wrong count.
        if sequences.next != stated {
            let (rows, count) = (row.as_str(), sequences.next);
            self.find(
                DifferenceKind::Count,
                format!("the session states {stated} {rows}s; its {rows}s end after {count}"),
            );
            self.check.repair.counts = true;
        }
    }

    async fn stray_rows(&mut self) -> Result<()> {
        let (mut vectors, mut chunks) = (BTreeMap::<u32, u64>::new(), BTreeMap::<u32, u64>::new());
        for stray in self.store.backend.stray_rows(&self.key.user_id, Some(&self.key.session_id)).await? {
            match stray {
                StrayRows::Vectors { sequence, rows } => *vectors.entry(sequence).or_default() += rows,
                StrayRows::Chunks { sequence, rows } => *chunks.entry(sequence).or_default() += rows,
                StrayRows::Session(_) => {}
            }
        }
        self.check.repair.stray |= !vectors.is_empty() || !chunks.is_empty();
        for (sequence, rows) in vectors {
            let what = if rows == 1 { "is a vector" } else { &format!("are {rows} vectors") };
            let reason = format!("there {what} for it, but no message");
            self.find_at(DifferenceKind::Vectors, RowKind::Message, sequence, reason);
        }
        for (sequence, rows) in chunks {
            let what = if rows == 1 { "is a piece" } else { &format!("are {rows} pieces") };
            let reason = format!("there {what} of a payload that it does not have");
            self.find_at(DifferenceKind::Chunks, RowKind::Event, sequence, reason);
        }
        Ok(())
    }
}

fn with_rows(row: RowKind, error: &Error) -> String {
    format!("its {}s can't be read: {}", row.as_str(), error.message())
}
