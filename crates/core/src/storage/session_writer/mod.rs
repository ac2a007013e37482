//! Writes the rows of one session.

mod event_ids;
mod writes;

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value};

use super::turn_texts::stated_by;
use crate::{
    backend::{
        MessageVectors, SessionChange, SkippedLine, StorageBackend, StoredSession, StoredSyncState, TurnLine,
        Version,
    },
    content::{ExtractedText, TitleFinder},
    model::{
        Message, MetadataFile, Retimed, Session, StoredEvent, SupersededPiece, TurnSummary, VectorState,
    },
};

/// The size of the lines and vectors of one write. Memory does not grow with the length of a session.
const PART_BYTES: usize = 16 * 1024 * 1024;

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
    /// The next write, without its version and new times.
    pub(super) change: SessionChange,
    /// New times of stored messages, and the sizes of their lines.
    retimed: Vec<(Retimed, usize)>,
    /// The session as of the last write; `None` if it is not stored.
    pub(super) stored: Option<StoredSession>,
    /// The sync state of an incomplete session; `None` if it does not change before the end.
    pub(super) unfinished: Option<StoredSyncState>,
    vectors: Vec<MessageVectors>,
    /// The generation of the vectors. Without one, they are left out.
    generation: Option<u32>,
    /// The summaries of turns that the pending lines state.
    stated: Vec<TurnSummary>,
    bytes: usize,
    /// The size of the rows at which a part is written.
    pub(super) part_bytes: usize,
    frees_event_ids: bool,
    /// The title and turns according to all lines so far. Lines that are stored already must be added.
    pub(super) derived: TitleAndTurns,
    /// The messages that were added.
    lines: Vec<TurnLine>,
    /// The messages whose vectors include that of the turn that they begin.
    embedded_turns: Vec<MessageVectors>,
    written: WrittenRows,
}

/// The fields of a session that come from the lines of its messages.
#[derive(Debug, Clone, Default)]
pub(super) struct TitleAndTurns {
    pub(super) title: TitleFinder,
    pub(super) turns: BTreeSet<u32>,
}

impl TitleAndTurns {
    /// Processes the line of a message, in order.
    pub(super) fn observe(&mut self, line: &Map<String, Value>, turn: Option<u32>) {
        self.title.observe(line);
        self.turns.extend(turn);
    }
}

