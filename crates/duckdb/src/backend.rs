//! The backend: each call runs on a thread for blocking work, on a connection of its own.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope,
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
use amplifier_session_sql::file;
use async_trait::async_trait;
use duckdb::Connection;

use crate::{
    HnswOptions, SqlAnswer, SqlQuery, connect, counts, event_search, events, generations,
    hnsw::{Hnsw, Nearest},
    messages, open_files,
    pool::{Pool, Writer, with_snapshot},
    rows::DuckDbSnapshots,
    sessions, sql, vectors, write,
};

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// To read and to write, which one process at a time can do.
    #[default]
    ReadWrite,
    /// To read, which several processes can do while none writes. What would write fails with `Unsupported`.
    ReadOnly,
}

/// Sessions in one DuckDB file. Cheap to clone; all that a process opens of a file share one database.
#[derive(Clone)]
pub struct DuckDbBackend {
    inner: Arc<Inner>,
    access: Access,
    /// Why the file can't be written, if that is so.
    protected: Option<String>,
}

pub(crate) struct Inner {
    /// Dropped first: nobody else opens its file while the store's is open.
    hnsw: Hnsw,
    keeper: Keeper<DuckDbSnapshots>,
    pool: Arc<Pool>,
}

impl DuckDbBackend {
    /// Opens the store in the file `path`, which is created when it is missing and may be written, for its owner alone. The
    /// search index lies beside it, in the folder `<path>.index`. A file that can't be written, or in whose folder nothing can be
    /// created, is opened to read it, whatever `access` says: see [`StorageBackend::read_only`].
    ///
    /// # Errors
    ///
    /// `StorageConnection` when the file can't be opened, is in use by another process, or is no store of this library
    /// in a version that it knows: such a file is left untouched. A process that has it open for reading only can't open
    /// it for writing beside.
    pub async fn open(path: impl AsRef<Path>, access: Access) -> Result<Self> {
        let path = path.as_ref().to_owned();
        blocking(move || Self::open_now(&path, access)).await?
    }

    fn open_now(path: &Path, access: Access) -> Result<Self> {
        let protected = file::read_only(path);
        let access = if protected.is_some() { Access::ReadOnly } else { access };
        let inner = open_files::shared(path, |file| {
            let pool = Arc::new(Pool::open(path, access, file)?);
            let index = SearchIndex::open(connect::beside(path, ".index"));
            let keeper = Keeper::new(index, DuckDbSnapshots(Arc::clone(&pool)));
            Ok(Inner { hnsw: Hnsw::new(pool.path(), access), keeper, pool })
        })?;
        if (access, inner.pool.access()) == (Access::ReadWrite, Access::ReadOnly) {
            let message = "this process has the database open for reading only";
            return Err(Error::new(ErrorKind::StorageConnection, message).with("file", path.display()));
        }
        Ok(Self { inner, access, protected })
    }

    /// Has an HNSW index too, which DuckDB's extension VSS makes in the file `<path>.hnsw`, for whatever opens this file in
    /// this process. Searches that leave nothing out use it, when it is up to date, which [`Self::update_index`] brings it.
    /// Without the extension everything goes as without the index, and such searches say so.
    #[must_use]
    pub fn with_hnsw(self, options: HnswOptions) -> Self {
        self.inner.hnsw.ask_for(options);
        self
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.inner.pool.path()
    }

