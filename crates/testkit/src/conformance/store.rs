//! A store under test, with what the promises do to it all the time.

use std::sync::Arc;

use amplifier_session_core::{
    ErrorKind, Result, Scope, SessionStorage,
    backend::{OwingQuery, SequenceRange, StoredSession, prelude::*},
    embedding::EmbeddingProvider,
    model::{
        ContentType, HostId, Message, Place, ProjectSlug, RawJson, SessionId, SessionKey, UserId,
        VectorRecord,
    },
    search::{SearchMode, SearchOptions, SearchResult, SearchResults},
    storage::{EventLine, EventLines, IngestReport, IngestTarget, SyncLines},
};

use super::Subject;
use crate::{FakeEmbedding, FlakyBackend, TestClock};

/// The store of a promise: the backend under test, watched, with a storage on it that makes vectors.
pub(super) struct Store {
    pub(super) backend: Arc<FlakyBackend>,
    pub(super) storage: SessionStorage,
    pub(super) embedding: Arc<FakeEmbedding>,
}

impl Store {
    pub(super) async fn open(subject: &dyn Subject) -> Self {
        Self::open_with(subject, FakeEmbedding::new()).await
    }

    pub(super) async fn open_with(subject: &dyn Subject, embedding: FakeEmbedding) -> Self {
        Self::on(subject.open().await, embedding)
    }

    /// A second handle on the same store.
    pub(super) async fn open_again(subject: &dyn Subject) -> Self {
        Self::on(subject.open_again().await, FakeEmbedding::new())
    }

    fn on(backend: Arc<dyn StorageBackend>, embedding: FakeEmbedding) -> Self {
        let backend = Arc::new(FlakyBackend::new(backend));
        let embedding = Arc::new(embedding);
        let clock = TestClock::ticking("2026-02-01T00:00:00Z", 1_000_000);
        let storage = SessionStorage::new(backend.clone())
            .with_embedding(Some(embedding.clone() as Arc<dyn EmbeddingProvider>))
            .with_clock(clock.function());
        Self { backend, storage, embedding }
    }

    /// The storage with another provider, or none.
    pub(super) fn storage_with(&self, embedding: Option<FakeEmbedding>) -> SessionStorage {
        let embedding = embedding.map(|embedding| Arc::new(embedding) as Arc<dyn EmbeddingProvider>);
        self.storage.clone().with_embedding(embedding)
    }

    /// Syncs a whole transcript.
    pub(super) async fn sync(&self, target: &IngestTarget, lines: Vec<impl Into<RawJson>>) -> IngestReport {
        self.storage.sync_transcript_lines(target, SyncLines::whole(raw(lines))).await.unwrap()
    }

    /// Syncs transcript lines from a sequence on.
    pub(super) async fn sync_from(
        &self,
        target: &IngestTarget,
        start: u32,
        lines: Vec<impl Into<RawJson>>,
    ) -> Result<IngestReport> {
        self.storage.sync_transcript_lines(target, SyncLines::starting_at(start, raw(lines))).await
    }

    /// Syncs a whole event log.
    pub(super) async fn sync_events(
        &self,
        target: &IngestTarget,
        lines: Vec<impl Into<RawJson>>,
    ) -> IngestReport {
        self.storage.sync_event_lines(target, SyncLines::whole(raw(lines))).await.unwrap()
    }

    /// Syncs event lines from a sequence on.
    pub(super) async fn sync_events_from(
        &self,
        target: &IngestTarget,
        start: u32,
        lines: Vec<impl Into<RawJson>>,
    ) -> Result<IngestReport> {
        self.storage.sync_event_lines(target, SyncLines::starting_at(start, raw(lines))).await
    }

    /// All messages of a session; none when there is no such session.
    pub(super) async fn messages(&self, target: &IngestTarget) -> Vec<Message> {
        let read =
            self.storage.get_transcript_lines(&scope(target), &target.key.session_id, None, 100_000).await;
        none_if_not_found(read)
    }

    /// All events of a session, with their lines; none when there is no such session.
    pub(super) async fn events(&self, target: &IngestTarget) -> Vec<EventLine> {
        let lines = EventLines::default().with_limit(100_000).with_payload(true);
        none_if_not_found(self.storage.get_event_lines(&scope(target), &target.key.session_id, lines).await)
    }

