//! The backend: each call runs on a thread for blocking work, on a connection of its own.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope,
    backend::{
        Candidates, Capabilities, EventCount, MessageCount, MessageVectors, SequenceRange, SessionChange,
        SessionQuery, SessionRows, StorageBackend, StorePlace, StoredSession, TextCandidate, TextQuery,
        VectorCandidate, VectorQuery, Version, meta::EMBEDDING_SPACE,
    },
    model::{
        ContentType, ContentTypes, Digest, EmbeddingSpace, Event, Message, MessageState, Payload, Place,
        Session, SessionId, SessionKey, UserId, VectorRecord,
    },
    search::{EventFilter, EventSearchOptions, SearchFilter},
};
use amplifier_session_index::{SearchIndex, WhenBusy};
use async_trait::async_trait;
use rusqlite::Connection;

use crate::{
    counts, event_search, events, folding::Folding, messages, pool::Pool, rows::SqliteRows, search, sessions,
    vectors, write,
};

/// A search that had to look at more rows than this leaves the index to be brought up behind it. They are more than
/// wait while a sync keeps folding: its work is not for the searches beside it to do.
const LONG_TAIL_ROWS: u64 = 8_000;

/// Sessions in one SQLite file. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct SqliteBackend(Arc<Inner>);

struct Inner {
    pool: Pool,
    index: SearchIndex,
    folding: Arc<Folding>,
}

impl SqliteBackend {
    /// Opens the store in the file `path`, which is created when it is missing, for its owner alone. The search index
    /// lies beside it, in the folder `<path>.index`.
    ///
    /// # Errors
    ///
    /// `StorageConnection` when the file can't be opened, or is no store of this library in a version that it knows:
    /// such a file is left untouched.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        blocking(move || Self::open_now(path)).await
    }

    fn open_now(path: PathBuf) -> Result<Self> {
        let pool = Pool::open(&path)?;
        let mut index_dir = path.clone().into_os_string();
        index_dir.push(".index");
        let index = SearchIndex::open(index_dir);
        Ok(Self(Arc::new(Inner { pool, index, folding: Arc::default() })))
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.pool.path()
    }

    /// The search index beside it.
    #[must_use]
    pub fn index(&self) -> &SearchIndex {
        &self.0.index
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.pool.read(read)).await
    }

    async fn write_with<T: Send + 'static>(
        &self,
        write: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.pool.write(write)).await
    }

    async fn candidates<T: Send + 'static>(
        &self,
        find: impl FnOnce(&Inner, &mut Connection) -> Result<(Candidates<T>, u64)> + Send + 'static,
    ) -> Result<Candidates<T>> {
        let inner = Arc::clone(&self.0);
        let (found, tail_rows) =
            blocking(move || inner.pool.read(|connection| find(&inner, connection))).await?;
        // A notice tells that the index is missing or can't be used: the next search should find it mended.
        if tail_rows > LONG_TAIL_ROWS || found.notice.is_some() {
            self.fold_behind();
        }
        Ok(found)
    }

    /// Counts what was written and brings the index up now and then, beside the caller.
    async fn wrote(&self, bytes: usize) -> Result<()> {
        if !self.0.folding.wrote(bytes as u64) {
            return Ok(());
        }
        if self.0.folding.is_under_way() {
            let folding = Arc::clone(&self.0.folding);
            blocking(move || {
                folding.wait();
                Ok(())
            })
            .await?;
        }
        self.fold_behind();
        Ok(())
    }

    fn fold_behind(&self) {
        let Some(turn) = self.0.folding.turn() else { return };
        let inner = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || {
            if let Err(error) = inner.fold(WhenBusy::Skip) {
                tracing::warn!(%error, "the search index could not be brought up to date; searches are slower");
            }
            drop(turn);
            if let Err(error) = inner.pool.checkpoint() {
                tracing::debug!(%error, "the write-ahead log is left to the next write");
            }
        });
    }
}

impl Inner {
    fn fold(&self, when_busy: WhenBusy) -> Result<()> {
        let folded = self.pool.read(|connection| {
            search::with_snapshot(connection, |snapshot| {
                self.index.fold(&mut SqliteRows(snapshot), when_busy)
            })
        })?;
        if let Some(reason) = &folded.rebuilt {
            tracing::info!(
                reason,
                messages = folded.messages,
                vectors = folded.vectors,
                "the search index was rebuilt"
            );
        }
        Ok(())
    }

    /// Removes from all files what a deleted session has left: in the index, in pages and in the write-ahead log.
    ///
    /// Takes as long as writing the whole database. While others read from the log, it stays until they are done:
    /// see [`Pool::empty_log`].
    fn erase(&self) -> Result<()> {
        let folded = self.fold(WhenBusy::Wait);
        let rewritten = self.pool.rewrite();
        self.pool.empty_log().and(rewritten).and(folded)
    }

