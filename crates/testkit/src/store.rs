//! A store under test, and common operations of tests.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "tests fail by panicking")]

use std::{fmt::Debug, path::PathBuf, sync::Arc};

use amplifier_session_core::{
    ErrorKind, Result, Scope, SessionStorage,
    backend::{
        PendingQuery, RowCounts, SequenceRange, SessionChange, SessionQuery, StoredSession, Version,
        prelude::*,
    },
    embedding::EmbeddingProvider,
    model::{
        ContentType, ContentTypes, HostId, Message, MessageRef, ProjectSlug, RawJson, Session, SessionId,
        SessionKey, Timestamp, UserId, VectorRecord, VectorText,
    },
    search::{SearchMode, SearchOptions, SearchResult, SearchResults},
    storage::{EmbedReport, EventLine, EventLines, IngestReport, IngestTarget, SyncLines},
};
use async_trait::async_trait;

use crate::{
    clock::TestClock,
    embedding::FakeEmbedding,
    flaky::FlakyBackend,
    lines::Line,
    users::{self, name_of},
};

/// A kind of store under test. Each test creates its own subject and opens one store with it.
#[async_trait]
pub trait Subject: Send + Sync {
    /// Creates and opens the store, which must exist as long as the subject.
    async fn open(&self) -> Arc<dyn StorageBackend>;

    /// Opens the same store again, as independently of the first handle as if from another process.
    async fn open_again(&self) -> Arc<dyn StorageBackend>;
}

/// A store in a temporary folder, which is removed with the subject. A second handle opens the same path again.
#[derive(Debug)]
pub struct InFolder<F> {
    folder: tempfile::TempDir,
    open: F,
}

impl<F> InFolder<F> {
    /// Opens stores at a path with `open`.
    pub fn new(open: F) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), open }
    }
}

