//! The backend: each call runs on a thread for blocking work, and what is written reaches the index.

use std::{collections::BTreeMap, fmt, ops::Deref, sync::Arc};

use amplifier_session_core::{
    Result, Scope,
    backend::{
        Candidates, EventCount, EventTime, Events, MessageCount, MessageVectors, Messages, MessagesToEmbed,
        Meta, PendingQuery, Scheduling, Search, SequenceRange, SessionChange, SessionName, SessionQuery,
        SessionRows, Sessions, StoreInfo, StoredSession, SyncGuard, TextCandidate, TextQuery,
        VectorCandidate, VectorCounts, VectorQuery, Vectors, Version,
    },
    blocking,
    model::{
        ContentType, ContentTypes, Digest, Event, Message, MessageRef, MessageState, Payload, Session,
        SessionId, SessionKey, UserId, VectorRecord,
    },
    search::{EventFilter, EventSearchOptions, SearchFilter},
};
use amplifier_session_index::WhenBusy;
use async_trait::async_trait;

use super::{Connections, Database, Lookups, Nearest, write};
use crate::{Reader, read};

type ReaderOf<'a, D> = <<D as Database>::Connections as Connections>::Reader<'a>;

/// A backend on an embedded database. Cheap to clone; clones share the database.
pub struct Embedded<D>(Arc<D>);

impl<D> Clone for Embedded<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D: fmt::Debug> fmt::Debug for Embedded<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<D> Deref for Embedded<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.0
    }
}

impl<D: Database> Embedded<D> {
    /// A backend on `database`.
    #[must_use]
    pub fn new(database: D) -> Self {
        Self(Arc::new(database))
    }

    async fn run<T: Send + 'static>(&self, run: impl FnOnce(&D) -> Result<T> + Send + 'static) -> Result<T> {
        let database = Arc::clone(&self.0);
        blocking(move || run(&database)).await?
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReaderOf<'_, D>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(|database| database.connections().read(read)).await
    }

    async fn read_snapshot<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReaderOf<'_, D>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(|database| database.connections().read_snapshot(read)).await
    }

    /// Removes from all files what a deleted session has left: in the index and in the database.
    async fn erase(&self) -> Result<()> {
        let updated = self.0.index().fold(WhenBusy::Wait).await;
        self.run(D::erase).await.and(updated)
    }
}

#[async_trait]
impl<D: Database> Meta for Embedded<D> {
    fn info(&self) -> StoreInfo {
        self.0.info()
    }

    async fn meta(&self) -> Result<BTreeMap<String, String>> {
        self.read(|reader| read::meta::meta(reader)).await
    }

    async fn swap_meta(&self, key: &str, expected: Option<&str>, value: &str) -> Result<Option<String>> {
        let (key, expected, value) = (key.to_owned(), expected.map(str::to_owned), value.to_owned());
        self.run(move |database| write::swap_meta(database, &key, expected.as_deref(), &value)).await
    }
}

#[async_trait]
impl<D: Database> Sessions for Embedded<D> {
    async fn get_session(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        let key = key.clone();
        self.read(move |reader| read::sessions::get(reader, &key)).await
    }

    async fn list_sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        let query = query.clone();
        self.read(move |reader| read::sessions::list(reader, &query)).await
    }

    async fn session_names(&self, scope: &Scope) -> Result<Vec<SessionName>> {
        let scope = scope.clone();
        self.read(move |reader| read::sessions::names(reader, &scope)).await
    }

    async fn session_rows(&self, key: &SessionKey) -> Result<SessionRows> {
        let key = key.clone();
        self.read_snapshot(move |reader| read::sessions::stored_rows(reader, &key)).await
    }

    async fn sync_states(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<(SessionId, String)>> {
        let states = read::sessions::sync_states(user, after, limit);
        self.read(move |reader| reader.rows(&states)).await
    }

    async fn write(&self, changes: Vec<SessionChange>) -> Vec<Result<Version>> {
        let (bytes, count) = (changes.iter().map(SessionChange::message_bytes).sum(), changes.len());
        let written = self.run(move |database| Ok(write::sessions(database, &changes))).await;
        match self.0.index().wrote(bytes).await.and(written) {
            Ok(versions) => versions,
            Err(error) => vec![Err(error); count],
        }
    }

    async fn delete_session(&self, key: &SessionKey) -> Result<bool> {
        let key = key.clone();
        let deleted = self.run(move |database| write::delete_session(database, &key)).await?;
        if deleted && let Err(error) = self.erase().await {
            // The session is gone; the next update of the index and the next deletion remove what is left in files.
            tracing::warn!(%error, "could not yet remove what a deleted session left in the index or the database");
        }
        Ok(deleted)
    }

    async fn deleted_sessions(&self, user: &UserId) -> Result<Vec<SessionId>> {
        let deleted = read::sessions::deleted(user);
        self.read(move |reader| reader.rows(&deleted)).await
    }

    async fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64> {
        let (from, to) = (from.clone(), to.clone());
        self.run(move |database| write::rename_user(database, &from, &to)).await
    }
}

#[async_trait]
impl<D: Database> Messages for Embedded<D> {
    async fn message_states(&self, key: &SessionKey) -> Result<Vec<MessageState>> {
        let states = read::messages::states(key);
        self.read(move |reader| reader.rows(&states)).await
    }

