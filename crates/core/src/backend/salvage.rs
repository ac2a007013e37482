//! What is left of a damaged store.

use std::collections::BTreeMap;

use crate::{
    Result,
    model::{
        Message, MetadataFile, ProjectSlug, Session, SessionKey, StoredEvent, SupersededPiece, SupersededRef,
        Timestamp, TurnSummary, VectorRecord,
    },
};

use super::StoredSession;

/// Reads what is left of a damaged store, without changing it. Every call blocks the thread.
///
/// [`StoreSalvage::take_from`](crate::storage::StoreSalvage::take_from) writes it to another store.
pub trait SalvageSource: Send {
    /// The entries of the schema meta table that can be read.
    fn meta(&self) -> BTreeMap<String, String>;

    /// The deleted sessions that the store remembers.
    fn deleted_sessions(&self) -> Vec<SessionKey>;

    /// The sessions of which at least the id is left, in order.
    fn sessions(&self) -> Vec<SessionKey>;

    /// What is left of a session.
    ///
    /// # Errors
    ///
    /// `StorageIo` if reading fails for a reason other than damage.
    fn session(&mut self, key: &SessionKey) -> Result<RemainingSession>;

    /// The message of `session` with this sequence.
    ///
    /// # Errors
    ///
    /// `Damaged` if it can't be read or differs from what was written.
    fn message(&mut self, session: &Session, sequence: u32) -> Result<RemainingMessage>;

    /// The event of `session` with this sequence. The caller checks the digest of its line.
    ///
    /// # Errors
    ///
    /// `Damaged` if it can't be read.
    fn event(&mut self, session: &Session, sequence: u32) -> Result<StoredEvent>;

    /// A piece of superseded lines. The caller checks its content.
    ///
    /// # Errors
    ///
    /// `Damaged` if it can't be read.
    fn superseded(&mut self, piece: &SupersededRef) -> Result<SupersededPiece>;

    /// The parts of the store that can't be read, as phrases such as `page 812 (messages)`.
    fn unreadable(&self) -> Vec<String>;

    /// The summaries of the turns of a session.
    ///
    /// # Errors
    ///
    /// Errors other than damage.
    fn turns(&mut self, session: &SessionKey) -> Result<RemainingTurns>;

    /// Lost data other than sessions, as phrases such as `settings of the store`.
    fn lost(&self) -> Vec<String>;
}

/// What is left of a session.
#[derive(Debug)]
pub struct RemainingSession {
    /// Its record, with the metadata files that can be read. `Damaged` if it is lost.
    pub stored: Result<StoredSession>,
    /// If the record is lost: the metadata files that can be read.
    pub metadata_files: Vec<MetadataFile>,
    /// If the record is lost: its project, if an index names it.
    pub project: Option<ProjectSlug>,
    /// If the record is lost: when it was created, if an index has it.
    pub created: Option<Timestamp>,
    /// Why metadata files are missing, if so.
    pub lost_metadata: Option<String>,
    /// The sequences of the messages that are left, in order. Some may not be readable.
    pub messages: Vec<u32>,
    /// The sequences of the events that are left, in order. Some may not be readable.
    pub events: Vec<u32>,
    /// The ids of the pieces of superseded lines that are left, in order. Some may not be readable.
    pub superseded: Vec<String>,
}

/// The readable and the lost summaries of a session's turns.
#[derive(Debug, Default)]
pub struct RemainingTurns {
    /// The summaries that can be read, in order.
    pub summaries: Vec<TurnSummary>,
    /// The user messages whose summaries can't be read, in order.
    pub lost_summaries: Vec<u32>,
}

/// A message with its vectors of the current generation, including that of the turn that it begins.
#[derive(Debug)]
pub struct RemainingMessage {
    /// The message.
    pub message: Message,
    /// Its vectors that can be read; some may be missing.
    pub vectors: Vec<VectorRecord>,
    /// When they were made.
    pub vectors_created: Option<Timestamp>,
}