    /// What is stored of a session that is there.
    pub(super) async fn stored(&self, target: &IngestTarget) -> StoredSession {
        self.backend.get_session(&target.key).await.unwrap().unwrap()
    }

    /// The vectors of all texts of a session, in order.
    pub(super) async fn vectors(&self, target: &IngestTarget) -> Vec<(u32, VectorRecord)> {
        let count = self.backend.message_states(&target.key).await.unwrap().len() as u32;
        let mut vectors = Vec::new();
        for sequence in 0..count {
            let place = Place::new(target.key.clone(), sequence);
            let texts = ContentType::ALL.map(|content_type| (place.clone(), content_type));
            let records = self.backend.vectors_of(0, &texts).await.unwrap();
            vectors.extend(records.into_iter().map(|(place, record)| (place.sequence, record)));
        }
        vectors.sort_by_key(|(sequence, record)| (*sequence, record.content_type, record.chunk_index));
        vectors
    }

    /// Sequences of messages that owe their vectors.
    pub(super) async fn owing(&self, target: &IngestTarget) -> Vec<u32> {
        let mut owing: Vec<u32> = Vec::new();
        loop {
            let after = owing.last().map(|sequence| Place::new(target.key.clone(), *sequence));
            let (user, session) = (&target.key.user_id, Some(&target.key.session_id));
            let page = self
                .backend
                .messages_owing_vectors(&owing_query(user, session, after.as_ref(), 100))
                .await
                .unwrap();
            if page.is_empty() {
                return owing;
            }
            owing.extend(page.iter().map(|message| message.sequence));
        }
    }

    /// Searches in the data of the target's user.
    pub(super) async fn search(&self, target: &IngestTarget, options: &SearchOptions) -> SearchResults {
        self.storage.search_transcripts(&scope(target), options).await.unwrap()
    }

    /// Sequences of the messages that hold any word of `query`, in ascending order.
    pub(super) async fn find(&self, target: &IngestTarget, query: &str) -> Vec<u32> {
        let options = words(query).with_limit(1_000);
        let mut found = sequences(&self.search(target, &options).await.results);
        found.sort_unstable();
        found
    }
}

/// Session `session` of ana, in the project `shop`.
pub(super) fn target(session: &str) -> IngestTarget {
    target_of("ana", "shop", session)
}

pub(super) fn target_of(user: &str, project: &str, session: &str) -> IngestTarget {
    IngestTarget {
        key: SessionKey::new(UserId::new(user).unwrap(), SessionId::new(session).unwrap()),
        host_id: HostId::new("laptop").unwrap(),
        project_slug: ProjectSlug::new(project).unwrap(),
    }
}

pub(super) fn scope(target: &IngestTarget) -> Scope {
    Scope::User(target.key.user_id.clone())
}

pub(super) fn raw(lines: Vec<impl Into<RawJson>>) -> Vec<RawJson> {
    lines.into_iter().map(Into::into).collect()
}

/// The first `limit` rows from `start` on.
pub(super) fn range(start: u32, limit: usize) -> SequenceRange {
    SequenceRange { start, limit }
}

/// A full-text search.
pub(super) fn words(query: &str) -> SearchOptions {
    SearchOptions::new(query).with_mode(SearchMode::FullText)
}

/// A semantic search, by relevance alone.
pub(super) fn meaning(query: &str) -> SearchOptions {
    SearchOptions::new(query).with_mode(SearchMode::Semantic).with_mmr_lambda(1.0)
}

pub(super) fn sequences(results: &[SearchResult]) -> Vec<u32> {
    results.iter().map(|result| result.sequence).collect()
}

/// Whether a search says that it ran by words alone, for want of vectors.
pub(super) fn says_words_alone(answer: &SearchResults) -> bool {
    answer.notices.iter().any(|notice| notice.contains("words alone"))
}

/// The kind of the error that something must fail with.
pub(super) fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

fn none_if_not_found<T>(read: Result<Vec<T>>) -> Vec<T> {
    match read {
        Err(error) if error.kind() == ErrorKind::SessionNotFound => Vec::new(),
        other => other.unwrap(),
    }
}

/// Messages that owe vectors of the first generation.
pub(super) fn owing_query(
    user: &UserId,
    session: Option<&SessionId>,
    after: Option<&Place>,
    limit: usize,
) -> OwingQuery {
    OwingQuery { user: user.clone(), session: session.cloned(), generation: 0, after: after.cloned(), limit }
}
