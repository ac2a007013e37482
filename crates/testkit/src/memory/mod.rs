//! A storage backend in memory, in the manner of a remote document store.

mod container;
mod count;
mod documents;
mod generations;
mod rename;
mod scan;
mod search;
mod write;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope,
    backend::{
        Candidates, EventCount, EventTime, Events, MessageCount, MessageVectors, Messages, Meta, OweAgain,
        OwingQuery, Scheduling, Search, SequenceRange, SessionChange, SessionCursor, SessionName,
        SessionQuery, SessionRows, Sessions, StoreInfo, StorePlace, StoredSession, TextCandidate, TextQuery,
        VectorCandidate, VectorCounts, VectorQuery, Vectors, Version, meta,
    },
    model::{
        ContentType, ContentTypes, Digest, Event, Message, MessageState, Payload, Place, Session, SessionId,
        SessionKey, UserId, VectorRecord,
    },
    search::{EventFilter, EventSearchOptions, SearchFilter},
};
use async_trait::async_trait;

use documents::{Documents, Target};

/// Keeps everything in memory, the way a remote document store would: documents in partitions, no joins, no
/// aggregates across partitions, answers in small pages, and no write above a few documents that happens as a
/// whole.
///
/// Its pages are small so that every caller's paging is exercised. Clones share the data.
///
/// ```
/// use std::sync::Arc;
/// use amplifier_session_core::SessionStorage;
/// use amplifier_session_testkit::MemoryBackend;
///
/// let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
/// ```
#[derive(Debug, Clone)]
pub struct MemoryBackend {
    shared: Arc<Shared>,
    settings: Settings,
}

#[derive(Debug, Clone, Copy)]
struct Settings {
    page_size: usize,
    batch_size: usize,
    atomic_writes: bool,
}

#[derive(Debug)]
struct Shared {
    documents: Mutex<Documents>,
    leases: Mutex<HashMap<SessionKey, Arc<tokio::sync::Mutex<()>>>>,
    interruption: Interruption,
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryBackend {
    /// An empty store that answers in pages of 7 and writes in batches of 5.
    #[must_use]
    pub fn new() -> Self {
        let mut documents = Documents::new();
        documents.meta = BTreeMap::from([
            (meta::VERSION.to_owned(), meta::SCHEMA_VERSION.to_string()),
            (meta::WRITER.to_owned(), meta::WRITER_NAME.to_owned()),
        ]);
        let shared = Shared {
            documents: Mutex::new(documents),
            leases: Mutex::default(),
            interruption: Interruption::new(),
        };
        Self {
            shared: Arc::new(shared),
            settings: Settings { page_size: 7, batch_size: 5, atomic_writes: false },
        }
    }

    /// Sets the most documents in an answer (at least 1).
    #[must_use]
    pub fn with_page_size(mut self, page_size: usize) -> Self {
        self.settings.page_size = page_size.max(1);
        self
    }

    /// Sets the most rows that a write changes at once (at least 1).
    #[must_use]
    pub fn with_batch_size(mut self, batch_size: usize) -> Self {
        self.settings.batch_size = batch_size.max(1);
        self
    }

    /// Makes every write happen as a whole, as in an SQL database.
    #[must_use]
    pub fn with_atomic_writes(mut self) -> Self {
        self.settings.atomic_writes = true;
        self
    }

    /// Interrupts the next write or deletion after `batches` batches: it fails with `StorageIo` (retryable),
    /// and what it did until then stays. `usize::MAX` interrupts none.
    pub fn interrupt_after(&self, batches: usize) {
        self.shared.interruption.arm(batches);
    }

    fn documents(&self) -> MutexGuard<'_, Documents> {
        self.shared.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn page_limit(&self, limit: usize) -> usize {
        limit.min(self.settings.page_size)
    }
}

/// When a write is to fail.
#[derive(Debug)]
struct Interruption(AtomicUsize);

impl Interruption {
    const NEVER: usize = usize::MAX;

    fn new() -> Self {
        Self(AtomicUsize::new(Self::NEVER))
    }

    fn arm(&self, batches: usize) {
        self.0.store(batches, Ordering::SeqCst);
    }

