//! Reads that only a verification needs, and repairs of derived data.

use async_trait::async_trait;

use crate::{
    Result,
    model::{MessageRef, SessionId, SessionKey, UserId},
};

/// Finds rows without an owner, and compares derived indexes with the rows.
#[async_trait]
pub trait Integrity: Send + Sync {
    /// The rows that belong to nothing, in any order: of a session, its stray vectors and chunks; without a session, the
    /// sessions of the user without a record.
    ///
    /// A backend without [`atomic_writes`](super::StoreInfo::atomic_writes) returns no sessions without a record: an
    /// interrupted first write leaves such rows, and the next write completes it.
    async fn stray_rows(&self, user: &UserId, session: Option<&SessionId>) -> Result<Vec<StrayRows>>;

    /// Removes what [`stray_rows`](Self::stray_rows) returns of a session. Returns the number of removed rows.
    async fn remove_stray_rows(&self, key: &SessionKey) -> Result<u64>;

    /// Compares the derived index with the rows that it should contain, and the indexes of the database with its tables. An index that is behind the rows is no
    /// difference, because searches read the rows that it lacks. A backend without a derived index reports nothing.
    async fn check_index(&self) -> Result<IndexCheck>;
}

/// Rows that belong to nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum StrayRows {
    /// A session that has messages, events, or vectors or chunks of them, but no session record.
    Session(SessionKey),
    /// Vectors of a message that does not exist, or recorded failures to embed it.
    Vectors {
        /// The sequence of the message.
        sequence: u32,
        /// How many there are.
        rows: u64,
    },
    /// Pieces that are not part of the payload of an event.
    Chunks {
        /// The sequence of the event.
        sequence: u32,
        /// How many there are.
        rows: u64,
    },
}

/// The result of comparing an index with the rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexCheck {
    /// Messages whose texts were compared.
    pub messages: u64,
    /// Vectors that were compared.
    pub vectors: u64,
    /// Rows that are newer than the index. Searches read them directly.
    pub newer: u64,
    /// Whether an index of the database differs from its table. Rows may then be missing from reads, and writes may fail
    /// until the indexes are rebuilt.
    pub tables_differ: bool,
    /// The first 1,000 differences.
    pub problems: Vec<IndexProblem>,
    /// The total number of differences.
    pub problem_count: u64,
}

/// A difference between an index and the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexProblem {
    /// The message; `None` for the index as a whole, and for entries of no message.
    pub message: Option<MessageRef>,
    /// What differs.
    pub reason: String,
}

impl IndexCheck {
    /// At most this many differences are listed.
    const LISTED: usize = 1_000;

    /// Adds a difference; it is only counted if the list is full.
    pub fn add(&mut self, problem: IndexProblem) {
        self.problem_count += 1;
        if self.problems.len() < Self::LISTED {
            self.problems.push(problem);
        }
    }
}
