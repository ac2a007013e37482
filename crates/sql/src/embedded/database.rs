//! What a database has to offer. Every call blocks.

use std::fmt;

use amplifier_session_core::{
    Result, Scope,
    backend::{EventCount, StoreInfo, VectorCandidate, VectorQuery},
    model::{ContentType, EmbeddingSpace, Message, MessageRef, SessionKey, Timestamp, UserId, VectorRecord},
    search::EventFilter,
};
use amplifier_session_index::IndexUpdater;

use super::rows::RowSnapshots;
use crate::{Cell, Reader, Statement, Table};

/// An embedded database.
pub trait Database: fmt::Debug + Send + Sync + 'static {
    /// The connections to the database.
    type Connections: Connections;
    /// A write transaction.
    type Writer<'a>: Writer;

    /// The connections to the database.
    fn connections(&self) -> &Self::Connections;

    /// The search index.
    fn index(&self) -> &IndexUpdater<RowSnapshots<Self::Connections>>;

    /// What the backend says about itself.
    fn info(&self) -> StoreInfo;

    /// Fails, with the reason, if the store can only be read.
    fn check_writable(&self) -> Result<()>;

    /// Runs `write` in one transaction, which is committed if it succeeds. No other transaction writes meanwhile.
    fn transaction<T>(
        &self,
        operation: &'static str,
        write: impl FnOnce(&mut Self::Writer<'_>) -> Result<T>,
    ) -> Result<T>;

    /// Removes from the files of the database what deleted rows have left there. May take as long as writing all of it.
    fn erase(&self) -> Result<()>;

    /// Does what is left to do after the index was brought up to date, such as emptying the write-ahead log.
    fn tidy(&self) -> Result<()>;

    /// The nearest vectors by an index of the database's own, if it has one that can answer.
    fn nearest(&self, _: &VectorQuery) -> Result<Nearest> {
        Ok(Nearest::NotAsked)
    }
}

/// What an index of the database's own says to a vector query.
#[derive(Debug)]
pub enum Nearest {
    /// These are the nearest.
    Found(Vec<VectorCandidate>),
    /// There is no such index, or the query is not for it.
    NotAsked,
    /// There should be one, but it cannot be used; with the reason.
    Unavailable(String),
}

/// The connections of a process to a database.
pub trait Connections: fmt::Debug + Send + Sync + 'static {
    /// A connection that reads.
    type Reader<'a>: Lookups;

    /// Runs `read` on a connection.
    fn read<T>(&self, read: impl FnOnce(&Self::Reader<'_>) -> Result<T>) -> Result<T>;

    /// Runs `read` in one read transaction. Its first statement takes the snapshot.
    fn read_snapshot<T>(&self, read: impl FnOnce(&Self::Reader<'_>) -> Result<T>) -> Result<T>;

    /// Called after the index was folded beside writes, on the same thread: a good time for work of this kind.
    fn folded(&self) {}
}

/// Reads of many rows that each database does best in its own way.
pub trait Lookups: Reader {
    /// As [`Messages::messages_at`](amplifier_session_core::backend::Messages::messages_at).
    fn messages_at(&self, message_refs: &[MessageRef]) -> Result<Vec<Message>>;

    /// As [`Events::find_events`](amplifier_session_core::backend::Events::find_events).
    fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, MessageRef)>>;

    /// As [`Events::count_events`](amplifier_session_core::backend::Events::count_events).
    fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>>;

    /// As [`Vectors::vectors_of`](amplifier_session_core::backend::Vectors::vectors_of).
    fn vectors_of(
        &self,
        generation: u32,
        texts: &[(MessageRef, ContentType)],
    ) -> Result<Vec<(MessageRef, VectorRecord)>>;
}

/// A write transaction. It reads what it has written, apart from inserted rows, which it may hold back.
pub trait Writer: Reader {
    /// Runs a statement; returns how many rows it changed.
    fn execute(&self, statement: &Statement) -> Result<usize>;

    /// Takes the next revision. Every change of rows has one.
    fn next_revision(&mut self) -> Result<i64>;

    /// The key of a new session, unless the database chooses it.
    fn new_session_key(&mut self) -> Option<i64>;

    /// The key of a message of the session with this key, unless the database chooses it.
    fn message_key(session: Option<i64>, sequence: u32) -> Option<i64>;

    /// Adds a row.
    fn insert(&mut self, table: &Table, row: &[Cell<'_>]) -> Result<()>;

    /// Adds vectors.
    fn insert_vectors(&mut self, target: &VectorTarget<'_>, vectors: &[NewVector<'_>]) -> Result<()>;

    /// Makes the table of the current generation ready for vectors of `space`.
    fn prepare_for(&self, _: &EmbeddingSpace) -> Result<()> {
        Ok(())
    }

    /// Moves the vectors of a generation to where those of the current one are.
    fn make_current(&self, _generation: u32, _: &EmbeddingSpace) -> Result<()> {
        Ok(())
    }
}

/// Where vectors are written.
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

/// A vector that is written.
#[derive(Debug)]
pub struct NewVector<'a> {
    /// Its message.
    pub sequence: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// The vector.
    pub record: &'a VectorRecord,
}
