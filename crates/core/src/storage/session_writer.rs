//! Writes the rows of one session.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::{Map, Value};

use crate::{
    Result,
    backend::{
        MessageVectors, RowChange, SessionChange, SkippedLine, StorageBackend, StorageBackendExt,
        StoredSession, StoredSyncState, Version,
    },
    content::{ExtractedText, TitleFinder},
    model::{
        Event, Message, MessageRef, MetadataFile, Session, SessionKey, StoredEvent, SupersededPiece,
        VectorState,
    },
};

/// The size of the lines and vectors of one write. Memory does not grow with the length of a session.
pub(super) const PART_BYTES: usize = 16 * 1024 * 1024;

/// An estimate of the size of an event's fields.
const EVENT_FIELDS: usize = 512;

/// Writes the rows of one session, in parts if they are large.
///
/// Every write names the version of the one before it, so that rows of two writers never mix: the second one fails with
/// a conflict. Until [`SessionWriter::finish`], the session has a sync state that no sync recognises, so that its files
/// are read again if the process is killed.
///
/// Rows are added in order of their sequences. Then, [`SessionWriter::flush_when_full`] limits the memory.
#[derive(Debug, Clone)]
pub struct SessionWriter {
    backend: Arc<dyn StorageBackend>,
    /// The next write.
    change: SessionChange,
    /// The session as of the last write.
    stored: Option<Session>,
    /// The sync state of an incomplete session; `None` if the stored rows of a complete one are changed.
    unfinished: Option<String>,
    /// Whether the stored session has a sync state that is no longer true.
    has_state: bool,
    vectors: Vec<MessageVectors>,
    /// The generation of the vectors. Without one, they are left out.
    generation: Option<u32>,
    bytes: usize,
    part_bytes: usize,
    frees_event_ids: bool,
    title: TitleFinder,
    turns: HashSet<u32>,
    written: WrittenRows,
}

/// The number of rows that a [`SessionWriter`] has written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenRows {
    /// The number of messages.
    pub messages: u64,
    /// The number of events.
    pub events: u64,
    /// The number of superseded lines.
    pub superseded: u64,
    /// The number of vectors.
    pub vectors: u64,
    /// The number of vectors that were left out.
    pub vectors_left_out: u64,
}

impl SessionWriter {
    /// Writes a session in place of the stored one, `replaced`, or as a new one. Its counts come from the rows.
    #[must_use]
    pub fn new(
        backend: Arc<dyn StorageBackend>,
        session: Session,
        replaced: Option<&StoredSession>,
        unfinished: impl Into<String>,
    ) -> Self {
        let expected = replaced.map(|stored| stored.version.clone());
        let has_state = replaced.is_some_and(|stored| stored.sync_state.is_some());
        let writer = Self::with_change(backend, SessionChange::new(session, expected));
        Self { unfinished: Some(unfinished.into()), has_state, ..writer }.after(0, 0)
    }

    /// Changes rows of a stored session. Its other rows and its sync state stay.
    #[must_use]
    pub fn of_stored(backend: Arc<dyn StorageBackend>, stored: &StoredSession) -> Self {
        let change = SessionChange::new(stored.session.clone(), Some(stored.version.clone()));
        Self { stored: Some(stored.session.clone()), ..Self::with_change(backend, change) }
    }

    fn with_change(backend: Arc<dyn StorageBackend>, change: SessionChange) -> Self {
        Self {
            backend,
            change,
            stored: None,
            unfinished: None,
            has_state: false,
            vectors: Vec::new(),
            generation: None,
            bytes: 0,
            part_bytes: PART_BYTES,
            frees_event_ids: false,
            title: TitleFinder::default(),
            turns: HashSet::new(),
            written: WrittenRows::default(),
        }
    }

    /// Keeps the first stored rows of the session. Removes all others, also those that an interrupted write left after
    /// the counted ones.
    #[must_use]
    pub fn after(mut self, messages: u32, events: u32) -> Self {
        (self.change.session.message_count, self.change.session.event_count) = (messages, events);
        (self.change.messages.truncate, self.change.events.truncate) = (Some(messages), Some(events));
        self
    }