    /// Asks a question in SQL; the views of [`READY_VIEWS`](crate::READY_VIEWS) are there for it. Columns that hold vectors
    /// are not.
    ///
    /// # Errors
    ///
    /// `Unsupported` when the store was not opened for reading only; `Validation` (`scope`) when it holds sessions of others
    /// and `scope` is not [`Scope::Everyone`], because SQL sees the whole store; `Validation` (`query`) when the query is
    /// not one statement that reads, or DuckDB does not understand it.
    pub async fn sql(&self, scope: &Scope, query: &SqlQuery) -> Result<SqlAnswer> {
        self.check_sql()?;
        let (inner, scope, query) = (Arc::clone(&self.inner), scope.clone(), query.clone());
        let (asking, awaiting) = sql::asking();
        // Goes on while the rows are read.
        tokio::task::spawn_blocking(move || {
            let asked = inner.pool.read_apart(|connection| {
                sql::answer(connection, &scope, &query, &asking);
                Ok(())
            });
            asked.unwrap_or_else(|error| asking.fail(error));
            // Who has seen the end of the answer may count on the store to be let go.
            drop(inner);
            drop(asking);
        });
        awaiting.answer().await
    }

    /// Writes the answer to a question in SQL to `file`, as Parquet, for its owner alone; returns how many rows there are. The
    /// types of columns are kept, but for vectors: see [`Self::sql`].
    ///
    /// # Errors
    ///
    /// As [`Self::sql`]; `StorageIo` when the file can't be written.
    pub async fn sql_to_parquet(&self, scope: &Scope, query: &SqlQuery, file: &Path) -> Result<u64> {
        self.check_sql()?;
        let (scope, query, file) = (scope.clone(), query.clone(), file.to_owned());
        let inner = Arc::clone(&self.inner);
        let write = move || {
            inner.pool.read_apart(|connection| {
                sql::write_parquet(connection, &scope, &query, inner.pool.path(), &file)
            })
        };
        blocking(write).await?
    }

    fn check_sql(&self) -> Result<()> {
        if self.inner.pool.access() == Access::ReadOnly {
            return Ok(());
        }
        // A database that may be written reaches other files too.
        let message = "questions in SQL are asked of a store that was opened for reading only";
        Err(Error::new(ErrorKind::Unsupported, message)
            .with_operation("sql")
            .with("file", self.path().display()))
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.inner);
        blocking(move || inner.pool.read(read)).await?
    }

    async fn write_with<T: Send + 'static>(
        &self,
        write: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if let Some(reason) = &self.protected {
            return Err(file::refuses_writes(reason));
        }
        if self.access == Access::ReadOnly {
            return Err(read_only(self.path()));
        }
        let inner = Arc::clone(&self.inner);
        blocking(move || inner.pool.write(write)).await?
    }

    /// Removes from all files what a deleted session has left, in the index and in the database.
    ///
    /// Takes as long as writing the whole database.
    async fn erase(&self) -> Result<()> {
        let folded = self.inner.keeper.fold(WhenBusy::Wait).await;
        let inner = Arc::clone(&self.inner);
        blocking(move || inner.pool.rewrite().and(inner.hnsw.remove())).await?.and(folded)
    }
}

fn read_only(path: &Path) -> Error {
    Error::new(ErrorKind::Unsupported, "the store was opened for reading only").with("file", path.display())
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
        let mut places =
            vec![place("store", self.pool.path(), store), place("index", index.dir(), index.bytes())];
        places.extend(self.hnsw.file().map(|file| place("index", &file, size(&file))));
        places
    }
}

impl fmt::Debug for DuckDbBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DuckDbBackend").field("path", &self.path()).finish_non_exhaustive()
    }
}

