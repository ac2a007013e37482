//! The narrow trait that a store implements.
//!
//! A backend keeps rows, reads rows, and produces *candidates* for a text query and for a vector query.
//! Everything else (parsing, validation, turn numbers, chunking, embedding, fusion, context) is written once, in
//! [`SessionStorage`](crate::SessionStorage). The trait is shaped by its two extremes: a local SQL file, and a
//! remote document store without joins or aggregates that answers in pages.

use std::{collections::BTreeMap, fmt::Debug};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    Result,
    model::{
        ContentType, ContentTypes, Digest, EmbeddingSpace, Event, Message, MessageState, MetadataFile,
        Payload, Place, ProjectSlug, Session, SessionId, SessionKey, StoredEvent, Timestamp, UserId,
        VectorRecord,
    },
    scope::Scope,
    search::SearchFilter,
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

/// The state of a stored session that changes with every write of it: a revision, an ETag.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub String);

/// A line that was left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedLine {
    /// Path within the session folder.
    pub file: String,
    /// 1-based line number.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// A session with what is kept beside its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSession {
    /// The fields.
    pub session: Session,
    /// Its present version.
    pub version: Version,
    /// Its metadata files as they came in, the session's own first.
    pub metadata_files: Vec<MetadataFile>,
    /// Lines of its files that were left out.
    pub skipped: Vec<SkippedLine>,
    /// How far its files were read: written and understood by the sync alone.
    pub sync_state: Option<String>,
}

/// One write of one session: everything that is `Some` replaces what is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionChange {
    /// All fields of the session, counts included, as they are after the write.
    pub session: Session,
    /// The version that the change was computed from; `None`: the session must not exist yet.
    pub expected: Option<Version>,
    /// The metadata files.
    pub metadata_files: Option<Vec<MetadataFile>>,
    /// The lines that were left out.
    pub skipped: Option<Vec<SkippedLine>>,
    /// How far the files were read.
    pub sync_state: Option<String>,
    /// Messages to put and to remove.
    pub messages: RowChange<Message>,
    /// Events to put and to remove.
    pub events: RowChange<StoredEvent>,
}

impl SessionChange {
    /// A change that writes the fields of `session` and nothing else.
    #[must_use]
    pub fn new(session: Session, expected: Option<Version>) -> Self {
        Self {
            session,
            expected,
            metadata_files: None,
            skipped: None,
            sync_state: None,
            messages: RowChange::default(),
            events: RowChange::default(),
        }
    }
}

/// Rows to put, each under its own sequence, and a length to cut to.
#[derive(Debug, Clone, PartialEq)]
pub struct RowChange<T> {
    /// Rows that are new or replace the one of the same sequence.
    pub put: Vec<T>,
    /// Rows of this sequence and above are removed before `put`.
    pub truncate: Option<u32>,
}

impl<T> Default for RowChange<T> {
    fn default() -> Self {
        Self { put: Vec::new(), truncate: None }
    }
}

impl<T> RowChange<T> {
    /// Whether the change does nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.put.is_empty() && self.truncate.is_none()
    }
}

/// All vectors of one message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageVectors {
    /// The message.
    pub sequence: u32,
    /// The line that the vectors were made from.
    pub digest: Digest,
    /// The vectors; they replace those that are stored.
    pub records: Vec<VectorRecord>,
}

/// Which sessions to list, newest first.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SessionQuery {
    /// Whose.
    pub scope: Scope,
    /// Only this project.
    pub project: Option<ProjectSlug>,
    /// Only ids that begin so.
    pub id_prefix: Option<String>,
    /// Only sessions updated at this time or later.
    pub since: Option<Timestamp>,
    /// Only sessions updated before this time.
    pub until: Option<Timestamp>,
    /// The most sessions in the answer.
    pub limit: usize,
    /// Continue behind this session of the page before.
    pub after: Option<SessionCursor>,
}

impl SessionQuery {
    /// The newest 100 sessions of `scope`.
    #[must_use]
    pub fn new(scope: impl Into<Scope>) -> Self {
        Self {
            scope: scope.into(),
            project: None,
            id_prefix: None,
            since: None,
            until: None,
            limit: 100,
            after: None,
        }
    }

