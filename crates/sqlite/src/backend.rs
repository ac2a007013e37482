//! The backend: each call runs on a thread for blocking work, on a connection of its own.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use amplifier_session_core::{
    Result, Scope,
    backend::{
        Candidates, Capabilities, EventCount, EventTime, MessageCount, MessageVectors, OweAgain, OwingQuery,
        SequenceRange, SessionChange, SessionName, SessionQuery, SessionRows, StorageBackend, StorePlace,
        StoredSession, SyncTurn, TextCandidate, TextQuery, VectorCandidate, VectorCounts, VectorQuery,
        Version, meta::Generations,
    },
    blocking,
    model::{
        ContentType, ContentTypes, Digest, Event, Message, MessageState, Payload, Place, Session, SessionId,
        SessionKey, UserId, VectorRecord,
    },
    search::{EventFilter, EventSearchOptions, SearchFilter},
};
use amplifier_session_index::{Keeper, SearchIndex, WhenBusy};
use amplifier_session_sql::file::refuses_writes;
use async_trait::async_trait;
use rusqlite::Connection;

use crate::{
    counts, event_search, events, messages,
    pool::{Pool, with_snapshot},
    rows::SqliteSnapshots,
    sessions, vectors, write,
};

/// Sessions in one SQLite file. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct SqliteBackend(Arc<Inner>);

struct Inner {
    pool: Arc<Pool>,
    keeper: Keeper<SqliteSnapshots>,
}

impl SqliteBackend {
    /// Opens the store in the file `path`, which is created when it is missing, for its owner alone. The search index
    /// lies beside it, in the folder `<path>.index`.
    ///
    /// A file that can't be written, or in whose folder nothing can be created, is opened to read it: see
    /// [`StorageBackend::read_only`].
    ///
    /// # Errors
    ///
    /// `StorageConnection` when the file can't be opened, or is no store of this library in a version that it knows:
    /// such a file is left untouched.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        blocking(move || Self::open_now(path)).await?
    }

    fn open_now(path: PathBuf) -> Result<Self> {
        let pool = Arc::new(Pool::open(&path)?);
        let mut index_dir = path.clone().into_os_string();
        index_dir.push(".index");
        let keeper = Keeper::new(SearchIndex::open(index_dir), SqliteSnapshots(Arc::clone(&pool)));
        Ok(Self(Arc::new(Inner { pool, keeper })))
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.pool.path()
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.pool.read(read)).await?
    }

    async fn write_with<T: Send + 'static>(
        &self,
        write: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.pool.write(write)).await?
    }

    /// Removes from all files what a deleted session has left: in the index, in pages and in the write-ahead log.
    ///
    /// Takes as long as writing the whole database. While others read from the log, it stays until they are done:
    /// see [`Pool::empty_log`].
    async fn erase(&self) -> Result<()> {
        let folded = self.0.keeper.fold(WhenBusy::Wait).await;
        let pool = Arc::clone(&self.0.pool);
        let rewritten = blocking(move || {
            let rewritten = pool.rewrite();
            pool.empty_log().and(rewritten)
        });
        rewritten.await?.and(folded)
    }
}

impl Inner {
    fn places(&self) -> Vec<StorePlace> {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        let place = |what, path: &Path, bytes| StorePlace {
            what,
            location: path.display().to_string(),
            bytes: Some(bytes),
        };
        let index = self.keeper.index();
        let store = size(self.pool.path()) + size(&self.pool.log_path());
        vec![place("store", self.pool.path(), store), place("index", index.dir(), index.bytes())]
    }
}

impl fmt::Debug for SqliteBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteBackend").field("path", &self.path()).finish_non_exhaustive()
    }
}

