//! Fault injection for backends.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope,
    backend::{
        Candidates, Deletion, EventCount, EventTime, Events, IndexCheck, Integrity, MessageCount,
        MessageVectors, Messages, MessagesToEmbed, Meta, NewTurn, PendingQuery, RowCounts, Scheduling,
        Search, SequenceRange, SessionChange, SessionName, SessionQuery, Sessions, StorageBackend, StoreInfo,
        StorePlace, StoredSession, StoredSyncState, StrayRows, SummaryQuery, Superseded, SupersededQuery,
        SyncGuard, TermPattern, TextCandidate, TextQuery, TurnCandidate, TurnQuery, TurnVectorQuery, Turns,
        VectorCandidate, VectorCounts, VectorQuery, Vectors, Version,
    },
    model::{
        ContentType, ContentTypes, Digest, Event, Message, MessageRef, MessageState, Payload, Session,
        SessionId, SessionKey, SupersededPiece, SupersededRef, TurnEmbedding, TurnSummary, UserId,
        VectorRecord,
    },
    search::{EventFilter, EventSearchOptions, SearchFilter},
};
use async_trait::async_trait;

/// The methods of a [`StorageBackend`] that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each variant is the method of the same name")]
pub enum Operation {
    Meta,
    SwapMeta,
    GetSession,
    ListSessions,
    SessionNames,
    SyncStates,
    Write,
    DeleteSession,
    DeletedSessions,
    RenameUser,
    MessageStates,
    ReadMessages,
    MessagesAt,
    MessagesPendingVectors,
    WriteVectors,
    MarkPending,
    CompleteGeneration,
    PruneVectors,
    CountVectors,
    VectorsOf,
    VectorTypes,
    SessionRows,
    EventDigests,
    ReadEvents,
    EventPayloads,
    FindEvents,
    SearchEvents,
    CountEvents,
    CountMessages,
    TextCandidates,
    Terms,
    VectorCandidates,
    UpdateIndex,
    CheckIndex,
    ListSuperseded,
    PruneSuperseded,
    RebuildIndex,
    RemoveStrayRows,
    SessionsWithoutRecord,
    StrayRows,
    VectorFailures,
    WriteTurns,
    ReadTurns,
    NearestTurns,
    WriteSummaries,
    ListSummaries,
}

/// The operations that change stored data.
const WRITES: [Operation; 12] = [
    Operation::SwapMeta,
    Operation::Write,
    Operation::DeleteSession,
    Operation::RenameUser,
    Operation::WriteVectors,
    Operation::MarkPending,
    Operation::CompleteGeneration,
    Operation::PruneVectors,
    Operation::PruneSuperseded,
    Operation::RemoveStrayRows,
    Operation::WriteTurns,
    Operation::WriteSummaries,
];

/// A backend that wraps another one, counts the calls of each method and can fail calls before they reach the wrapped
/// backend.
#[derive(Debug)]
pub struct FlakyBackend {
    inner: Arc<dyn StorageBackend>,
    claims_atomic_writes: bool,
    /// The folder of an index that the wrapped backend does not have.
    index: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: HashMap<Operation, usize>,
    /// The number of calls until the failing one, by operation; 0 is the next call.
    planned: HashMap<Operation, Option<usize>>,
    /// The number of calls of any operation until the failing one.
    planned_any: Option<usize>,
    broken: HashMap<Operation, ErrorKind>,
}

impl FlakyBackend {
    /// Wraps `inner`, without failures.
    #[must_use]
    pub fn new(inner: Arc<dyn StorageBackend>) -> Self {
        Self { inner, claims_atomic_writes: false, index: None, state: Mutex::default() }
    }

    /// Reports that writes are atomic, even if the wrapped backend does not. This is true as long as no write fails.
    #[must_use]
    pub fn claiming_atomic_writes(self) -> Self {
        Self { claims_atomic_writes: true, ..self }
    }

    /// Reports that there is an index in `folder`, which must exist.
    #[must_use]
    pub fn claiming_index(self, folder: impl Into<PathBuf>) -> Self {
        Self { index: Some(folder.into()), ..self }
    }