    /// Counts a batch, and fails in the place of the one that is not to happen.
    fn check(&self) -> Result<()> {
        match self.0.load(Ordering::SeqCst) {
            Self::NEVER => Ok(()),
            0 => {
                self.arm(Self::NEVER);
                Err(Error::new(ErrorKind::StorageIo, "the write was interrupted as wanted").retryable())
            }
            left => {
                self.arm(left - 1);
                Ok(())
            }
        }
    }
}

#[async_trait]
impl Meta for MemoryBackend {
    fn info(&self) -> StoreInfo {
        StoreInfo::new("memory")
            .with_atomic_writes(self.settings.atomic_writes)
            .with_persistent(false)
            .with_places(vec![StorePlace::remote("store", "memory".to_owned())])
    }

    async fn meta(&self) -> Result<BTreeMap<String, String>> {
        Ok(self.documents().meta.clone())
    }

    async fn swap_meta(&self, key: &str, expected: Option<&str>, value: &str) -> Result<Option<String>> {
        let entries = &mut self.documents().meta;
        if entries.get(key).map(String::as_str) == expected {
            entries.insert(key.to_owned(), value.to_owned());
        }
        Ok(entries.get(key).cloned())
    }
}

#[async_trait]
impl Sessions for MemoryBackend {
    async fn get_session(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        Ok(self.documents().session(key))
    }

    async fn list_sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        let mut sessions = self.all_sessions();
        let place = |cursor: SessionCursor| (std::cmp::Reverse(cursor.updated), cursor.key);
        let after = query.after.clone().map(place);
        sessions.retain(|session| {
            query.admits(session) && after.as_ref().is_none_or(|after| place(session.into()) > *after)
        });
        sessions.sort_by_key(|session| place(session.into()));
        sessions.truncate(query.limit);
        Ok(sessions)
    }

    async fn session_names(&self, scope: &Scope) -> Result<Vec<SessionName>> {
        let sessions = self.all_sessions().into_iter().filter(|session| scope.allows(session));
        Ok(sessions.map(|session| SessionName::new(session.session_id, session.parent_id)).collect())
    }

    async fn session_rows(&self, key: &SessionKey) -> Result<SessionRows> {
        Ok(self.documents().rows_of(key))
    }

    async fn sync_states(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<(SessionId, String)>> {
        let behind = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.clone()));
        let sessions = self.documents().sessions.page(user, (behind, Bound::Unbounded), usize::MAX);
        let states = sessions.into_iter().filter_map(|(id, stored)| Some((id, stored.sync_state?)));
        Ok(states.take(self.page_limit(limit)).collect())
    }

    async fn write(&self, changes: Vec<SessionChange>) -> Vec<Result<Version>> {
        let mut versions = Vec::with_capacity(changes.len());
        for change in changes {
            versions.push(self.write_change(change).await);
        }
        versions
    }

    async fn delete_session(&self, key: &SessionKey) -> Result<bool> {
        self.delete(key).await
    }

    async fn deleted_sessions(&self, user: &UserId) -> Result<Vec<SessionId>> {
        Ok(self.documents().deleted_sessions(user))
    }

    async fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64> {
        self.rename(from, to)
    }
}

#[async_trait]
impl Messages for MemoryBackend {
    async fn message_states(&self, key: &SessionKey) -> Result<Vec<MessageState>> {
        let messages = self.documents().messages.page(key, .., usize::MAX).into_iter();
        Ok(messages
            .map(|(_, message)| MessageState {
                digest: message.digest,
                turn: message.turn,
                ts: message.ts,
                ts_source: message.ts_source,
            })
            .collect())
    }

