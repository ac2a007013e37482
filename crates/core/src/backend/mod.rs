//! The narrow trait that a store implements.
//!
//! A backend keeps rows, reads rows, and produces *candidates* for a text query and for a vector query.
//! Everything else (parsing, validation, turn numbers, chunking, embedding, fusion, context) is written once, in
//! [`SessionStorage`](crate::SessionStorage). The trait is shaped by its two extremes: a local SQL file, and a
//! remote document store without joins or aggregates that answers in pages.

mod change;
mod counts;
pub mod meta;
mod query;

use std::{any::Any, collections::BTreeMap, fmt::Debug};

use async_trait::async_trait;

pub use change::{MessageVectors, OweAgain, RowChange, SessionChange, SkippedLine, StoredSession, Version};
pub use counts::{
    EventCount, EventCounter, EventGroup, EventTime, GenerationCounts, MessageCount, PROMPT, REPEATS,
    RESPONSE, RowSpan, ServiceUsage, SessionRows, StorePlace, Usage, VectorCounts, repeats_usage,
};
pub use query::{
    Candidates, OwingQuery, SequenceRange, SessionCursor, SessionName, SessionQuery, TextCandidate,
    TextQuery, VectorCandidate, VectorQuery,
};

use crate::{
    Result,
    model::{
        ContentType, ContentTypes, Digest, Event, Message, MessageState, Payload, Place, Session, SessionId,
        SessionKey, UserId, VectorRecord,
    },
    scope::Scope,
    search::{EventFilter, EventSearchOptions, SearchFilter},
};

/// What a backend can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The backend's name, as in a store URL.
    pub name: &'static str,
    /// Whether [`StorageBackend::write`] happens as a whole or not at all, whatever its size.
    pub atomic_writes: bool,
    /// Whether the data outlives the process.
    pub persistent: bool,
}

impl Capabilities {
    /// A backend called `name` with atomic, persistent writes.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self { name, atomic_writes: true, persistent: true }
    }

    /// Sets whether writes are atomic.
    #[must_use]
    pub fn with_atomic_writes(mut self, atomic_writes: bool) -> Self {
        self.atomic_writes = atomic_writes;
        self
    }

    /// Sets whether the data outlives the process.
    #[must_use]
    pub fn with_persistent(mut self, persistent: bool) -> Self {
        self.persistent = persistent;
        self
    }
}

/// Held while a sync runs: see [`StorageBackend::begin_sync`].
#[derive(Debug, Default)]
pub struct SyncTurn(#[expect(dead_code, reason = "it is held, not used")] Option<Box<dyn Any + Send + Sync>>);

impl SyncTurn {
    /// A turn that ends when `held` is dropped.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self(Some(Box::new(held)))
    }
}

/// Stores rows, reads rows, finds candidates.
///
/// Rules for every method: an unknown session is no error but an empty answer or `None`, unless said otherwise;
/// data of another user than the one named is never touched; a call is safe to repeat.
#[async_trait]
pub trait StorageBackend: Debug + Send + Sync {
    /// What the backend can do. Never changes.
    fn capabilities(&self) -> Capabilities;

    /// What this handle and its clones have used so far of a service that charges for requests; `None` where nothing is charged.
    fn service_usage(&self) -> Option<ServiceUsage> {
        None
    }

    /// Says that somebody waits for the answers of this handle: long work of others gives way to it while it lives. For
    /// a program that reads, and ends; nothing by default.
    fn come_first(&self) {}

    /// Waits while somebody searches who comes first, at most a moment: called between two pieces of long work, such as
    /// a sync. Nothing by default, as for a service that has processors of its own.
    async fn give_way(&self) {}

    /// Says that a sync runs, until the answer is dropped. `None` while another handle, of any process, says so; by
    /// default nobody knows of the others.
    fn begin_sync(&self) -> Option<SyncTurn> {
        Some(SyncTurn::default())
    }

    /// Why the store can only be read, in words for a person: its file, folder or file system takes no writes. `None` where it
    /// can be written. Of a store that can only be read every read works, and every write fails with `StorageIo`.
    fn read_only(&self) -> Option<String> {
        None
    }

    /// All entries of the schema meta table. [`meta::VERSION`] and [`meta::WRITER`] are among them from the beginning:
    /// the backend puts them when it makes a store.
    async fn meta(&self) -> Result<BTreeMap<String, String>>;

    /// Stores `value` under `key` unless there is a value; returns the value that is there now.
    async fn put_meta_if_absent(&self, key: &str, value: &str) -> Result<String>;