    /// Narrows to a project.
    #[must_use]
    pub fn with_project(mut self, project: Option<ProjectSlug>) -> Self {
        self.project = project;
        self
    }

    /// Narrows to ids that begin with `prefix`.
    #[must_use]
    pub fn with_id_prefix(mut self, prefix: Option<String>) -> Self {
        self.id_prefix = prefix;
        self
    }

    /// Narrows to sessions updated from `since` on.
    #[must_use]
    pub fn with_since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since;
        self
    }

    /// Narrows to sessions updated before `until`.
    #[must_use]
    pub fn with_until(mut self, until: Option<Timestamp>) -> Self {
        self.until = until;
        self
    }

    /// Sets the most sessions in the answer.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Continues behind a session.
    #[must_use]
    pub fn with_after(mut self, after: Option<SessionCursor>) -> Self {
        self.after = after;
        self
    }

    /// Whether `session` passes every condition but `limit` and `after`.
    #[must_use]
    pub fn admits(&self, session: &Session) -> bool {
        self.scope.allows(session)
            && self.project.as_ref().is_none_or(|project| *project == session.project_slug)
            && self.id_prefix.as_ref().is_none_or(|prefix| session.session_id.as_str().starts_with(prefix))
            && self.since.is_none_or(|since| session.updated >= since)
            && self.until.is_none_or(|until| session.updated < until)
    }
}

/// A place in the list of sessions, which is ordered by `updated` descending, then user and id ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCursor {
    /// When the session was last changed.
    pub updated: Timestamp,
    /// The session.
    pub key: SessionKey,
}

impl From<&Session> for SessionCursor {
    fn from(session: &Session) -> Self {
        Self { updated: session.updated, key: session.key() }
    }
}

/// A stretch of rows of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceRange {
    /// The first sequence.
    pub start: u32,
    /// The most rows. A backend may return fewer (a page); only an empty answer is the end.
    pub limit: usize,
}

/// A text query, analysed: see [`crate::text`].
#[derive(Debug, Clone, PartialEq)]
pub struct TextQuery {
    /// Whose messages.
    pub scope: Scope,
    /// Which messages.
    pub filter: SearchFilter,
    /// Which texts of them.
    pub content_types: ContentTypes,
    /// The distinct terms of the query, any of which may match; not empty.
    pub terms: Vec<String>,
    /// The most candidates.
    pub limit: usize,
}

/// A text that matches a text query.
#[derive(Debug, Clone, PartialEq)]
pub struct TextCandidate {
    /// The message.
    pub place: Place,
    /// Which text of it.
    pub content_type: ContentType,
    /// BM25.
    pub score: f32,
}

/// A vector query.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorQuery {
    /// Whose messages.
    pub scope: Scope,
    /// Which messages.
    pub filter: SearchFilter,
    /// Which texts of them.
    pub content_types: ContentTypes,
    /// The query's vector, of unit length, in the store's space.
    pub vector: Vec<f32>,
    /// The most candidates.
    pub limit: usize,
}

/// A chunk that is near to a query vector.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorCandidate {
    /// The message.
    pub place: Place,
    /// Which text of it.
    pub content_type: ContentType,
    /// First character of the chunk.
    pub span_start: u32,
    /// One past its last character.
    pub span_end: u32,
    /// Cosine similarity to the query.
    pub similarity: f32,
    /// Its vector, for diversification; it goes no further than `core`.
    pub vector: Vec<f32>,
}

/// Candidates, and what the reader should know of how they were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidates<T> {
    /// Best first.
    pub items: Vec<T>,
    /// Why the answer was slow, for example that an index was missing; the answer itself is right.
    pub notice: Option<String>,
}

/// Stores rows, reads rows, finds candidates.
///
/// Rules for every method: an unknown session is no error but an empty answer or `None`, unless said otherwise;
/// data of another user than the one named is never touched; a call is safe to repeat.
#[async_trait]
pub trait StorageBackend: Debug + Send + Sync {
    /// What the backend can do. Never changes.
    fn capabilities(&self) -> Capabilities;

    /// All entries of the schema meta table, `version` and `writer` among them.
    async fn meta(&self) -> Result<BTreeMap<String, String>>;

    /// Stores `value` under `key` unless there is a value; returns the value that is there now.
    async fn put_meta_if_absent(&self, key: &str, value: &str) -> Result<String>;