    fn places(&self) -> Vec<StorePlace> {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        let place = |what, path: &Path, bytes| StorePlace {
            what,
            location: path.display().to_string(),
            bytes: Some(bytes),
        };
        let store = size(self.pool.path()) + size(&self.pool.log_path());
        vec![place("store", self.pool.path(), store), place("index", self.index.dir(), self.index.bytes())]
    }
}

impl fmt::Debug for SqliteBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteBackend").field("path", &self.path()).finish_non_exhaustive()
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|source| Error::new(ErrorKind::StorageIo, "a database thread failed").with_source(source))?
}

#[async_trait]
impl StorageBackend for SqliteBackend {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("sqlite")
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
        let bytes = text_bytes(&change);
        let version = self.write_with(move |connection| write::session(connection, &change)).await?;
        self.wrote(bytes).await?;
        Ok(version)
    }

    async fn write_all(&self, changes: Vec<SessionChange>) -> Vec<Result<Version>> {
        let (bytes, count) = (changes.iter().map(text_bytes).sum(), changes.len());
        let written = self.write_with(move |connection| Ok(write::sessions(connection, &changes))).await;
        match self.wrote(bytes).await.and(written) {
            Ok(versions) => versions,
            Err(error) => vec![Err(error); count],
        }
    }

    async fn delete_session(&self, key: &SessionKey) -> Result<bool> {
        let key = key.clone();
        let deleted = self.write_with(move |connection| write::delete(connection, &key)).await?;
        let inner = Arc::clone(&self.0);
        if deleted && let Err(error) = blocking(move || inner.erase()).await {
            // The session is gone; what is left of it in files goes with the next fold and the next deletion.
            tracing::warn!(%error, "what a deleted session left in the index or the log could not be cleaned up yet");
        }
        Ok(deleted)
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

    async fn messages_owing_vectors(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<Message>> {
        let (user, session, after) = (user.clone(), session.cloned(), after.cloned());
        self.read(move |connection| {
            messages::owing_vectors(connection, &user, session.as_ref(), after.as_ref(), limit)
        })
        .await
    }

    async fn write_vectors(&self, key: &SessionKey, of_messages: Vec<MessageVectors>) -> Result<usize> {
        let key = key.clone();
        let bytes: usize = of_messages
            .iter()
            .flat_map(|message| &message.records)
            .map(|record| record.vector.len() * 4)
            .sum();
        let stored = self
            .write_with(move |connection| {
                let space = embedding_space(connection)?;
                for record in of_messages.iter().flat_map(|message| &message.records) {
                    record.validate(&space)?;
                }
                write::vectors(connection, &key, &space, &of_messages)
            })
            .await?;
        self.wrote(bytes).await?;
        Ok(stored)
    }

    async fn vectors_of(&self, texts: &[(Place, ContentType)]) -> Result<Vec<(Place, VectorRecord)>> {
        let texts = texts.to_vec();
        self.read(move |connection| vectors::of(connection, &texts)).await
    }

    async fn vector_types(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<(u32, ContentTypes)>> {
        let key = key.clone();
        self.read(move |connection| vectors::types(connection, &key, range)).await
    }

    async fn session_rows(&self, key: &SessionKey) -> Result<SessionRows> {
        let key = key.clone();
        self.read(move |connection| {
            search::with_snapshot(connection, |snapshot| counts::rows_of(snapshot, &key))
        })
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
        let query = query.clone();
        self.candidates(move |inner, connection| {
            search::with_snapshot(connection, |snapshot| search::texts(snapshot, &inner.index, &query))
        })
        .await
    }

    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        let query = query.clone();
        self.candidates(move |inner, connection| {
            search::with_snapshot(connection, |snapshot| search::vectors(snapshot, &inner.index, &query))
        })
        .await
    }

    /// Also removes what deleted, changed and rewound rows have left in the index and in the write-ahead log.
    async fn update_index(&self) -> Result<()> {
        let inner = Arc::clone(&self.0);
        blocking(move || {
            let folded = inner.fold(WhenBusy::Wait);
            inner.pool.empty_log().and(folded)
        })
        .await
    }

    async fn places(&self) -> Result<Vec<StorePlace>> {
        let inner = Arc::clone(&self.0);
        blocking(move || Ok(inner.places())).await
    }
}

/// How much text a change brings for the index.
fn text_bytes(change: &SessionChange) -> usize {
    change.messages.put.iter().map(|message| message.raw.as_bytes().len()).sum()
}

/// The space that was claimed before any vector was written.
fn embedding_space(connection: &Connection) -> Result<EmbeddingSpace> {
    let meta = sessions::meta(connection)?;
    let space = meta.get(EMBEDDING_SPACE).and_then(|value| serde_json::from_str(value).ok());
    space.ok_or_else(|| Error::validation("vector", "the store has no embedding space yet"))
}