#[async_trait]
impl StorageBackend for DuckDbBackend {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("duckdb")
    }

    fn come_first(&self) {
        self.inner.keeper.index().come_first();
    }

    async fn give_way(&self) {
        // Work that does not give way is work all the same.
        let _ = self.inner.keeper.give_way().await;
    }

    fn begin_sync(&self) -> Option<SyncTurn> {
        self.inner.keeper.index().begin_sync().map(SyncTurn::new)
    }

    fn read_only(&self) -> Option<String> {
        self.protected.clone()
    }

    async fn meta(&self) -> Result<BTreeMap<String, String>> {
        self.read(|connection| sessions::meta(connection)).await
    }

    async fn put_meta_if_absent(&self, key: &str, value: &str) -> Result<String> {
        let (key, value) = (key.to_owned(), value.to_owned());
        self.write_with(move |writer| sessions::put_meta_if_absent(&writer.connection, &key, &value)).await
    }

    async fn replace_meta(&self, key: &str, expected: &str, value: &str) -> Result<bool> {
        let [key, expected, value] = [key, expected, value].map(str::to_owned);
        self.write_with(move |writer| sessions::replace_meta(&writer.connection, &key, &expected, &value))
            .await
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
        let version = self.write_with(move |writer| write::session(writer, &change)).await?;
        self.inner.keeper.wrote(bytes).await?;
        Ok(version)
    }

    async fn write_all(&self, changes: Vec<SessionChange>) -> Vec<Result<Version>> {
        let (bytes, count) = (changes.iter().map(SessionChange::message_bytes).sum(), changes.len());
        let written = self.write_with(move |writer| Ok(write::sessions(writer, &changes))).await;
        match self.inner.keeper.wrote(bytes).await.and(written) {
            Ok(versions) => versions,
            Err(error) => vec![Err(error); count],
        }
    }

    async fn delete_session(&self, key: &SessionKey) -> Result<bool> {
        let key = key.clone();
        let deleted = self.write_with(move |writer| write::delete(writer, &key)).await?;
        if deleted && let Err(error) = self.erase().await {
            // The session is gone; what is left of it in files goes with the next fold and the next deletion.
            tracing::warn!(%error, "what a deleted session left in the index or the database could not be cleaned up yet");
        }
        Ok(deleted)
    }

    async fn deleted_sessions(&self, user: &UserId) -> Result<Vec<SessionId>> {
        let user = user.clone();
        self.read(move |connection| sessions::deleted(connection, &user)).await
    }

    async fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64> {
        let (from, to) = (from.clone(), to.clone());
        self.write_with(move |writer| write::rename_user(writer, &from, &to)).await
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
        let stored =
            self.write_with(move |writer| write::vectors(writer, &key, generation, &of_messages)).await?;
        self.inner.keeper.wrote(bytes).await?;
        Ok(stored)
    }

    async fn owe_vectors(&self, key: &SessionKey, which: OweAgain) -> Result<u64> {
        let key = key.clone();
        self.write_with(move |writer| write::owe_vectors(writer, &key, &which)).await
    }

    async fn complete_generation(&self, generation: u32) -> Result<bool> {
        self.write_with(move |writer| generations::complete(writer, generation)).await
    }

    async fn prune_vectors(&self, limit: usize) -> Result<usize> {
        self.write_with(move |writer| generations::prune(writer, limit)).await
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
        self.inner.keeper.text_candidates(query).await
    }

    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        let (inner, asked) = (Arc::clone(&self.inner), query.clone());
        let reason = match blocking(move || inner.hnsw.nearest(&inner.pool, &asked)).await?? {
            Nearest::Found(items) => return Ok(Candidates { items, notice: None }),
            Nearest::NotAsked => None,
            Nearest::Unavailable(reason) => Some(format!("the HNSW index was not used: {reason}")),
        };
        let mut found = self.inner.keeper.vector_candidates(query).await?;
        let notices: Vec<String> = found.notice.into_iter().chain(reason).collect();
        found.notice = (!notices.is_empty()).then(|| notices.join("; "));
        Ok(found)
    }

    /// Also works off the write-ahead log, and brings up the HNSW index where there is one.
    async fn update_index(&self) -> Result<()> {
        if let Some(reason) = &self.protected {
            return Err(file::refuses_writes(reason));
        }
        let folded = self.inner.keeper.fold(WhenBusy::Wait).await;
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            inner.pool.checkpoint();
            inner.hnsw.update(&inner.pool);
        })
        .await?;
        folded
    }

    async fn places(&self) -> Result<Vec<StorePlace>> {
        let inner = Arc::clone(&self.inner);
        blocking(move || inner.places()).await
    }
}
