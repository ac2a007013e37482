//! The traits that a SQL database implements. Every call blocks.

use std::{fmt, time::Duration};

use amplifier_session_core::{
    Result, Scope,
    backend::{CountedEvents, StoreInfo},
    model::{ContentType, EmbeddingSpace, Message, MessageRef, SessionKey, Timestamp, UserId, VectorRecord},
    search::EventFilter,
};

use crate::{
    Cell, Reader, Statement, Table,
    table::{self, TRANSCRIPTS},
};

/// A SQL database.
pub trait Database: fmt::Debug + Send + Sync + 'static {
    /// The connections to the database.
    type Connections: Connections;
    /// A write transaction.
    type Writer<'a>: Writer;

    /// How often a reader that waits for changes looks for those of other processes.
    const LOOKS_FOR_CHANGES: Duration = Duration::from_millis(100);

    /// The connections to the database.
    fn connections(&self) -> &Self::Connections;

    /// Describes the store.
    fn info(&self) -> StoreInfo;

    /// Fails with the reason if the store is read-only.
    fn check_writable(&self) -> Result<()>;

    /// Runs `write` in one transaction, which is committed if `write` succeeds. Rows that it has read do not change
    /// before the commit. May roll back and run `write` again because of a conflicting transaction.
    fn transaction<T>(
        &self,
        operation: &'static str,
        write: impl FnMut(&mut Self::Writer<'_>) -> Result<T>,
    ) -> Result<T>;

    /// Called after the index was updated, for work such as emptying the write-ahead log.
    fn tidy(&self) -> Result<()> {
        Ok(())
    }

    /// Called in each transaction that removes rows, so that their words are erased later even if the process is
    /// killed.
    fn removing(_: &Self::Writer<'_>, _revision: i64, _: Removed) -> Result<()> {
        Ok(())
    }
}

/// The rows that a transaction removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// Rows of a deleted session, whose words may be in the index too.
    Session,
    /// Superseded lines, which are in no index.
    SupersededLines,
}

/// The connections of this process to a database.
pub trait Connections: fmt::Debug + Send + Sync + 'static {
    /// A read connection.
    type Reader<'a>: Lookups;

    /// Runs `read` on a connection. May run it again if the connection was lost.
    fn read<T>(&self, read: impl FnMut(&Self::Reader<'_>) -> Result<T>) -> Result<T>;

    /// Runs `read` in one read transaction. Its first statement takes the snapshot. May run it again, with another
    /// snapshot, if the connection was lost.
    fn read_snapshot<T>(&self, read: impl FnMut(&Self::Reader<'_>) -> Result<T>) -> Result<T>;

    /// Called on the same thread after the index was folded in parallel with writes, for similar work.
    fn folded(&self) {}
}

/// Reads of many rows that each database performs best in its own way.
pub trait Lookups: Reader {
    /// As [`Messages::messages_at`](amplifier_session_core::backend::Messages::messages_at).
    fn messages_at(&self, message_refs: &[MessageRef]) -> Result<Vec<Message>>;

    /// As [`Events::find_events`](amplifier_session_core::backend::Events::find_events).
    fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, MessageRef)>>;

    /// As [`Events::count_events`](amplifier_session_core::backend::Events::count_events).
    fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<CountedEvents>;

    /// As [`Vectors::vectors_of`](amplifier_session_core::backend::Vectors::vectors_of), for texts of messages.
    fn vectors_of(
        &self,
        generation: u32,
        texts: &[(MessageRef, ContentType)],
    ) -> Result<Vec<(MessageRef, VectorRecord)>>;
}

/// A write transaction. It sees its own changes, except inserted rows, which it may buffer.
pub trait Writer: Reader {
    /// Runs a statement; returns the number of changed rows.
    fn execute(&self, statement: &Statement) -> Result<usize>;

    /// Takes the next revision. Every change of rows needs one.
    fn next_revision(&mut self) -> Result<i64>;

    /// The key of a new session; `None` if the database assigns it.
    fn new_session_key(&mut self) -> Option<i64>;

    /// The key of a message of the session with this key; `None` if the database assigns it.
    fn message_key(session: Option<i64>, sequence: u32) -> Option<i64>;

    /// The key of the vector of a turn; `None` if the database assigns it.
    fn turn_key(&mut self) -> Option<i64> {
        None
    }

    /// Adds a row.
    fn insert(&mut self, table: &Table, row: &[Cell<'_>]) -> Result<()>;

    /// Adds a message of the session with this key.
    fn insert_message(&mut self, session: Option<i64>, revision: i64, message: &Message) -> Result<()> {
        let key = Self::message_key(session, message.sequence);
        self.insert(&TRANSCRIPTS, &table::message(key, revision, message))
    }

    /// Adds vectors of texts.
    fn insert_vectors(&mut self, target: &VectorTarget<'_>, vectors: &[NewVector<'_>]) -> Result<()>;

    /// Prepares the table of the current generation for vectors of `space`.
    fn prepare_for(&self, _: &EmbeddingSpace) -> Result<()> {
        Ok(())
    }

    /// Moves the vectors of a generation to the table of the current one.
    fn make_current(&self, _generation: u32, _: &EmbeddingSpace) -> Result<()> {
        Ok(())
    }
}

/// The target of new vectors.
#[derive(Debug)]
pub struct VectorTarget<'a> {
    /// The session.
    pub key: &'a SessionKey,
    /// The generation.
    pub generation: u32,
    /// Whether it is the current one.
    pub is_current: bool,
    /// Its space.
    pub space: &'a EmbeddingSpace,
    /// The revision of the rows.
    pub revision: i64,
}

/// A new vector.
#[derive(Debug)]
pub struct NewVector<'a> {
    /// Its message.
    pub sequence: u32,
    /// The time at which it was made.
    pub created_at: Timestamp,
    /// The vector.
    pub record: &'a VectorRecord,
}