    /// Stores `value` under `key` if the value that is there is `expected`; whether it was.
    async fn replace_meta(&self, key: &str, expected: &str, value: &str) -> Result<bool>;

    /// A session with what is kept beside it.
    async fn get_session(&self, key: &SessionKey) -> Result<Option<StoredSession>>;

    /// Sessions in the order of [`SessionCursor`]. Fewer than `limit` is the end of the list.
    async fn list_sessions(&self, query: &SessionQuery) -> Result<Vec<Session>>;

    /// The ids of all sessions of `scope`, in any order.
    async fn session_names(&self, scope: &Scope) -> Result<Vec<SessionName>>;

    /// The sync states of a user's sessions, in order of session id, behind `after`. Sessions that have none are left
    /// out. An empty answer is the end.
    async fn sync_states(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<(SessionId, String)>>;

    /// Writes one session, its messages and its events.
    ///
    /// - Fails with `Conflict` (retryable) and changes nothing when the stored version is not `expected`.
    /// - A message that is put loses the vectors that it had; a removed one takes its vectors with it.
    /// - A message of `retimed` gets the time that stands there, also in searches by time; its line, its turn, its vectors
    ///   and their state stay. One that does not exist is left out. None of them is put or removed in the same call.
    /// - An event that is put replaces the one of its sequence, and may carry the id of another that is put or removed
    ///   in the same call. Callers have looked with `find_events` whether an id is taken; where another session took it
    ///   since, a backend that can tell fails with `Conflict` (retryable).
    /// - When the project of the session changes, its messages, vectors and events follow.
    /// - Where [`Capabilities::atomic_writes`] holds, all of it happens or nothing, also under `kill -9`; elsewhere
    ///   repeating the call completes it.
    async fn write(&self, change: SessionChange) -> Result<Version>;

    /// Writes several sessions, each as [`StorageBackend::write`] does, and answers in their order: the failure of one
    /// is none of the others. A backend for which a transaction costs more than what is in it may write many in one.
    async fn write_all(&self, changes: Vec<SessionChange>) -> Vec<Result<Version>> {
        let mut versions = Vec::with_capacity(changes.len());
        for change in changes {
            versions.push(self.write(change).await);
        }
        versions
    }

    /// Removes a session with its messages, vectors, events and their chunks; false when there was none. With the removal
    /// it is remembered: [`StorageBackend::deleted_sessions`] names it from then on.
    async fn delete_session(&self, key: &SessionKey) -> Result<bool>;

    /// The sessions of a user that were deleted and have not been written since, in order of session id. They take the
    /// new name of a user that is renamed.
    async fn deleted_sessions(&self, user: &UserId) -> Result<Vec<SessionId>>;

    /// Makes all sessions of `from` sessions of `to`, with everything that belongs to them; returns how many. The two
    /// are not the same.
    ///
    /// - `Conflict` when both have a session or an event of the same id; then nothing is changed.
    /// - All of it happens or nothing where [`Capabilities::atomic_writes`] holds; elsewhere repeating the call
    ///   completes it.
    async fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64>;

    /// Digest and turn of every message of a session, in order of sequence.
    async fn message_states(&self, key: &SessionKey) -> Result<Vec<MessageState>>;

    /// Messages in order of sequence.
    async fn read_messages(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Message>>;

    /// The messages at `places`, in any order; those that do not exist are left out.
    async fn messages_at(&self, places: &[Place]) -> Result<Vec<Message>>;

    /// Messages whose vectors of a generation are owed, in order of session and sequence. An empty answer is the end.
    ///
    /// Of the current generation those whose state is `Owed` or `Outdated`; of the next one all that have something to
    /// embed and were not written with it since their line last changed; of any other none.
    async fn messages_owing_vectors(&self, query: &OwingQuery) -> Result<Vec<Message>>;

    /// Stores the vectors of messages of one session, in the place of those of the same generation that they had.
    /// Messages whose vectors are of the current generation have the state `Stored` then. A message that is gone, or
    /// whose line is another by now, is left alone. Returns how many vectors were stored.
    ///
    /// `Validation`, and nothing is stored, when `generation` is neither the current nor the next one
    /// ([`meta::Generations`]), or when a record breaks a rule of its space ([`VectorRecord::validate`]).
    async fn write_vectors(
        &self,
        key: &SessionKey,
        generation: u32,
        vectors: Vec<MessageVectors>,
    ) -> Result<usize>;

    /// Derives anew what the backend keeps of the texts of these messages beside their lines: the rules of
    /// [`content::extract`](crate::content::extract) are others than when it was written. What is searched then is what the
    /// rules say now. Only for a backend that keeps such things and does not know by itself which rules they follow; by
    /// default nothing is done.
    async fn renew_texts(&self, key: &SessionKey, sequences: &[u32]) -> Result<()> {
        let _ = (key, sequences);
        Ok(())
    }

    /// Makes the vectors of a session's messages, of those that failed, or of those of some sequences owed again in the
    /// current generation. Those
    /// that are there stay until others are written. Returns how many messages it concerns: none whose vectors are
    /// owed already.
    async fn owe_vectors(&self, key: &SessionKey, which: OweAgain) -> Result<u64>;

    /// Makes the next generation the current one, unless a message of any user still owes vectors of it: whether it
    /// did. From then on every message with something to embed is `Stored`. All of it happens or nothing where
    /// [`Capabilities::atomic_writes`] holds; elsewhere repeating the call completes it.
    ///
    /// `Validation` when `generation` is not the next one.
    async fn complete_generation(&self, generation: u32) -> Result<bool>;

    /// Removes vectors and failures of generations that are neither the current nor the next one, at most about
    /// `limit` of them; returns how many. None is the end.
    async fn prune_vectors(&self, limit: usize) -> Result<usize>;

    /// How many messages of `scope` have vectors, owe them, or failed; by generation.
    async fn count_vectors(&self, scope: &Scope) -> Result<VectorCounts>;

    /// Vectors of the given texts, of one generation: for each, those of its chunks, in order, with their spans. A
    /// text without vectors is left out.
    async fn vectors_of(
        &self,
        generation: u32,
        texts: &[(Place, ContentType)],
    ) -> Result<Vec<(Place, VectorRecord)>>;

    /// Which texts of messages have vectors of a generation, by sequence in order: one page, as
    /// [`StorageBackend::read_messages`]. Messages without vectors are left out, and don't count towards `range.limit`.
    async fn vector_types(
        &self,
        generation: u32,
        key: &SessionKey,
        range: SequenceRange,
    ) -> Result<Vec<(u32, ContentTypes)>>;

    /// What is stored of a session: how many rows there are, how far they go, and when they are from.
    async fn session_rows(&self, key: &SessionKey) -> Result<SessionRows>;

    /// Digests of the events of a session, in order of sequence, from `range.start`.
    async fn event_digests(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Digest>>;

    /// Events in order of sequence.
    async fn read_events(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Event>>;

    /// What the events of a session say of times, in order of sequence: one page, as [`StorageBackend::read_events`]. A
    /// backend that can read these fields alone does so: a session may have a hundred thousand events.
    async fn event_times(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<EventTime>> {
        Ok(self.read_events(key, range).await?.into_iter().map(EventTime::from).collect())
    }

    /// Payloads of the events of these sequences, in any order; missing ones are left out.
    async fn event_payloads(&self, key: &SessionKey, sequences: &[u32]) -> Result<Vec<(u32, Payload)>>;

    /// Which of `event_ids` the user has already, and where.
    async fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, Place)>>;

    /// Events in the order of [`EventSearchOptions`]. Fewer than `limit` is the end of the list.
    async fn search_events(&self, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>>;

    /// The events of `scope` that `filter` admits, counted by what they have in common, in any order. A backend that
    /// has to look at each of them does so with [`EventCounter`].
    ///
    /// A call of a model counts once: the usage of events that repeat what a response says ([`REPEATS`]) counts only where
    /// their session has no [`RESPONSE`] with usage, whether `filter` admits that or not. The events themselves count.
    async fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>>;

    /// The messages of `scope` that `filter` admits, counted by day and role, in any order.
    async fn count_messages(&self, scope: &Scope, filter: &SearchFilter) -> Result<Vec<MessageCount>>;

    /// The best texts for a text query by BM25, best first; each text of a message stands for itself. Scores are those
    /// of [`bm25`](crate::text::bm25) with the statistics of all texts in the store, also of those that the query leaves
    /// out. A row that is committed is found, from any process.
    async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>>;

    /// The nearest chunks to a query vector by cosine similarity, nearest first; filtered before they are ranked. Several
    /// chunks of a message may be among them.
    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>>;

    /// Brings derived indexes up to the rows. Searches are right without it, only slower.
    async fn update_index(&self) -> Result<()>;

    /// Where the store keeps its data, the store itself first.
    async fn places(&self) -> Result<Vec<StorePlace>>;
}
