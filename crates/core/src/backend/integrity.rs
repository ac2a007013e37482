//! Reads that only a verification needs, and repairs of derived data.

use async_trait::async_trait;
use serde::Serialize;

use crate::{
    Result,
    model::{MessageRef, SessionKey, UserId},
};

/// Finds rows without an owner, and compares derived indexes with the rows.
#[async_trait]
pub trait Integrity: Send + Sync {
    /// The rows of a session that belong to no message or event, in any order: vectors and failures without a message,
    /// and chunks that are not part of any event's payload.
    async fn stray_rows(&self, key: &SessionKey) -> Result<Vec<StrayRows>>;

    /// Removes what [`stray_rows`](Self::stray_rows) returns. Returns the number of removed rows.
    async fn remove_stray_rows(&self, key: &SessionKey) -> Result<u64>;

    /// The sessions of a user that have messages, events, or vectors or chunks of them, but no session record, in any
    /// order. A backend without
    /// [`atomic_writes`](super::StoreInfo::atomic_writes) returns no sessions: an interrupted first write leaves such
    /// rows, and the next write completes it.
    async fn sessions_without_record(&self, user: &UserId) -> Result<Vec<SessionKey>>;

    /// Why texts of messages of a session have no vectors of a generation, in order of sequence.
    async fn vector_failures(&self, generation: u32, key: &SessionKey) -> Result<Vec<(u32, String)>>;

    /// Compares the derived index with the rows that it should contain, and the indexes of the database with its tables. An index that is behind the rows is no
    /// difference, because searches read the rows that it lacks. A backend without a derived index reports nothing.
    async fn check_index(&self) -> Result<IndexCheck>;

    /// Rebuilds the derived index from the rows, and the indexes of the database itself if they differ from its tables.
    async fn rebuild_index(&self) -> Result<()>;
}

/// The kind of rows that belong to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StrayKind {
    /// Vectors, or reasons why there are none.
    Vectors,
    /// Pieces of payloads.
    Chunks,
}

/// Rows of one message or event that belong to nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct StrayRows {
    /// Their kind.
    pub kind: StrayKind,
    /// The sequence of the message or event that they name.
    pub sequence: u32,
    /// How many there are.
    pub rows: u64,
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
