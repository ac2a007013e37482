//! Fault injection for backends.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope,
    backend::{
        Candidates, ChangeCursor, ChangeHints, ChangePage, Changes, CountedEvents, DatedMessage, Deletion,
        EventState, Events, IndexCheck, IndexUpdate, Integrity, MessageCount, MessageVectors, Messages,
        MessagesToEmbed, Meta, OtherRow, OtherRowQuery, OtherRows, PendingQuery, RowCounts, Scheduling,
        Search, SequenceRange, SessionChange, SessionDeletion, SessionName, SessionQuery, Sessions,
        StorageBackend, StorageBackendExt as _, StoreInfo, StorePlace, StoredSession, StoredSyncState,
        StrayRows, SyncGuard, TermPattern, TextCandidate, TextQuery, VectorCandidate, VectorCounts,
        VectorQuery, Vectors, Version,
    },
    model::{
        Event, Message, MessageRef, MessageState, Payload, Session, SessionId, SessionKey, SupersededRef,
        TurnSummary, UserId, VectorRecord, VectorText,
    },
    search::{EventFilter, EventSearchOptions, MissingVectors, SearchFilter},
};
use async_trait::async_trait;

/// The methods that can fail, as an enum, and their implementation by a call of the wrapped backend. The methods in
/// brackets at the end of a trait are written by hand.
macro_rules! operations {
    (
        by hand: $($by_hand:ident)*;
        $($trait:ident {
            $($operation:ident: $method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*
            $([$($method_by_hand:tt)*])?
        })*
    ) => {
        /// The methods of a [`StorageBackend`] that can fail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "each variant is the method of the same name")]
        pub enum Operation {
            $($by_hand,)*
            $($($operation,)*)*
        }

        $(
            #[deny(clippy::missing_trait_methods)]
            #[async_trait]
            impl $trait for FlakyBackend {
                $(
                    async fn $method(&self, $($argument: $type),*) -> Result<$answer> {
                        self.call(Operation::$operation)?.$method($($argument),*).await
                    }
                )*
                $($($method_by_hand)*)?
            }
        )*
    };
}

operations! {
    by hand: Write DeleteSession ListSuperseded ListSummaries VectorFailures PruneSuperseded;

    Meta {
        Meta: meta() -> BTreeMap<String, String>;
        SwapMeta: swap_meta(key: &str, expected: Option<&str>, value: &str) -> Option<String>;
        [
            fn info(&self) -> StoreInfo {
                let info = self.inner.info();
                let atomic = info.atomic_writes || self.claims_atomic_writes;
                let index = self.index.iter().map(|folder| StorePlace::local("index", folder.clone(), []));
                let places = info.places.iter().cloned().chain(index).collect();
                info.with_atomic_writes(atomic).with_places(places)
            }
        ]
    }

    Sessions {
        GetSession: get_session(key: &SessionKey) -> Option<StoredSession>;
        ListSessions: list_sessions(query: &SessionQuery) -> Vec<Session>;
        SessionNames: session_names(scope: &Scope) -> Vec<SessionName>;
        SessionRows: session_rows(key: &SessionKey) -> RowCounts;
        SyncStates: sync_states(user: &UserId, after: Option<&SessionId>, limit: usize) -> Vec<(SessionId, StoredSyncState)>;
        DeletedSessions: deleted_sessions(user: &UserId) -> Vec<SessionId>;
        RenameUser: rename_user(from: &UserId, to: &UserId) -> u64;
        [
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
            async fn delete_sessions(&self, sessions: &[SessionDeletion]) -> Deletion {
                let meanwhile = self.state().meanwhile.take();
                if let Some(change) = meanwhile {
                    let written = self.inner.write_one(change).await;
                    debug_assert!(written.is_ok(), "{written:?}");
                }
                let call = |session: &SessionDeletion| self.call(Operation::DeleteSession).map(|_| session.clone());
                let calls: Vec<_> = sessions.iter().map(call).collect();
                let let_through: Vec<SessionDeletion> = calls.iter().filter_map(|call| call.clone().ok()).collect();
                let Deletion { deleted, remains } = self.inner.delete_sessions(&let_through).await;
                let mut deleted = deleted.into_iter();
                let deleted = calls
                    .into_iter()
                    .filter_map(|call| call.map_or_else(|error| Some(Err(error)), |_| deleted.next()));
                Deletion { deleted: deleted.collect(), remains }
            }
        ]
    }

    Messages {
        MessageStates: message_states(key: &SessionKey) -> Vec<MessageState>;
        ReadMessages: read_messages(key: &SessionKey, range: SequenceRange) -> Vec<Message>;
        MessagesAt: messages_at(message_refs: &[MessageRef]) -> Vec<Message>;
        CountMessages: count_messages(scope: &Scope, filter: &SearchFilter) -> Vec<MessageCount>;
    }

    Events {
        EventStates: event_states(key: &SessionKey, range: SequenceRange, with_times: bool) -> Vec<EventState>;
        ReadEvents: read_events(key: &SessionKey, range: SequenceRange) -> Vec<Event>;
        EventPayloads: event_payloads(key: &SessionKey, sequences: &[u32]) -> Vec<(u32, Payload)>;
        FindEvents: find_events(user: &UserId, event_ids: &[String]) -> Vec<(String, MessageRef)>;
        SearchEvents: search_events(scope: &Scope, options: &EventSearchOptions) -> Vec<Event>;
        CountEvents: count_events(scope: &Scope, filter: &EventFilter) -> CountedEvents;
    }

    OtherRows {
        WriteSummaries: write_summaries(key: &SessionKey, summaries: Vec<TurnSummary>) -> usize;
        [
            /// Each kind of rows has its own operation.
            async fn list_other_rows(&self, query: &OtherRowQuery) -> Result<Vec<OtherRow>> {
                let operation = match query {
                    OtherRowQuery::Superseded(_) => Operation::ListSuperseded,
                    OtherRowQuery::Summaries(_) => Operation::ListSummaries,
                    OtherRowQuery::Failures { .. } => Operation::VectorFailures,
                };
                self.call(operation)?.list_other_rows(query).await
            }

            async fn prune_superseded(&self, pieces: &[SupersededRef]) -> Deletion {
                match self.call(Operation::PruneSuperseded) {
                    Ok(inner) => inner.prune_superseded(pieces).await,
                    Err(error) => Deletion::complete(vec![Err(error); pieces.len()]),
                }
            }
        ]
    }

    Vectors {
        MessagesPendingVectors: messages_pending_vectors(query: &PendingQuery) -> Vec<Message>;
        WriteVectors: write_vectors(key: &SessionKey, generation: u32, vectors: Vec<MessageVectors>) -> usize;
        MarkPending: mark_pending(key: &SessionKey, which: MessagesToEmbed) -> u64;
        CompleteGeneration: complete_generation(generation: u32) -> bool;
        PruneVectors: prune_vectors(limit: usize) -> usize;
        CountVectors: count_vectors(scope: &Scope) -> VectorCounts;
        MissingVectors: missing_vectors(scope: &Scope) -> MissingVectors;
        VectorsOf: vectors_of(
            generation: u32,
            texts: &[(MessageRef, VectorText)]
        ) -> Vec<(MessageRef, VectorRecord)>;
        VectorTexts: vector_texts(
            generation: u32,
            key: &SessionKey,
            range: SequenceRange
        ) -> Vec<(u32, Vec<VectorText>)>;
    }

    Search {
        TextCandidates: text_candidates(query: &TextQuery) -> Candidates<TextCandidate>;
        NewestMessages: newest_messages(query: &TextQuery) -> Candidates<DatedMessage>;
        VectorCandidates: vector_candidates(query: &VectorQuery) -> Candidates<VectorCandidate>;
        Terms: terms(patterns: &[TermPattern], limit: usize) -> Vec<Vec<String>>;
        UpdateIndex: update_index(update: IndexUpdate) -> ();
        ReindexTexts: reindex_texts(key: &SessionKey, sequences: &[u32]) -> ();
    }

    Integrity {
        StrayRows: stray_rows(user: &UserId, session: Option<&SessionId>) -> Vec<StrayRows>;
        RemoveStrayRows: remove_stray_rows(key: &SessionKey) -> u64;
        CheckIndex: check_index() -> IndexCheck;
    }

    Changes {
        Changes: changes(scope: &Scope, after: Option<&ChangeCursor>, limit: usize) -> ChangePage;
        [
            fn change_hints(&self) -> ChangeHints {
                self.inner.change_hints()
            }
        ]
    }

    Scheduling {
        [
            fn prioritize(&self) {
                self.inner.prioritize();
            }

            async fn yield_to_searches(&self) {
                self.inner.yield_to_searches().await;
            }

            fn begin_sync(&self) -> Option<SyncGuard> {
                self.inner.begin_sync()
            }
        ]
    }
}

/// The operations that change stored data.
const WRITES: [Operation; 11] = [
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
    /// A write by another process, made just before the next deletion.
    meanwhile: Option<SessionChange>,
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

    /// Writes `change` just before the next deletion, as another process might.
    pub fn write_before_deletion(&self, change: SessionChange) {
        self.state().meanwhile = Some(change);
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
