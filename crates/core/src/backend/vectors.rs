//! Vectors of messages and of the turns that they begin, in generations.

use async_trait::async_trait;

use super::{MessageVectors, MessagesToEmbed, PendingQuery, SequenceRange, VectorCounts};
use crate::{
    Result,
    model::{Message, MessageRef, SessionKey, VectorRecord, VectorText},
    scope::Scope,
    search::MissingVectors,
};

/// Stores vectors, and determines which are pending.
///
/// Vectors belong to a generation ([`Generations`](super::meta::Generations)): the current one is searched, the next
/// one is made by a rebuild.
///
/// The vector of a turn belongs to the user's message that begins it, and is stored, removed and pending with that
/// message. It is also pending after a change of other messages of the turn:
/// [`Sessions::write`](super::Sessions::write) makes it pending if it stores, replaces or removes a message with the
/// number of the turn. It removes the vector if it replaces or removes the user's message, or the assistant's message
/// that the vector was made from.
#[async_trait]
pub trait Vectors: Send + Sync {
    /// Messages whose vectors of a generation are pending, in order of session and sequence. An empty answer means the
    /// end.
    ///
    /// Of the current generation, those in state `Pending` or `Outdated` and, with `turns`, `TurnPending`. Of the next
    /// one, all with something to embed whose vectors were not written since their line, or that of another message of
    /// the turn, last changed. Of any other generation, nothing.
    async fn messages_pending_vectors(&self, query: &PendingQuery) -> Result<Vec<Message>>;

    /// Stores the vectors of messages of one session, replacing those of the same generation. With vectors of the
    /// current generation, a message gets the state `Stored`, or `TurnPending` if it
    /// [leaves a turn pending](MessageVectors::leaves_turn). Ignores messages that are gone or whose line has changed.
    /// Returns how many vectors were stored.
    ///
    /// Of the next generation, the vector of a turn that the message leaves pending is left out: it is pending after
    /// the generation has become the current one.
    ///
    /// Fails with `Validation` and stores nothing if `generation` is neither the current nor the next one, or if a
    /// record breaks a rule of its space ([`VectorRecord::validate`]).
    async fn write_vectors(
        &self,
        key: &SessionKey,
        generation: u32,
        vectors: Vec<MessageVectors>,
    ) -> Result<usize>;

    /// Makes vectors of the current generation pending again: those of messages whose texts have vectors, or only those
    /// of turns. The stored ones stay until new ones replace them. Returns how many messages were not pending before.
    async fn mark_pending(&self, key: &SessionKey, which: MessagesToEmbed) -> Result<u64>;

    /// Makes the next generation the current one, unless a message of any user still has pending vectors in it. Returns
    /// whether it did. Afterwards, every message with something to embed is in state `Stored`, or `TurnPending` if it
    /// [begins a turn](super::TurnLines) and has no vector of it. With
    /// [`atomic_writes`](super::StoreInfo::atomic_writes), either everything changes or nothing; otherwise, repeating
    /// the call completes it.
    ///
    /// If `generation` is already the current one, changes nothing and returns true. Fails with `Validation` if it is
    /// neither the current nor the next one.
    async fn complete_generation(&self, generation: u32) -> Result<bool>;

    /// Removes about `limit` vectors and failures of generations that are neither the current nor the next one. Returns
    /// how many it removed: 0 when nothing is left to remove.
    async fn prune_vectors(&self, limit: usize) -> Result<usize>;

    /// Counts the messages of `scope` with stored, pending or failed vectors, by generation.
    async fn count_vectors(&self, scope: &Scope) -> Result<VectorCounts>;

    /// The messages of `scope` that a search by meaning can't find, in state `Pending` or `Outdated`. Each search asks, so
    /// it must not read all messages.
    async fn missing_vectors(&self, scope: &Scope) -> Result<MissingVectors>;

    /// The vectors of these texts in one generation: for each text, the vectors of its chunks in order. Leaves out
    /// texts without vectors.
    async fn vectors_of(
        &self,
        generation: u32,
        texts: &[(MessageRef, VectorText)],
    ) -> Result<Vec<(MessageRef, VectorRecord)>>;

    /// A page of the texts of a session's messages that have vectors of a generation, in order of sequence; the texts
    /// of each message in order, each once. Messages without vectors are left out and do not count towards
    /// `range.limit`.
    async fn vector_texts(
        &self,
        generation: u32,
        key: &SessionKey,
        range: SequenceRange,
    ) -> Result<Vec<(u32, Vec<VectorText>)>>;
}