#[async_trait]
impl<F, A, B> Subject for InFolder<F>
where
    F: Fn(PathBuf) -> A + Send + Sync,
    A: Future<Output = Result<B>> + Send,
    B: StorageBackend + 'static,
{
    async fn open(&self) -> Arc<dyn StorageBackend> {
        Arc::new((self.open)(self.folder.path().join("sessions.db")).await.unwrap())
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

/// An open store: a backend with fault injection, and a storage on it with an embedding model.
#[allow(missing_debug_implementations, reason = "subjects do not implement `Debug`")]
pub struct Store {
    /// The backend. It counts calls and can simulate failures.
    pub backend: Arc<FlakyBackend>,
    /// The storage. Its clock advances by a second with each reading.
    pub storage: SessionStorage,
    /// The model of the storage.
    pub embedding: Arc<FakeEmbedding>,
    subject: Arc<dyn Subject>,
}

/// A session, its messages, its events and its vectors.
type Everything = (StoredSession, (Vec<Message>, Vec<EventLine>, Vec<(u32, VectorRecord)>));

impl Store {
    /// Opens the store of `subject`.
    pub async fn open(subject: Arc<dyn Subject>) -> Self {
        let backend = subject.open().await;
        Self::on(subject, backend)
    }

    /// Opens a second handle on the same store.
    pub async fn again(&self) -> Self {
        Self::on(self.subject.clone(), self.subject.open_again().await)
    }

    pub(crate) fn on(subject: Arc<dyn Subject>, backend: Arc<dyn StorageBackend>) -> Self {
        let backend = Arc::new(FlakyBackend::new(backend));
        let clock = TestClock::ticking("2026-02-01T00:00:00Z", 1_000_000);
        let storage = SessionStorage::new(backend.clone()).with_clock(clock.function());
        Self { backend, storage, embedding: Arc::default(), subject }.with_embedding(FakeEmbedding::new())
    }

    /// Replaces the model.
    #[must_use]
    pub fn with_embedding(mut self, embedding: FakeEmbedding) -> Self {
        self.embedding = Arc::new(embedding);
        self.storage =
            self.storage.with_embedding(Some(self.embedding.clone() as Arc<dyn EmbeddingProvider>));
        self
    }

    /// The storage with another provider, or without one.
    pub fn storage_with(&self, embedding: Option<FakeEmbedding>) -> SessionStorage {
        let embedding = embedding.map(|embedding| Arc::new(embedding) as Arc<dyn EmbeddingProvider>);
        self.storage.clone().with_embedding(embedding)
    }

    /// Creates a session that was last changed at the beginning of 2026. `fill` sets its fields.
    pub async fn create(&self, target: &IngestTarget, fill: impl FnOnce(&mut Session)) -> Session {
        let IngestTarget { key, host_id, project_slug } = target.clone();
        let mut session = Session::new(key, host_id, project_slug, day(1));
        fill(&mut session);
        self.storage.ingestion().create_session(session.clone()).await.unwrap();
        session
    }

    /// Writes a stored session again, with the change that `fill` makes, directly to the backend.
    pub async fn write(&self, target: &IngestTarget, fill: impl FnOnce(&mut SessionChange)) -> Version {
        let stored = self.stored(target).await;
        let mut change = SessionChange::new(stored.session, Some(stored.version));
        fill(&mut change);
        self.backend.write_one(change).await.unwrap()
    }

    /// Syncs metadata.
    pub async fn sync_metadata(&self, target: &IngestTarget, metadata: &str) -> IngestReport {
        self.storage.ingestion().sync_session_metadata(target, RawJson::from(metadata)).await.unwrap()
    }

    /// Syncs a whole transcript without making vectors.
    pub async fn sync_text(&self, target: &IngestTarget, lines: Vec<impl Into<RawJson>>) -> IngestReport {
        let lines = SyncLines::whole(raw(lines));
        self.storage_with(None).ingestion().sync_transcript_lines(target, lines).await.unwrap()
    }

    /// Makes the pending vectors of ana.
    pub async fn embed(&self) -> EmbedReport {
        self.storage.vectors().embed_pending(&target("x").key.user_id, None).await.unwrap()
    }

    /// Syncs a whole transcript.
    pub async fn sync(&self, target: &IngestTarget, lines: Vec<impl Into<RawJson>>) -> IngestReport {
        self.storage.ingestion().sync_transcript_lines(target, SyncLines::whole(raw(lines))).await.unwrap()
    }

    /// Syncs transcript lines from a start sequence.
    pub async fn sync_from(
        &self,
        target: &IngestTarget,
        start: u32,
        lines: Vec<impl Into<RawJson>>,
    ) -> Result<IngestReport> {
        self.storage
            .ingestion()
            .sync_transcript_lines(target, SyncLines::starting_at(start, raw(lines)))
            .await
    }

    /// Syncs a whole event log.
    pub async fn sync_events(&self, target: &IngestTarget, lines: Vec<impl Into<RawJson>>) -> IngestReport {
        self.storage.ingestion().sync_event_lines(target, SyncLines::whole(raw(lines))).await.unwrap()
    }

    /// Syncs event lines from a start sequence.
    pub async fn sync_events_from(
        &self,
        target: &IngestTarget,
        start: u32,
        lines: Vec<impl Into<RawJson>>,
    ) -> Result<IngestReport> {
        self.storage.ingestion().sync_event_lines(target, SyncLines::starting_at(start, raw(lines))).await
    }

    /// All messages of a session; empty if the session does not exist.
    pub async fn messages(&self, target: &IngestTarget) -> Vec<Message> {
        let read = self
            .storage
            .reading()
            .get_transcript_lines(&scope(target), &target.key.session_id, None, 100_000)
            .await;
        none_if_not_found(read)
    }

    /// All events of a session with their lines; empty if the session does not exist.
    pub async fn events(&self, target: &IngestTarget) -> Vec<EventLine> {
        let lines = EventLines::default().with_limit(100_000).with_payload(true);
        none_if_not_found(
            self.storage.reading().get_event_lines(&scope(target), &target.key.session_id, lines).await,
        )
    }

    /// An existing session.
    pub async fn stored(&self, target: &IngestTarget) -> StoredSession {
        self.backend.get_session(&target.key).await.unwrap().unwrap()
    }

    /// An existing session with all of its rows, as of one version. The reads are not one snapshot: a write that an
    /// aborted client has sent may be committed between them.
    pub async fn everything(&self, target: &IngestTarget) -> Everything {
        loop {
            let before = self.stored(target).await;
            let rows = (self.messages(target).await, self.events(target).await, self.vectors(target).await);
            if self.stored(target).await.version == before.version {
                return (before, rows);
            }
        }
    }

    /// The row counts of a session.
    pub async fn rows(&self, target: &IngestTarget) -> RowCounts {
        self.backend.session_rows(&target.key).await.unwrap()
    }

    /// The sessions that a query lists, as `user/session`.
    pub async fn listed(&self, query: &SessionQuery) -> Vec<String> {
        let sessions = self.storage.sessions().search_sessions(query).await.unwrap();
        sessions
            .iter()
            .map(|session| format!("{}/{}", name_of(&session.user_id), session.session_id))
            .collect()
    }

    /// The vectors of all texts of a session, in order.
    pub async fn vectors(&self, target: &IngestTarget) -> Vec<(u32, VectorRecord)> {
        let count = self.backend.message_states(&target.key).await.unwrap().len() as u32;
        let message_ref = |sequence| MessageRef::new(target.key.clone(), sequence);
        let texts = (0..count).flat_map(|at| VectorText::ALL.map(|text| (message_ref(at), text)));
        let records = self.backend.vectors_of(0, &texts.collect::<Vec<_>>()).await.unwrap();
        let mut vectors: Vec<_> =
            records.into_iter().map(|(message_ref, record)| (message_ref.sequence, record)).collect();
        vectors.sort_by_key(|(sequence, record)| (*sequence, record.text, record.chunk_index));
        vectors
    }

    /// The sequences of messages with pending vectors.
    pub async fn pending(&self, target: &IngestTarget) -> Vec<u32> {
        let (user, session) = (&target.key.user_id, Some(&target.key.session_id));
        let pending = self.pending_of(pending_query(user, session, None, 100)).await;
        pending.iter().map(|message_ref| message_ref.sequence).collect()
    }

    /// The messages that match a query, from all pages.
    pub async fn pending_of(&self, mut query: PendingQuery) -> Vec<MessageRef> {
        let mut pending: Vec<MessageRef> = Vec::new();
        loop {
            query.after = pending.last().cloned();
            let page = self.backend.messages_pending_vectors(&query).await.unwrap();
            assert!(page.len() <= query.limit);
            if page.is_empty() {
                return pending;
            }
            pending.extend(page.iter().map(Message::message_ref));
        }
    }

    /// Searches in the scope of the target's user.
    pub async fn search(&self, target: &IngestTarget, options: &SearchOptions) -> SearchResults {
        self.storage.search().search_transcripts(&scope(target), options).await.unwrap()
    }

    /// The sequences of the messages that contain any word of `query`, sorted.
    pub async fn find(&self, target: &IngestTarget, query: &str) -> Vec<u32> {
        let options = words(query).with_limit(1_000);
        let mut found = sequences(&self.search(target, &options).await.results);
        found.sort_unstable();
        found
    }
}

/// Session `session` of ana, in the project `shop`.
pub fn target(session: &str) -> IngestTarget {
    target_of("ana", "shop", session)
}

/// The lines of a whole file.
pub fn whole(lines: Vec<Line>) -> SyncLines {
    SyncLines::whole(lines.into_iter().map(RawJson::from).collect())
}

/// A session of a user in a project.
pub fn target_of(user: &str, project: &str, session: &str) -> IngestTarget {
    IngestTarget {
        key: SessionKey::new(users::user(user), SessionId::new(session).unwrap()),
        host_id: HostId::new("laptop").unwrap(),
        project_slug: ProjectSlug::new(project).unwrap(),
    }
}

/// The scope of ana.
pub fn ana() -> Scope {
    scope(&target("x"))
}

/// A time (ISO 8601).
pub fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// The beginning of day `n` of January 2026.
pub fn day(n: u32) -> Timestamp {
    time(&format!("2026-01-{n:02}T00:00:00Z"))
}

/// A single content type.
pub fn only(content_type: ContentType) -> ContentTypes {
    [content_type].into_iter().collect()
}

/// The cosine of vectors of unit length.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The scope of the user of `target`.
pub fn scope(target: &IngestTarget) -> Scope {
    Scope::User(target.key.user_id.clone())
}

/// Lines as they are in files.
pub fn raw(lines: Vec<impl Into<RawJson>>) -> Vec<RawJson> {
    lines.into_iter().map(Into::into).collect()
}

/// The range of the first `limit` rows from `start`.
pub fn range(start: u32, limit: usize) -> SequenceRange {
    SequenceRange { start, limit }
}

/// A full-text search.
pub fn words(query: &str) -> SearchOptions {
    SearchOptions::new(query).with_mode(SearchMode::FullText)
}

/// A semantic search, ranked by relevance only.
pub fn meaning(query: &str) -> SearchOptions {
    SearchOptions::new(query).with_mode(SearchMode::Semantic).with_mmr_lambda(1.0)
}

/// Whether a stored vector is this one: a backend keeps at least the precision of 16-bit floats.
pub fn is_kept(stored: &[f32], vector: &[f32]) -> bool {
    let is_near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-3;
    stored.len() == vector.len() && stored.iter().zip(vector).all(is_near)
}

/// The sequences of the results, in order.
pub fn sequences(results: &[SearchResult]) -> Vec<u32> {
    results.iter().map(|result| result.sequence).collect()
}

/// Whether the search fell back to full text because there are no vectors.
pub fn fell_back_to_full_text(answer: &SearchResults) -> bool {
    answer.notices.iter().any(|notice| notice.contains("words only"))
}

/// The kind of the error of a call that must fail.
pub fn kind<T: Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

fn none_if_not_found<T>(read: Result<Vec<T>>) -> Vec<T> {
    match read {
        Err(error) if error.kind() == ErrorKind::SessionNotFound => Vec::new(),
        other => other.unwrap(),
    }
}

/// A query for messages with pending vectors of the first generation.
pub fn pending_query(
    user: &UserId,
    session: Option<&SessionId>,
    after: Option<&MessageRef>,
    limit: usize,
) -> PendingQuery {
    PendingQuery {
        user: user.clone(),
        session: session.cloned(),
        generation: 0,
        turns: false,
        after: after.cloned(),
        limit,
    }
}