    /// Sets the metadata files and the skipped lines.
    #[must_use]
    pub fn with_files(mut self, files: Vec<MetadataFile>, skipped: Vec<SkippedLine>) -> Self {
        (self.change.metadata_files, self.change.skipped) = (Some(files), Some(skipped));
        self
    }

    setters! {
        /// Sets the generation of the vectors. Default: vectors are left out.
        with_generation(generation: Option<u32>);
        /// Sets whether events get derived ids if other events have theirs. Default: no; the write fails.
        with_frees_event_ids(frees_event_ids: bool);
        /// Sets the size of the lines and vectors of one write. Default: 16 MB.
        with_part_bytes(part_bytes: usize);
    }

    /// The session as it will be after the next write.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.change.session
    }

    /// The fields of the session, except for those that come from rows.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.change.session
    }

    /// Replaces the metadata files.
    pub fn set_files(&mut self, files: Vec<MetadataFile>) {
        self.change.metadata_files = Some(files);
    }

    /// Whether vectors are pending, and their generation is not known.
    #[must_use]
    pub fn lacks_generation(&self) -> bool {
        self.generation.is_none() && !self.vectors.is_empty()
    }

    /// Sets the generation of the vectors.
    pub fn set_generation(&mut self, generation: u32) {
        self.generation = Some(generation);
    }

    /// The title of the session according to the lines of its messages.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.found()
    }

    /// The number of turns of its messages.
    #[must_use]
    pub fn turns(&self) -> u32 {
        self.turns.len() as u32
    }

    /// The number of pending bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The size of the rows at which [`SessionWriter::flush_when_full`] writes.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes >= self.part_bytes
    }

    /// Adds a message that has these texts in its `line`: derives the state of its vectors, and the title and turns of
    /// the session.
    pub fn line(&mut self, mut message: Message, line: &Map<String, Value>, texts: &[ExtractedText]) {
        message.vectors = VectorState::before_embedding(texts.iter().map(|text| text.content_type));
        self.title.observe(line);
        self.turns.extend(message.turn);
        self.message(message);
    }

    /// Adds a message as it is. Its vectors are pending if it has anything to embed.
    pub fn message(&mut self, mut message: Message) {
        message.vectors = message.vectors.without_vectors();
        self.bytes += message.raw.as_bytes().len();
        let count = &mut self.change.session.message_count;
        *count = (*count).max(message.sequence.saturating_add(1));
        self.change.messages.put.push(message);
    }

    /// Adds the vectors of a message that was added before.
    pub fn vectors(&mut self, vectors: MessageVectors) {
        self.bytes += vectors.vector_bytes();
        self.vectors.push(vectors);
    }

    /// Adds an event.
    pub fn event(&mut self, stored: StoredEvent) {
        self.bytes += event_bytes(&stored);
        let count = &mut self.change.session.event_count;
        *count = (*count).max(stored.event.sequence.saturating_add(1));
        self.change.events.put.push(stored);
    }

    /// Adds superseded lines.
    pub fn superseded(&mut self, pieces: Vec<SupersededPiece>) {
        self.bytes += pieces.iter().map(|piece| piece.data.len()).sum::<usize>();
        self.change.superseded.extend(pieces);
    }

    /// Writes the pending rows if they are large.
    ///
    /// # Errors
    ///
    /// `Conflict` (retryable) if another process wrote the session in the meantime; errors of the backend.
    pub async fn flush_when_full(&mut self) -> Result<()> {
        if self.is_full() { self.flush().await } else { Ok(()) }
    }

    /// Writes the pending rows, if there are any.
    ///
    /// # Errors
    ///
    /// As [`SessionWriter::flush_when_full`].
    pub async fn flush(&mut self) -> Result<()> {
        self.change.sync_state = self.unfinished.clone().map(StoredSyncState::of);
        self.has_state |= self.unfinished.is_some();
        self.write().await
    }

    /// Writes the rest of the session, and the sync state of a complete one. Returns what was written.
    ///
    /// # Errors
    ///
    /// As [`SessionWriter::flush_when_full`].
    pub async fn finish(mut self, sync_state: Option<StoredSyncState>) -> Result<Finished> {
        // A stored state can't be removed. An empty one means that no files were read.
        self.change.sync_state = sync_state.or_else(|| self.has_state.then(StoredSyncState::default));
        self.write().await?;
        Ok(Finished { version: self.change.expected, rows: self.written })
    }

    async fn write(&mut self) -> Result<()> {
        let next = SessionChange::new(self.change.session.clone(), self.change.expected.clone());
        if self.stored.is_some() && self.change == next && self.stored.as_ref() == Some(&next.session) {
            return Ok(());
        }
        let mut change = std::mem::replace(&mut self.change, next);
        if self.frees_event_ids {
            free_event_ids(&*self.backend, &change.session.key(), &mut change.events).await?;
        }
        self.written.count(&change);
        self.bytes = 0;
        self.backend.give_way().await;
        let mut version = Some(self.backend.write_one(change).await?);
        if self.write_vectors().await? {
            // The session may have another version now.
            let stored = self.backend.get_session(&self.session().key()).await?;
            version = stored.map(|stored| stored.version);
        }
        self.change.expected = version;
        self.stored = Some(self.change.session.clone());
        Ok(())
    }

    /// Writes the pending vectors. Returns whether there are any.
    async fn write_vectors(&mut self) -> Result<bool> {
        let vectors = std::mem::take(&mut self.vectors);
        if vectors.is_empty() {
            return Ok(false);
        }
        let Some(generation) = self.generation else {
            self.written.vectors_left_out +=
                vectors.iter().map(|vectors| vectors.records.len() as u64).sum::<u64>();
            return Ok(false);
        };
        let key = self.session().key();
        self.written.vectors += self.backend.write_vectors(&key, generation, vectors).await? as u64;
        Ok(true)
    }
}