/// The number of rows that a [`SessionWriter`] has written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenRows {
    /// The number of messages.
    pub messages: u64,
    /// The number of events.
    pub events: u64,
    /// The number of stored messages after the last row that were removed.
    pub messages_removed: u64,
    /// The number of stored events after the last row that were removed.
    pub events_removed: u64,
    /// The number of superseded lines.
    pub superseded: u64,
    /// The number of vectors of texts.
    pub vectors: u64,
    /// The number of vectors of turns.
    pub turns: u64,
    /// The number of vectors of texts that were left out.
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
        let writer = Self::keeping_rows(backend, session, replaced.cloned());
        Self { unfinished: Some(StoredSyncState::of(unfinished)), ..writer }.after(0, 0)
    }

    /// Changes rows of a stored session. Its other rows and its sync state stay.
    #[must_use]
    pub fn of_stored(backend: Arc<dyn StorageBackend>, stored: &StoredSession) -> Self {
        Self::keeping_rows(backend, stored.session.clone(), Some(stored.clone()))
    }

    /// Changes rows of a session that may be stored.
    pub(super) fn keeping_rows(
        backend: Arc<dyn StorageBackend>,
        session: Session,
        stored: Option<StoredSession>,
    ) -> Self {
        Self {
            backend,
            change: SessionChange::new(session, None),
            retimed: Vec::new(),
            stored,
            unfinished: None,
            vectors: Vec::new(),
            generation: None,
            stated: Vec::new(),
            bytes: 0,
            part_bytes: PART_BYTES,
            frees_event_ids: false,
            derived: TitleAndTurns::default(),
            lines: Vec::new(),
            embedded_turns: Vec::new(),
            written: WrittenRows::default(),
        }
    }

    /// Keeps the first stored rows of the session. Removes all others, also those that an interrupted write left after
    /// the counted ones.
    #[must_use]
    pub fn after(mut self, messages: u32, events: u32) -> Self {
        self.truncate_messages(messages);
        self.truncate_events(events);
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

    /// Whether the metadata files differ from the stored ones.
    pub(super) fn has_other_files(&self) -> bool {
        let stored = self.stored.as_ref().map(|stored| &stored.metadata_files);
        self.change.metadata_files.as_ref().is_some_and(|files| Some(files) != stored)
    }

    /// Replaces the skipped lines.
    pub(super) fn set_skipped(&mut self, skipped: Vec<SkippedLine>) {
        self.change.skipped = Some(skipped);
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
        self.derived.title.found()
    }

    /// The number of turns of its messages.
    #[must_use]
    pub fn turns(&self) -> u32 {
        self.derived.turns.len() as u32
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

    /// Adds a message that has these texts in its `line`: derives the state of its vectors, the title and turns of the
    /// session, and the summary of its turn if the line states one.
    pub fn line(&mut self, mut message: Message, line: &Map<String, Value>, texts: &[ExtractedText]) {
        message.vectors = VectorState::before_embedding(texts.iter().map(|text| text.content_type));
        self.derived.observe(line, message.turn);
        self.stated.extend(stated_by(&message, line));
        self.message(message);
    }

    /// Adds a message as it is. Its vectors are pending if it has anything to embed.
    pub fn message(&mut self, mut message: Message) {
        message.vectors = message.vectors.without_vectors();
        self.bytes += message.raw.as_bytes().len();
        let count = &mut self.change.session.message_count;
        *count = (*count).max(message.sequence.saturating_add(1));
        let Message { sequence, turn, role, digest, .. } = message;
        self.lines.push(TurnLine { sequence, turn, role, digest });
        self.change.messages.put.push(message);
    }

    /// Changes the time of a message, which is pending, or stored and has a line of about this size. Returns whether it
    /// is stored.
    pub(super) fn retime(&mut self, retimed: Retimed, line_bytes: usize) -> bool {
        let put = &mut self.change.messages.put;
        let found = put.binary_search_by_key(&retimed.sequence, |message| message.sequence).ok();
        let pending = found.and_then(|at| put.get_mut(at));
        let is_stored = pending.is_none();
        match pending {
            Some(message) => (message.ts, message.ts_source) = (retimed.ts, retimed.ts_source),
            None => self.retimed.push((retimed, line_bytes)),
        }
        is_stored
    }

    /// Removes the stored messages from this sequence on, whether or not the session counts them.
    pub(super) fn truncate_messages(&mut self, count: u32) {
        (self.change.session.message_count, self.change.messages.truncate) = (count, Some(count));
    }

    /// Removes the stored events from this sequence on, whether or not the session counts them.
    pub(super) fn truncate_events(&mut self, count: u32) {
        (self.change.session.event_count, self.change.events.truncate) = (count, Some(count));
    }

    /// Adds the vectors of a message that was added before. If [`MessageVectors::turn`] is set, the vector of its turn
    /// is right; the digest itself comes from the lines that are added.
    pub fn vectors(&mut self, vectors: MessageVectors) {
        self.bytes += vectors.vector_bytes();
        if vectors.turn.is_some() {
            self.embedded_turns.push(MessageVectors { records: None, failure: None, ..vectors.clone() });
        }
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
        self.bytes += superseded_bytes(&pieces);
        self.change.superseded.extend(pieces);
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
    /// Counts the rows that a change of a stored session writes and removes.
    fn count(&mut self, change: &SessionChange, stored: Option<&Session>) {
        let removed = |stored: Option<u32>, truncate: Option<u32>| {
            stored.zip(truncate).map_or(0, |(stored, to)| u64::from(stored.saturating_sub(to)))
        };
        let messages = stored.map(|stored| stored.message_count);
        self.messages_removed += removed(messages, change.messages.truncate);
        self.events_removed += removed(stored.map(|stored| stored.event_count), change.events.truncate);
        self.messages += change.messages.put.len() as u64;
        self.events += change.events.put.len() as u64;
        self.superseded += change.superseded.iter().map(|piece| u64::from(piece.lines)).sum::<u64>();
    }
}

pub(super) fn superseded_bytes(pieces: &[SupersededPiece]) -> usize {
    pieces.iter().map(|piece| piece.data.len()).sum()
}

/// The size of a pending event.
fn event_bytes(stored: &StoredEvent) -> usize {
    EVENT_FIELDS + stored.payload.bytes()
}