    /// A session with what is kept beside it.
    async fn get_session(&self, key: &SessionKey) -> Result<Option<StoredSession>>;

    /// Sessions in the order of [`SessionCursor`]. Fewer than `limit` is the end of the list.
    async fn list_sessions(&self, query: &SessionQuery) -> Result<Vec<Session>>;

    /// The sync states of a user's sessions, by session id, behind `after`. An empty answer is the end.
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
    /// - An event that is put replaces the one of its sequence, and may carry the id of another that is put or removed
    ///   in the same call.
    /// - When the project of the session changes, its messages, vectors and events follow.
    /// - Where [`Capabilities::atomic_writes`] holds, all of it happens or nothing, also under `kill -9`; elsewhere
    ///   repeating the call completes it.
    async fn write(&self, change: SessionChange) -> Result<Version>;

    /// Removes a session with its messages, vectors, events and their chunks; false when there was none.
    async fn delete_session(&self, key: &SessionKey) -> Result<bool>;

    /// Digest and turn of every message of a session, in order of sequence.
    async fn message_states(&self, key: &SessionKey) -> Result<Vec<MessageState>>;

    /// Messages in order of sequence.
    async fn read_messages(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Message>>;

    /// The messages at `places`, in any order; those that do not exist are left out.
    async fn messages_at(&self, places: &[Place]) -> Result<Vec<Message>>;

    /// Messages of a user (and session, where given) whose vectors are owed, in order of session and sequence,
    /// behind `after`. An empty answer is the end.
    async fn messages_owing_vectors(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<Message>>;

    /// Stores the vectors of messages of one session and marks them as stored. The store's space must be known:
    /// `Validation` before [`meta::EMBEDDING_SPACE`] is put, or when a record breaks a rule of it. A message that is gone, or whose
    /// line is another by now, is left alone. Returns how many vectors were stored.
    async fn write_vectors(&self, key: &SessionKey, vectors: Vec<MessageVectors>) -> Result<usize>;

    /// Vectors of the given texts: for each, those of its chunks, in order, with their spans. A text without
    /// vectors is left out.
    async fn vectors_of(&self, texts: &[(Place, ContentType)]) -> Result<Vec<(Place, VectorRecord)>>;

    /// How many vectors a session has.
    async fn count_vectors(&self, key: &SessionKey) -> Result<u64>;

    /// Digests of the events of a session, in order of sequence, from `range.start`.
    async fn event_digests(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Digest>>;

    /// Events in order of sequence.
    async fn read_events(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Event>>;

    /// Payloads of the events of these sequences, in any order; missing ones are left out.
    async fn event_payloads(&self, key: &SessionKey, sequences: &[u32]) -> Result<Vec<(u32, Payload)>>;

    /// Which of `event_ids` the user has already, and where.
    async fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, Place)>>;

    /// The best texts for a text query by BM25, best first. A row that is committed is found, from any process.
    async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>>;

    /// The nearest chunks to a query vector by cosine similarity, nearest first; filtered before they are ranked.
    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>>;

    /// Brings derived indexes up to the rows. Searches are right without it, only slower.
    async fn update_index(&self) -> Result<()>;
}

/// The keys of the schema meta table that `core` reads and writes.
pub mod meta {
    use super::EmbeddingSpace;

    /// The schema version that this library writes.
    pub const SCHEMA_VERSION: u32 = 4;
    /// Key of the schema version.
    pub const VERSION: &str = "version";
    /// Key of the name of the program that made the store.
    pub const WRITER: &str = "writer";
    /// Value of [`WRITER`] in stores of this library.
    pub const WRITER_NAME: &str = "amplifier-session-storage";
    /// Key of the store's random identity.
    pub const STORE_ID: &str = "store_id";
    /// Key of the user that first wrote the store.
    pub const USER_ID: &str = "user_id";
    /// Key of the space of the store's vectors.
    pub const EMBEDDING_SPACE: &str = "embedding_space";

    /// The stored form of a space.
    pub(crate) fn space_value(space: &EmbeddingSpace) -> String {
        serde_json::to_string(space).unwrap_or_default()
    }

    /// The space of a stored form.
    pub(crate) fn parse_space(value: &str) -> Option<EmbeddingSpace> {
        serde_json::from_str(value).ok()
    }
}