/// A session that was written completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its version; `None` if another process has deleted it.
    pub version: Option<Version>,
    /// The rows that were written.
    pub rows: WrittenRows,
}

impl WrittenRows {
    fn count(&mut self, change: &SessionChange) {
        self.messages += change.messages.put.len() as u64;
        self.events += change.events.put.len() as u64;
        self.superseded += change.superseded.iter().map(|piece| u64::from(piece.lines)).sum::<u64>();
    }
}

/// The size of a pending event.
pub(super) fn event_bytes(stored: &StoredEvent) -> usize {
    EVENT_FIELDS + stored.payload.bytes()
}

/// Gives an event its derived id if another event of the user has the id that its line states.
pub(super) async fn free_event_ids(
    backend: &dyn StorageBackend,
    key: &SessionKey,
    events: &mut RowChange<StoredEvent>,
) -> Result<()> {
    let derived = |sequence: u32| Event::derived_id(&key.session_id, sequence);
    let mut given: HashMap<String, u32> = HashMap::new();
    for StoredEvent { event, .. } in &mut events.put {
        if !event.has_derived_id()
            && *given.entry(event.event_id.clone()).or_insert(event.sequence) != event.sequence
        {
            event.event_id = derived(event.sequence);
        }
    }
    if given.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = given.into_keys().collect();
    let taken: HashMap<String, MessageRef> =
        backend.find_events(&key.user_id, &ids).await?.into_iter().collect();
    let put: HashSet<u32> = events.put.iter().map(|stored| stored.event.sequence).collect();
    let goes =
        |sequence: u32| put.contains(&sequence) || events.truncate.is_some_and(|start| sequence >= start);
    let is_taken =
        |id: &str| taken.get(id).is_some_and(|event| event.session != *key || !goes(event.sequence));
    for StoredEvent { event, .. } in &mut events.put {
        if is_taken(&event.event_id) {
            event.event_id = derived(event.sequence);
        }
    }
    Ok(())
}