#[async_trait]
impl StorageBackend for SqliteBackend {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("sqlite")
    }

    fn come_first(&self) {
        self.0.keeper.index().come_first();
    }

    async fn give_way(&self) {
        // Work that does not give way is work all the same.
        let _ = self.0.keeper.give_way().await;
    }

    fn begin_sync(&self) -> Option<SyncTurn> {
        self.0.keeper.index().begin_sync().map(SyncTurn::new)
    }

    fn read_only(&self) -> Option<String> {
        self.0.pool.read_only().map(str::to_owned)
    }

    async fn meta(&self) -> Result<BTreeMap<String, String>> {
        self.read(|connection| sessions::meta(connection)).await
    }

    async fn put_meta_if_absent(&self, key: &str, value: &str) -> Result<String> {
        let (key, value) = (key.to_owned(), value.to_owned());
        self.write_with(move |connection| sessions::put_meta_if_absent(connection, &key, &value)).await
    }

    async fn replace_meta(&self, key: &str, expected: &str, value: &str) -> Result<bool> {
        let [key, expected, value] = [key, expected, value].map(str::to_owned);
        self.write_with(move |connection| sessions::replace_meta(connection, &key, &expected, &value)).await
    }

    async fn get_session(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        let key = key.clone();
        self.read(move |connection| sessions::get(connection, &key)).await
    }

    async fn list_sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        let query = query.clone();
        self.read(move |connection| sessions::list(connection, &query)).await
    }

    async fn session_names(&self, scope: &Scope) -> Result<Vec<SessionName>> {
        let scope = scope.clone();
        self.read(move |connection| sessions::names(connection, &scope)).await
    }

    async fn sync_states(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<(SessionId, String)>> {
        let (user, after) = (user.clone(), after.cloned());
        self.read(move |connection| sessions::sync_states(connection, &user, after.as_ref(), limit)).await
    }

    async fn write(&self, change: SessionChange) -> Result<Version> {
        let bytes = change.message_bytes();
        let version = self.write_with(move |connection| write::session(connection, &change)).await?;
        self.0.keeper.wrote(bytes).await?;
        Ok(version)
    }

    async fn write_all(&self, changes: Vec<SessionChange>) -> Vec<Result<Version>> {
        let (bytes, count) = (changes.iter().map(SessionChange::message_bytes).sum(), changes.len());
        let written = self.write_with(move |connection| Ok(write::sessions(connection, &changes))).await;
        match self.0.keeper.wrote(bytes).await.and(written) {
            Ok(versions) => versions,
            Err(error) => vec![Err(error); count],
        }
    }

    async fn delete_session(&self, key: &SessionKey) -> Result<bool> {
        let key = key.clone();
        let deleted = self.write_with(move |connection| write::delete(connection, &key)).await?;
        if deleted && let Err(error) = self.erase().await {
            // The session is gone; what is left of it in files goes with the next fold and the next deletion.
            tracing::warn!(%error, "what a deleted session left in the index or the log could not be cleaned up yet");
        }
        Ok(deleted)
    }

    async fn deleted_sessions(&self, user: &UserId) -> Result<Vec<SessionId>> {
        let user = user.clone();
        self.read(move |connection| sessions::deleted(connection, &user)).await
    }

    async fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64> {
        let (from, to) = (from.clone(), to.clone());
        self.write_with(move |connection| write::rename_user(connection, &from, &to)).await
    }

    async fn message_states(&self, key: &SessionKey) -> Result<Vec<MessageState>> {
        let key = key.clone();
        self.read(move |connection| messages::states(connection, &key)).await
    }

    async fn read_messages(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Message>> {
        let key = key.clone();
        self.read(move |connection| messages::read(connection, &key, range)).await
    }

    async fn messages_at(&self, places: &[Place]) -> Result<Vec<Message>> {
        let places = places.to_vec();
        self.read(move |connection| messages::at(connection, &places)).await
    }

    async fn messages_owing_vectors(&self, query: &OwingQuery) -> Result<Vec<Message>> {
        let query = query.clone();
        self.read(move |connection| {
            with_snapshot(connection, |snapshot| {
                let held = Generations::of(&sessions::meta(snapshot)?);
                let is_current = held.current_number() == query.generation;
                if !is_current && !held.is_next(query.generation) {
                    return Ok(Vec::new());
                }
                messages::owing_vectors(snapshot, &query, is_current)
            })
        })
        .await
    }

    async fn write_vectors(
        &self,
        key: &SessionKey,
        generation: u32,
        of_messages: Vec<MessageVectors>,
    ) -> Result<usize> {
        let key = key.clone();
        let bytes = of_messages.iter().map(MessageVectors::vector_bytes).sum();
        let stored = self
            .write_with(move |connection| write::vectors(connection, &key, generation, &of_messages))
            .await?;
        self.0.keeper.wrote(bytes).await?;
        Ok(stored)
    }

    async fn owe_vectors(&self, key: &SessionKey, which: OweAgain) -> Result<u64> {
        let key = key.clone();
        self.write_with(move |connection| write::owe_vectors(connection, &key, &which)).await
    }

    async fn complete_generation(&self, generation: u32) -> Result<bool> {
        self.write_with(move |connection| write::complete_generation(connection, generation)).await
    }

    async fn prune_vectors(&self, limit: usize) -> Result<usize> {
        self.write_with(move |connection| write::prune_vectors(connection, limit)).await
    }

    async fn count_vectors(&self, scope: &Scope) -> Result<VectorCounts> {
        let scope = scope.clone();
        self.read(move |connection| with_snapshot(connection, |snapshot| counts::vectors(snapshot, &scope)))
            .await
    }

    async fn vectors_of(
        &self,
        generation: u32,
        texts: &[(Place, ContentType)],
    ) -> Result<Vec<(Place, VectorRecord)>> {
        let texts = texts.to_vec();
        self.read(move |connection| vectors::of(connection, generation, &texts)).await
    }

    async fn vector_types(
        &self,
        generation: u32,
        key: &SessionKey,
        range: SequenceRange,
    ) -> Result<Vec<(u32, ContentTypes)>> {
        let key = key.clone();
        self.read(move |connection| vectors::types(connection, generation, &key, range)).await
    }

    async fn session_rows(&self, key: &SessionKey) -> Result<SessionRows> {
        let key = key.clone();
        self.read(move |connection| with_snapshot(connection, |snapshot| counts::rows_of(snapshot, &key)))
            .await
    }

    async fn event_digests(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Digest>> {
        let key = key.clone();
        self.read(move |connection| events::digests(connection, &key, range)).await
    }

    async fn read_events(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Event>> {
        let key = key.clone();
        self.read(move |connection| events::read(connection, &key, range)).await
    }

    async fn event_times(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<EventTime>> {
        let key = key.clone();
        self.read(move |connection| events::times(connection, &key, range)).await
    }

    async fn event_payloads(&self, key: &SessionKey, sequences: &[u32]) -> Result<Vec<(u32, Payload)>> {
        let (key, sequences) = (key.clone(), sequences.to_vec());
        self.read(move |connection| events::payloads(connection, &key, &sequences)).await
    }

    async fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, Place)>> {
        let (user, event_ids) = (user.clone(), event_ids.to_vec());
        self.read(move |connection| events::find(connection, &user, &event_ids)).await
    }

    async fn search_events(&self, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>> {
        let (scope, options) = (scope.clone(), options.clone());
        self.read(move |connection| event_search::search(connection, &scope, &options)).await
    }

    async fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read(move |connection| event_search::count(connection, &scope, &filter)).await
    }

    async fn count_messages(&self, scope: &Scope, filter: &SearchFilter) -> Result<Vec<MessageCount>> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read(move |connection| counts::messages(connection, &scope, &filter)).await
    }

    async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
        self.0.keeper.text_candidates(query).await
    }

    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        self.0.keeper.vector_candidates(query).await
    }

    /// Also removes what deleted, changed and rewound rows have left in the index and in the write-ahead log.
    async fn update_index(&self) -> Result<()> {
        if let Some(reason) = self.0.pool.read_only() {
            return Err(refuses_writes(reason));
        }
        let folded = self.0.keeper.fold(WhenBusy::Wait).await;
        let pool = Arc::clone(&self.0.pool);
        blocking(move || pool.empty_log()).await?.and(folded)
    }

    async fn places(&self) -> Result<Vec<StorePlace>> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.places()).await
    }
}