    async fn read_messages(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Message>> {
        let messages = read::messages::of_session_from(key, range);
        self.read(move |reader| read::messages::page(reader, &messages)).await
    }

    async fn messages_at(&self, message_refs: &[MessageRef]) -> Result<Vec<Message>> {
        let message_refs = message_refs.to_vec();
        self.read(move |reader| reader.messages_at(&message_refs)).await
    }

    async fn count_messages(&self, scope: &Scope, filter: &SearchFilter) -> Result<Vec<MessageCount>> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read(move |reader| read::messages::counts(reader, &scope, &filter)).await
    }
}

#[async_trait]
impl<D: Database> Events for Embedded<D> {
    async fn event_digests(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Digest>> {
        let digests = read::events::digests(key, range);
        self.read(move |reader| reader.rows(&digests)).await
    }

    async fn read_events(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Event>> {
        let events = read::events::page(key, range);
        self.read(move |reader| reader.rows(&events)).await
    }

    async fn event_times(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<EventTime>> {
        let times = read::events::times(key, range);
        self.read(move |reader| reader.rows(&times)).await
    }

    async fn event_payloads(&self, key: &SessionKey, sequences: &[u32]) -> Result<Vec<(u32, Payload)>> {
        let (key, sequences) = (key.clone(), sequences.to_vec());
        self.read(move |reader| read::events::of_sequences(reader, &key, &sequences)).await
    }

    async fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, MessageRef)>> {
        let (user, event_ids) = (user.clone(), event_ids.to_vec());
        self.read(move |reader| reader.find_events(&user, &event_ids)).await
    }

    async fn search_events(&self, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>> {
        let (scope, options) = (scope.clone(), options.clone());
        self.read(move |reader| read::events::search(reader, &scope, &options)).await
    }

    async fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read(move |reader| reader.count_events(&scope, &filter)).await
    }
}

#[async_trait]
impl<D: Database> Vectors for Embedded<D> {
    async fn messages_pending_vectors(&self, query: &PendingQuery) -> Result<Vec<Message>> {
        let query = query.clone();
        self.read_snapshot(move |reader| read::messages::pending(reader, &query)).await
    }

    async fn write_vectors(
        &self,
        key: &SessionKey,
        generation: u32,
        of_messages: Vec<MessageVectors>,
    ) -> Result<usize> {
        let key = key.clone();
        let bytes = of_messages.iter().map(MessageVectors::vector_bytes).sum();
        let stored =
            self.run(move |database| write::vectors(database, &key, generation, &of_messages)).await?;
        self.0.index().wrote(bytes).await?;
        Ok(stored)
    }

    async fn mark_pending(&self, key: &SessionKey, which: MessagesToEmbed) -> Result<u64> {
        let key = key.clone();
        self.run(move |database| write::mark_pending(database, &key, &which)).await
    }

    async fn complete_generation(&self, generation: u32) -> Result<bool> {
        self.run(move |database| write::complete_generation(database, generation)).await
    }

    async fn prune_vectors(&self, limit: usize) -> Result<usize> {
        self.run(move |database| write::prune_vectors(database, limit)).await
    }

    async fn count_vectors(&self, scope: &Scope) -> Result<VectorCounts> {
        let scope = scope.clone();
        self.read_snapshot(move |reader| read::vectors::counts(reader, &scope)).await
    }

    async fn vectors_of(
        &self,
        generation: u32,
        texts: &[(MessageRef, ContentType)],
    ) -> Result<Vec<(MessageRef, VectorRecord)>> {
        let texts = texts.to_vec();
        self.read(move |reader| reader.vectors_of(generation, &texts)).await
    }

    async fn vector_types(
        &self,
        generation: u32,
        key: &SessionKey,
        range: SequenceRange,
    ) -> Result<Vec<(u32, ContentTypes)>> {
        let key = key.clone();
        self.read(move |reader| read::vectors::types(reader, generation, &key, range)).await
    }
}

#[async_trait]
impl<D: Database> Search for Embedded<D> {
    async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
        self.0.index().text_candidates(query).await
    }

    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        let asked = query.clone();
        let reason = match self.run(move |database| database.nearest(&asked)).await? {
            Nearest::Found(items) => return Ok(Candidates { items, notice: None }),
            Nearest::NotAsked => None,
            Nearest::Unavailable(reason) => Some(reason),
        };
        let mut found = self.0.index().vector_candidates(query).await?;
        let notices: Vec<String> = found.notice.into_iter().chain(reason).collect();
        found.notice = (!notices.is_empty()).then(|| notices.join("; "));
        Ok(found)
    }

    /// Also removes what deleted, changed and rewound rows have left in the files of the database.
    async fn update_index(&self) -> Result<()> {
        self.0.check_writable()?;
        let updated = self.0.index().fold(WhenBusy::Wait).await;
        self.run(D::tidy).await.and(updated)
    }

    async fn renew_texts(&self, _: &SessionKey, _: &[u32]) -> Result<()> {
        // The index knows which rules it follows.
        Ok(())
    }
}

#[async_trait]
impl<D: Database> Scheduling for Embedded<D> {
    fn come_first(&self) {
        self.0.index().index().come_first();
    }

    async fn give_way(&self) {
        // Work that does not give way is work all the same.
        let _ = self.0.index().give_way().await;
    }

    fn begin_sync(&self) -> Option<SyncGuard> {
        self.0.index().index().begin_sync().map(SyncGuard::new)
    }
}