    /// Fails every call of `operation` with an error of `kind`, until [`FlakyBackend::recover`].
    pub fn break_operation(&self, operation: Operation, kind: ErrorKind) {
        self.state().broken.insert(operation, kind);
    }

    /// Fails one call of `operation` with `StorageIo` (retryable), after `calls` further calls.
    pub fn fail_after(&self, operation: Operation, calls: usize) {
        self.state().planned.insert(operation, Some(calls));
    }

    /// Fails one call of any operation with `StorageIo` (retryable), after `calls` further calls.
    pub fn fail_any_after(&self, calls: usize) {
        self.state().planned_any = Some(calls);
    }

    /// Ends all failures.
    pub fn recover(&self) {
        let mut state = self.state();
        let calls = std::mem::take(&mut state.calls);
        *state = State { calls, ..State::default() };
    }

    /// The number of calls of `operation`, including failed ones.
    pub fn calls(&self, operation: Operation) -> usize {
        self.state().calls.get(&operation).copied().unwrap_or(0)
    }

    /// The number of calls of all operations that change the store.
    pub fn writes(&self) -> usize {
        WRITES.into_iter().map(|operation| self.calls(operation)).sum()
    }

    /// Forgets all calls.
    pub fn reset_counts(&self) {
        self.state().calls.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call and returns the wrapped backend, or fails.
    fn call(&self, operation: Operation) -> Result<&Arc<dyn StorageBackend>> {
        let state = &mut *self.state();
        *state.calls.entry(operation).or_default() += 1;
        if let Some(kind) = state.broken.get(&operation) {
            return Err(Error::new(*kind, format!("{operation:?} is broken on request")));
        }
        let planned = state.planned.entry(operation).or_default();
        if count_down(planned) | count_down(&mut state.planned_any) {
            return Err(
                Error::new(ErrorKind::StorageIo, format!("{operation:?} fails on request")).retryable()
            );
        }
        Ok(&self.inner)
    }
}

/// Counts down a call. Returns whether it is the one to fail.
pub(crate) fn count_down(planned: &mut Option<usize>) -> bool {
    let due = *planned == Some(0);
    *planned = planned.and_then(|left| left.checked_sub(1));
    due
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Meta for FlakyBackend {
    fn info(&self) -> StoreInfo {
        let info = self.inner.info();
        let atomic = info.atomic_writes || self.claims_atomic_writes;
        let index = self.index.iter().map(|folder| StorePlace::local("index", folder.clone(), []));
        let places = info.places.iter().cloned().chain(index).collect();
        info.with_atomic_writes(atomic).with_places(places)
    }

    async fn meta(&self) -> Result<BTreeMap<String, String>> {
        self.call(Operation::Meta)?.meta().await
    }

    async fn swap_meta(&self, key: &str, expected: Option<&str>, value: &str) -> Result<Option<String>> {
        self.call(Operation::SwapMeta)?.swap_meta(key, expected, value).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Sessions for FlakyBackend {
    async fn get_session(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        self.call(Operation::GetSession)?.get_session(key).await
    }

    async fn list_sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        self.call(Operation::ListSessions)?.list_sessions(query).await
    }

    async fn session_names(&self, scope: &Scope) -> Result<Vec<SessionName>> {
        self.call(Operation::SessionNames)?.session_names(scope).await
    }

    async fn session_rows(&self, key: &SessionKey) -> Result<RowCounts> {
        self.call(Operation::SessionRows)?.session_rows(key).await
    }

    async fn sync_states(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<(SessionId, StoredSyncState)>> {
        self.call(Operation::SyncStates)?.sync_states(user, after, limit).await
    }

    /// Each change counts as a call of [`Operation::Write`].
    async fn write(&self, changes: Vec<SessionChange>) -> Vec<Result<Version>> {
        let calls: Vec<_> =
            changes.into_iter().map(|change| self.call(Operation::Write).map(|_| change)).collect();
        let let_through = calls.iter().filter_map(|call| call.as_ref().ok().cloned()).collect();
        let mut written = self.inner.write(let_through).await.into_iter();
        calls
            .into_iter()
            .filter_map(|call| call.map_or_else(|error| Some(Err(error)), |_| written.next()))
            .collect()
    }

    /// Each session counts as a call of [`Operation::DeleteSession`].
    async fn delete_sessions(&self, keys: &[SessionKey]) -> Deletion {
        let calls: Vec<_> =
            keys.iter().map(|key| self.call(Operation::DeleteSession).map(|_| key.clone())).collect();
        let let_through: Vec<SessionKey> = calls.iter().filter_map(|call| call.clone().ok()).collect();
        let Deletion { deleted, remains } = self.inner.delete_sessions(&let_through).await;
        let mut deleted = deleted.into_iter();
        let deleted = calls
            .into_iter()
            .filter_map(|call| call.map_or_else(|error| Some(Err(error)), |_| deleted.next()));
        Deletion { deleted: deleted.collect(), remains }
    }

    async fn deleted_sessions(&self, user: &UserId) -> Result<Vec<SessionId>> {
        self.call(Operation::DeletedSessions)?.deleted_sessions(user).await
    }

    async fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64> {
        self.call(Operation::RenameUser)?.rename_user(from, to).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Messages for FlakyBackend {
    async fn message_states(&self, key: &SessionKey) -> Result<Vec<MessageState>> {
        self.call(Operation::MessageStates)?.message_states(key).await
    }

    async fn read_messages(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Message>> {
        self.call(Operation::ReadMessages)?.read_messages(key, range).await
    }

    async fn messages_at(&self, message_refs: &[MessageRef]) -> Result<Vec<Message>> {
        self.call(Operation::MessagesAt)?.messages_at(message_refs).await
    }

    async fn count_messages(&self, scope: &Scope, filter: &SearchFilter) -> Result<Vec<MessageCount>> {
        self.call(Operation::CountMessages)?.count_messages(scope, filter).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Events for FlakyBackend {
    async fn event_digests(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Digest>> {
        self.call(Operation::EventDigests)?.event_digests(key, range).await
    }

    async fn read_events(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Event>> {
        self.call(Operation::ReadEvents)?.read_events(key, range).await
    }

    async fn event_times(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<EventTime>> {
        self.call(Operation::ReadEvents)?.event_times(key, range).await
    }

    async fn event_payloads(&self, key: &SessionKey, sequences: &[u32]) -> Result<Vec<(u32, Payload)>> {
        self.call(Operation::EventPayloads)?.event_payloads(key, sequences).await
    }

    async fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, MessageRef)>> {
        self.call(Operation::FindEvents)?.find_events(user, event_ids).await
    }

    async fn search_events(&self, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>> {
        self.call(Operation::SearchEvents)?.search_events(scope, options).await
    }

    async fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>> {
        self.call(Operation::CountEvents)?.count_events(scope, filter).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Superseded for FlakyBackend {
    async fn list_superseded(&self, query: &SupersededQuery) -> Result<Vec<SupersededPiece>> {
        self.call(Operation::ListSuperseded)?.list_superseded(query).await
    }

    async fn prune_superseded(&self, pieces: &[SupersededRef]) -> Deletion {
        match self.call(Operation::PruneSuperseded) {
            Ok(inner) => inner.prune_superseded(pieces).await,
            Err(error) => Deletion::complete(vec![Err(error); pieces.len()]),
        }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Vectors for FlakyBackend {
    async fn messages_pending_vectors(&self, query: &PendingQuery) -> Result<Vec<Message>> {
        self.call(Operation::MessagesPendingVectors)?.messages_pending_vectors(query).await
    }

    async fn write_vectors(
        &self,
        key: &SessionKey,
        generation: u32,
        vectors: Vec<MessageVectors>,
    ) -> Result<usize> {
        self.call(Operation::WriteVectors)?.write_vectors(key, generation, vectors).await
    }

    async fn mark_pending(&self, key: &SessionKey, which: MessagesToEmbed) -> Result<u64> {
        self.call(Operation::MarkPending)?.mark_pending(key, which).await
    }

    async fn complete_generation(&self, generation: u32) -> Result<bool> {
        self.call(Operation::CompleteGeneration)?.complete_generation(generation).await
    }

    async fn prune_vectors(&self, limit: usize) -> Result<usize> {
        self.call(Operation::PruneVectors)?.prune_vectors(limit).await
    }

    async fn count_vectors(&self, scope: &Scope) -> Result<VectorCounts> {
        self.call(Operation::CountVectors)?.count_vectors(scope).await
    }

    async fn vectors_of(
        &self,
        generation: u32,
        texts: &[(MessageRef, ContentType)],
    ) -> Result<Vec<(MessageRef, VectorRecord)>> {
        self.call(Operation::VectorsOf)?.vectors_of(generation, texts).await
    }

    async fn vector_types(
        &self,
        generation: u32,
        key: &SessionKey,
        range: SequenceRange,
    ) -> Result<Vec<(u32, ContentTypes)>> {
        self.call(Operation::VectorTypes)?.vector_types(generation, key, range).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Turns for FlakyBackend {
    async fn write_turns(&self, turns: Vec<NewTurn>) -> Result<usize> {
        self.call(Operation::WriteTurns)?.write_turns(turns).await
    }

    async fn read_turns(&self, query: &TurnQuery) -> Result<Vec<TurnEmbedding>> {
        self.call(Operation::ReadTurns)?.read_turns(query).await
    }

    async fn nearest_turns(&self, query: &TurnVectorQuery) -> Result<Vec<TurnCandidate>> {
        self.call(Operation::NearestTurns)?.nearest_turns(query).await
    }

    async fn write_summaries(&self, key: &SessionKey, summaries: Vec<TurnSummary>) -> Result<usize> {
        self.call(Operation::WriteSummaries)?.write_summaries(key, summaries).await
    }

    async fn list_summaries(&self, query: &SummaryQuery) -> Result<Vec<TurnSummary>> {
        self.call(Operation::ListSummaries)?.list_summaries(query).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Search for FlakyBackend {
    async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
        self.call(Operation::TextCandidates)?.text_candidates(query).await
    }

    async fn terms(&self, patterns: &[TermPattern], limit: usize) -> Result<Vec<Vec<String>>> {
        self.call(Operation::Terms)?.terms(patterns, limit).await
    }

    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        self.call(Operation::VectorCandidates)?.vector_candidates(query).await
    }

    async fn update_index(&self) -> Result<()> {
        self.call(Operation::UpdateIndex)?.update_index().await
    }

    async fn update_index_if_due(&self) -> Result<()> {
        self.call(Operation::UpdateIndex)?.update_index_if_due().await
    }

    async fn renew_texts(&self, key: &SessionKey, sequences: &[u32]) -> Result<()> {
        self.call(Operation::MarkPending)?.renew_texts(key, sequences).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Integrity for FlakyBackend {
    async fn stray_rows(&self, key: &SessionKey) -> Result<Vec<StrayRows>> {
        self.call(Operation::StrayRows)?.stray_rows(key).await
    }

    async fn remove_stray_rows(&self, key: &SessionKey) -> Result<u64> {
        self.call(Operation::RemoveStrayRows)?.remove_stray_rows(key).await
    }

    async fn sessions_without_record(&self, user: &UserId) -> Result<Vec<SessionKey>> {
        self.call(Operation::SessionsWithoutRecord)?.sessions_without_record(user).await
    }

    async fn vector_failures(&self, generation: u32, key: &SessionKey) -> Result<Vec<(u32, String)>> {
        self.call(Operation::VectorFailures)?.vector_failures(generation, key).await
    }

    async fn check_index(&self) -> Result<IndexCheck> {
        self.call(Operation::CheckIndex)?.check_index().await
    }

    async fn rebuild_index(&self) -> Result<()> {
        self.call(Operation::RebuildIndex)?.rebuild_index().await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Scheduling for FlakyBackend {
    fn come_first(&self) {
        self.inner.come_first();
    }

    async fn give_way(&self) {
        self.inner.give_way().await;
    }

    fn begin_sync(&self) -> Option<SyncGuard> {
        self.inner.begin_sync()
    }
}