    async fn read_messages(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Message>> {
        let page = self.documents().messages.page(key, range.start.., self.page_limit(range.limit));
        Ok(page.into_iter().map(|(_, message)| message).collect())
    }

    async fn messages_at(&self, places: &[Place]) -> Result<Vec<Message>> {
        let documents = self.documents();
        Ok(places
            .iter()
            .filter_map(|place| documents.messages.get(&place.session, &place.sequence))
            .collect())
    }

    async fn count_messages(&self, scope: &Scope, filter: &SearchFilter) -> Result<Vec<MessageCount>> {
        Ok(self.counted_messages(scope, filter))
    }
}

#[async_trait]
impl Events for MemoryBackend {
    async fn event_digests(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Digest>> {
        Ok(self.read_events(key, range).await?.into_iter().map(|event| event.digest).collect())
    }

    async fn read_events(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Event>> {
        let page = self.documents().events.page(key, range.start.., self.page_limit(range.limit));
        Ok(page.into_iter().map(|(_, document)| document.event).collect())
    }

    async fn event_times(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<EventTime>> {
        Ok(self.read_events(key, range).await?.into_iter().map(EventTime::from).collect())
    }

    async fn event_payloads(&self, key: &SessionKey, sequences: &[u32]) -> Result<Vec<(u32, Payload)>> {
        let documents = self.documents();
        let payload = |sequence: &u32| Some((*sequence, documents.payload(key, *sequence)?));
        Ok(sequences.iter().filter_map(payload).collect())
    }

    async fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, Place)>> {
        let wanted: HashSet<&String> = event_ids.iter().collect();
        let mut found = Vec::new();
        self.each_event(|event| {
            if event.user_id == *user && wanted.contains(&event.event_id) {
                let key = SessionKey::new(event.user_id, event.session_id);
                found.push((event.event_id, Place::new(key, event.sequence)));
            }
        });
        Ok(found)
    }

    async fn search_events(&self, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>> {
        Ok(self.newest_events(scope, options))
    }

    async fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>> {
        Ok(self.counted_events(scope, filter))
    }
}

#[async_trait]
impl Vectors for MemoryBackend {
    async fn messages_owing_vectors(&self, query: &OwingQuery) -> Result<Vec<Message>> {
        Ok(self.owing(query))
    }

    async fn write_vectors(
        &self,
        key: &SessionKey,
        generation: u32,
        vectors: Vec<MessageVectors>,
    ) -> Result<usize> {
        let held = self.generations();
        let space = held.space(generation)?;
        vectors.iter().flat_map(|of| &of.records).try_for_each(|record| record.validate(space))?;
        let target = Target { generation, is_current: held.current_number() == generation };
        // A message and its vectors lie in one partition, so that a batch of one message happens as a whole.
        Ok(vectors.into_iter().map(|of_message| self.documents().put_vectors(key, target, of_message)).sum())
    }

    async fn owe_vectors(&self, key: &SessionKey, which: OweAgain) -> Result<u64> {
        Ok(self.owe(key, &which))
    }

    async fn complete_generation(&self, generation: u32) -> Result<bool> {
        self.complete(generation)
    }

    async fn prune_vectors(&self, limit: usize) -> Result<usize> {
        Ok(self.prune(limit))
    }

    async fn count_vectors(&self, scope: &Scope) -> Result<VectorCounts> {
        Ok(self.counted_vectors(scope))
    }

    async fn vectors_of(
        &self,
        generation: u32,
        texts: &[(Place, ContentType)],
    ) -> Result<Vec<(Place, VectorRecord)>> {
        let documents = self.documents();
        let records = texts.iter().flat_map(|(place, content_type)| {
            let of_text =
                documents.vectors_of_text(&place.session, (place.sequence, generation, *content_type));
            of_text.into_iter().map(|record| (place.clone(), record))
        });
        Ok(records.collect())
    }

    async fn vector_types(
        &self,
        generation: u32,
        key: &SessionKey,
        range: SequenceRange,
    ) -> Result<Vec<(u32, ContentTypes)>> {
        let mut types = self.documents().vector_types(key, generation, range.start);
        types.truncate(self.page_limit(range.limit));
        Ok(types)
    }
}

#[async_trait]
impl Search for MemoryBackend {
    async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
        Ok(Candidates { items: self.matching_texts(query), notice: None })
    }

    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        Ok(Candidates { items: self.nearest_chunks(query)?, notice: None })
    }

    async fn update_index(&self) -> Result<()> {
        Ok(())
    }

    async fn renew_texts(&self, _: &SessionKey, _: &[u32]) -> Result<()> {
        Ok(())
    }
}

impl Scheduling for MemoryBackend {}
