//! Taking in one session: lines come one by one, what is unchanged is left alone, the rest is written.

mod kept;
mod rows;
mod times;

use std::collections::{BTreeMap, HashMap, HashSet};

use self::{
    rows::{EventRows, MessageRows},
    times::Times,
};
use super::{EventDetail, SessionStorage};
use crate::{
    Error, ErrorKind, Result,
    backend::{RowChange, SequenceRange, SessionChange, SkippedLine, StorageBackendExt, StoredSession},
    metadata::Metadata,
    model::{
        ContentType, Digest, HostId, MetadataFile, Place, ProjectSlug, RawJson, Session, SessionKey,
        StoredEvent, Timestamp,
    },
};

/// A write is made when this much raw text is waiting: what is smaller is one transaction, and memory does not grow
/// with the size of a file.
const FLUSH_BYTES: usize = 16 * 1024 * 1024;

/// The session that lines are taken in for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestTarget {
    /// Owner and id.
    pub key: SessionKey,
    /// The machine it comes from.
    pub host_id: HostId,
    /// Its project.
    pub project_slug: ProjectSlug,
}

/// How far a sequence of lines goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// To the end: what is stored beyond the last line is removed.
    Whole,
    /// Not further than the last line: what is stored beyond it stays.
    Part,
}

/// What became of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineOutcome {
    /// It is taken, or was there already.
    Taken,
    /// It is taken, or was there already, but something that it says can't be read.
    Doubtful {
        /// What can't be read.
        reason: String,
    },
    /// It breaks a rule and was left out; it has no sequence.
    Skipped {
        /// `Validation`, or `EventTooLarge`.
        kind: ErrorKind,
        /// What is wrong with it.
        reason: String,
    },
}

/// What a sync of one session did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IngestReport {
    /// Whether the session was new.
    pub created: bool,
    /// Messages that were written: new or changed.
    pub messages_written: u64,
    /// The messages that were written, by the texts they hold; a message may hold several or none.
    pub messages_by_content_type: BTreeMap<ContentType, u64>,
    /// Messages that were removed.
    pub messages_removed: u64,
    /// Messages that were there already and got another time.
    pub messages_retimed: u64,
    /// Events that were written: new or changed.
    pub events_written: u64,
    /// Events that were removed.
    pub events_removed: u64,
}

/// Takes in one session. Nothing is stored for certain before [`SessionIngest::commit`].
///
/// Lines are compared with what is stored, by digest and turn; only messages and events that differ are written.
/// Small sessions are written in one transaction; large ones in several, of 16 MB each, unless
/// [`SessionIngest::all_at_once`] is chosen.
#[derive(Debug)]
pub struct SessionIngest {
    storage: SessionStorage,
    target: IngestTarget,
    stored: Option<StoredSession>,
    session: Option<Session>,
    metadata: Option<(Vec<MetadataFile>, Metadata)>,
    skipped: Option<Vec<SkippedLine>>,
    sync_state: Option<String>,
    messages: MessageRows,
    events: EventRows,
    times: Times,
    report: IngestReport,
    flush_bytes: usize,
}

impl SessionStorage {
    /// Begins to take in a session.
    ///
    /// # Errors
    ///
    /// `Validation` for a new session without a UUID where the settings ask for one; those of the backend.
    pub async fn ingest(&self, target: IngestTarget) -> Result<SessionIngest> {
        self.renew().await?;
        let stored = self.backend.get_session(&target.key).await?;
        if self.settings.uuid_session_ids && stored.is_none() && !target.key.session_id.is_uuid() {
            let id = &target.key.session_id;
            return Err(Error::validation("session_id", "must be a UUID in this store").with("session", id));
        }
        let session = stored.as_ref().map(|stored| stored.session.clone());
        let count = |of: fn(&Session) -> u32| session.as_ref().map_or(0, of);
        Ok(SessionIngest {
            storage: self.clone(),
            messages: MessageRows::new(count(|s| s.message_count)),
            events: EventRows::new(count(|s| s.event_count)),
            target,
            times: Times::new(session.as_ref()),
            session,
            metadata: None,
            skipped: None,
            sync_state: None,
            stored,
            report: IngestReport::default(),
            flush_bytes: FLUSH_BYTES,
        })
    }
}

impl SessionStorage {
    /// Writes what is left of several sessions, as [`SessionIngest::commit`] does for one, and answers in their order.
    /// For many small sessions this is faster: a backend may write them in one transaction.
    pub async fn commit_all(&self, ingests: Vec<SessionIngest>) -> Vec<Result<IngestReport>> {
        let (mut changes, mut changed) = (Vec::new(), Vec::new());
        let mut outcomes = Vec::with_capacity(ingests.len());
        for mut ingest in ingests {
            let change = ingest.last_change().await;
            outcomes.push(change.map(|change| {
                if let Some(change) = change {
                    changes.push(change);
                    changed.push(outcomes.len());
                }
                ingest.report
            }));
        }
        let mut written = self.backend.write(changes).await.into_iter();
        for at in changed {
            let unanswered = || {
                Err(Error::new(ErrorKind::StorageIo, "the backend did not say what became of the session"))
            };
            if let (Err(error), Some(outcome)) =
                (written.next().unwrap_or_else(unanswered), outcomes.get_mut(at))
            {
                *outcome = Err(error);
            }
        }
        outcomes
    }
}

impl SessionIngest {
    /// What is stored of the session, as of the beginning or the last write.
    #[must_use]
    pub fn stored(&self) -> Option<&StoredSession> {
        self.stored.as_ref()
    }

    /// Writes everything in one transaction at the end, however much it is: for callers that hold it in memory anyway.
    #[must_use]
    pub fn all_at_once(mut self) -> Self {
        self.flush_bytes = usize::MAX;
        self
    }

    /// How many bytes wait to be written.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.messages.pending.bytes() + self.events.pending.bytes()
    }

    /// Sets the metadata files, the session's own first.
    ///
    /// # Errors
    ///
    /// `Validation` when a file is no JSON object; then nothing is changed.
    pub fn set_metadata(&mut self, files: Vec<MetadataFile>) -> Result<()> {
        let metadata = Metadata::read(&files)?;
        self.metadata = Some((files, metadata));
        Ok(())
    }

    /// Sets the list of lines that were left out, as it is to be stored.
    pub fn set_skipped(&mut self, skipped: Vec<SkippedLine>) {
        self.skipped = Some(skipped);
    }

    /// Sets how far the files were read; kept as it is.
    pub fn set_sync_state(&mut self, sync_state: String) {
        self.sync_state = Some(sync_state);
    }

    /// Sets when the files of the session were changed last: its time where nothing states one.
    pub fn set_seen(&mut self, seen: Timestamp) {
        self.times.seen = Some(seen);
    }

    /// Has what is derived from the lines derived again, also where the store holds the same line: for sessions that an
    /// earlier version stored. Events of tool calls and prompts are written again, with `events`: to be asked for where as much of an
    /// event is kept as was before.
    pub fn derive_again(&mut self, events: bool) {
        self.times.again = true;
        self.events.derive_again(events);
    }

    /// Begins the transcript at `start`, the sequence of the first line that follows.
    ///
    /// # Errors
    ///
    /// `Validation` when `start` lies beyond the end of what is stored; those of the backend.
    pub async fn begin_transcript(&mut self, start: u32) -> Result<()> {
        let states = match self.has_no_rows() {
            true => Vec::new(),
            // Counted here and not taken from the session, which may say more or less after an interrupted write.
            false => self.storage.backend.message_states(&self.target.key).await?,
        };
        if start as usize > states.len() {
            return Err(beyond_end("start_sequence", start, states.len()));
        }
        self.messages.begin(start, states);
        Ok(())
    }

    /// Takes the next line of the transcript. `seen` is the time to give it if it names none.
    ///
    /// # Errors
    ///
    /// Those of the backend; a bad line is an outcome, not an error.
    pub async fn transcript_line(&mut self, line: RawJson, seen: Timestamp) -> Result<LineOutcome> {
        let now = self.storage.now();
        match self.messages.line(&self.target, line, seen, now) {
            Ok(doubt) => self.flush_when_full().await.map(|()| taken(doubt)),
            Err(error) => Ok(LineOutcome::Skipped { kind: error.kind(), reason: error.to_string() }),
        }
    }

    /// Ends the transcript.
    pub fn end_transcript(&mut self, extent: Extent) {
        self.messages.pending.end(extent);
    }

    /// Begins the events at `start`, the sequence of the first line that follows.
    ///
    /// # Errors
    ///
    /// `Validation` when `start` lies beyond the end of what is stored; those of the backend.
    pub async fn begin_events(&mut self, start: u32) -> Result<()> {
        let digests = match self.has_no_rows() && start == 0 {
            true => Vec::new(),
            false => self.stored_event_digests(start).await?,
        };
        self.events.begin(start, digests);
        Ok(())
    }

    /// Has every event that follows written, also where the store holds the same line: for when more of events is to
    /// be kept than was before. To be called behind [`SessionIngest::begin_events`].
    pub fn rewrite_events(&mut self) {
        self.events.rewrite();
    }

    /// Takes the next line of the event log. `seen` is the time to give it if it names none.
    ///
    /// # Errors
    ///
    /// Those of the backend; a bad line is an outcome, not an error.
    pub async fn event_line(&mut self, line: RawJson, seen: Timestamp) -> Result<LineOutcome> {
        let detail = self.storage.settings.events;
        if detail == EventDetail::None {
            return Ok(LineOutcome::Taken);
        }
        let now = self.storage.now();
        match self.events.line(&self.target, line, seen, now, detail) {
            Ok(doubt) => self.flush_when_full().await.map(|()| taken(doubt)),
            Err(error) => Ok(LineOutcome::Skipped { kind: error.kind(), reason: error.to_string() }),
        }
    }

    /// Ends the events.
    pub fn end_events(&mut self, extent: Extent) {
        if self.storage.settings.events != EventDetail::None {
            self.events.pending.end(extent);
        }
    }

    /// Writes what is left, and the session itself.
    ///
    /// # Errors
    ///
    /// `Conflict` (retryable) when somebody else wrote the session since it was read; those of the backend.
    pub async fn commit(mut self) -> Result<IngestReport> {
        if let Some(change) = self.last_change().await? {
            self.storage.backend.write_one(change).await?;
        }
        Ok(self.report)
    }

    /// Whether nothing can be stored of the session: where writes are not atomic, an interrupted one leaves rows without
    /// a session.
    fn has_no_rows(&self) -> bool {
        self.stored.is_none() && self.storage.backend.info().atomic_writes
    }

    /// The digests of the stored events from `start` on.
    async fn stored_event_digests(&self, start: u32) -> Result<Vec<Digest>> {
        /// Digests of one page.
        const PAGE: usize = 100_000;
        // From one before on: without that one, `start` would leave a gap.
        let first = start.saturating_sub(1);
        let mut digests = Vec::new();
        loop {
            let range = SequenceRange { start: first + digests.len() as u32, limit: PAGE };
            let page = self.storage.backend.event_digests(&self.target.key, range).await?;
            if page.is_empty() {
                break;
            }
            digests.extend(page);
        }
        if start > first {
            if digests.is_empty() {
                let stored = self.stored.as_ref().map_or(0, |stored| stored.session.event_count);
                return Err(beyond_end("start_sequence", start, stored as usize));
            }
            digests.remove(0);
        }
        Ok(digests)
    }

    fn has_changes(&self) -> bool {
        let metadata_differs = match (&self.metadata, &self.stored) {
            (Some((files, _)), Some(stored)) => *files != stored.metadata_files,
            (Some(_), None) => true,
            (None, _) => false,
        };
        let differs = |stored: &StoredSession| {
            self.session_after() != stored.session
                || self.skipped.as_ref().is_some_and(|skipped| *skipped != stored.skipped)
                || (self.sync_state.is_some() && self.sync_state != stored.sync_state)
        };
        metadata_differs
            || self.stored.as_ref().is_none_or(differs)
            || self.messages.pending.has_changes()
            || !self.times.retimed.is_empty()
            || self.events.pending.has_changes()
    }

    /// What is left to be written, with the times of all messages as they are known by now; none where nothing is.
    async fn last_change(&mut self) -> Result<Option<SessionChange>> {
        self.settle_times().await?;
        if self.has_changes() { self.change().await.map(Some) } else { Ok(None) }
    }

    async fn flush_when_full(&mut self) -> Result<()> {
        if self.pending_bytes() >= self.flush_bytes {
            self.write().await?;
        }
        Ok(())
    }

    /// Writes what is pending together with the session as it is then.
    async fn write(&mut self) -> Result<()> {
        let change = self.change().await?;
        let session = change.session.clone();
        let version = self.storage.backend.write_one(change).await?;
        self.remember(session, version);
        Ok(())
    }

    /// What is pending together with the session as it is then, to be written now.
    async fn change(&mut self) -> Result<SessionChange> {
        let messages = self.messages.pending.take();
        let mut events = self.events.pending.take();
        self.make_event_ids_unique(&mut events).await?;
        let session = self.session_after();
        let change = SessionChange {
            expected: self.stored.as_ref().map(|stored| stored.version.clone()),
            metadata_files: self.metadata.as_ref().map(|(files, _)| files.clone()),
            skipped: self.skipped.clone(),
            sync_state: self.sync_state.clone(),
            session,
            messages,
            retimed: std::mem::take(&mut self.times.retimed),
            events,
        };
        self.count(&change);
        Ok(change)
    }

    fn count(&mut self, change: &SessionChange) {
        let removed = |before: u32, truncate: Option<u32>| {
            truncate.map_or(0, |to| u64::from(before.saturating_sub(to)))
        };
        let before = |of: fn(&Session) -> u32| self.stored.as_ref().map_or(0, |stored| of(&stored.session));
        self.report.messages_removed += removed(before(|s| s.message_count), change.messages.truncate);
        self.report.events_removed += removed(before(|s| s.event_count), change.events.truncate);
        self.report.messages_written += change.messages.put.len() as u64;
        self.report.messages_retimed += change.retimed.len() as u64;
        for (content_type, count) in self.messages.take_content_types() {
            *self.report.messages_by_content_type.entry(content_type).or_default() += count;
        }
        self.report.events_written += change.events.put.len() as u64;
        self.report.created |= self.stored.is_none();
    }

    fn remember(&mut self, session: Session, version: crate::backend::Version) {
        let stored = self.stored.take();
        let (files, skipped, sync_state) =
            stored.map_or_else(Default::default, |s| (s.metadata_files, s.skipped, s.sync_state));
        self.session = Some(session.clone());
        self.stored = Some(StoredSession {
            session,
            version,
            metadata_files: self.metadata.as_ref().map_or(files, |(files, _)| files.clone()),
            skipped: self.skipped.clone().unwrap_or(skipped),
            sync_state: self.sync_state.clone().or(sync_state),
        });
    }

    /// The session's fields after the rows are written. Its times are those of before, or a guess, until
    /// [`SessionIngest::settle_times`] has found them.
    fn session_after(&self) -> Session {
        let given = self.metadata.as_ref().map(|(_, metadata)| metadata);
        let mut session = self.session.clone().unwrap_or_else(|| {
            let created = given.and_then(Metadata::created).or(self.times.seen);
            Session::new(
                self.target.key.clone(),
                self.target.host_id.clone(),
                self.target.project_slug.clone(),
                created.unwrap_or_else(|| self.storage.now()),
            )
        });
        session.project_slug = self.target.project_slug.clone();
        if let Some(metadata) = given {
            metadata.apply(&mut session);
        }
        if let Some(found) = &self.times.found {
            (session.created, session.updated) = (found.created, found.updated);
            session.model.clone_from(&found.model);
        }
        session.message_count = self.messages.pending.count();
        session.event_count = self.events.pending.count();
        self.messages.describe(&mut session);
        session
    }

    /// Gives an event its derived id where the id in its line is another event's.
    async fn make_event_ids_unique(&self, events: &mut RowChange<StoredEvent>) -> Result<()> {
        let key = &self.target.key;
        let derived = |sequence: u32| format!("{}_evt_{sequence}", key.session_id);
        let mut given: HashMap<String, u32> = HashMap::new();
        for stored in &mut events.put {
            let event = &mut stored.event;
            if event.event_id != derived(event.sequence)
                && *given.entry(event.event_id.clone()).or_insert(event.sequence) != event.sequence
            {
                event.event_id = derived(event.sequence);
            }
        }
        if given.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = given.into_keys().collect();
        let taken: HashMap<String, Place> =
            self.storage.backend.find_events(&key.user_id, &ids).await?.into_iter().collect();
        let put: HashSet<u32> = events.put.iter().map(|stored| stored.event.sequence).collect();
        let goes =
            |sequence: u32| put.contains(&sequence) || events.truncate.is_some_and(|start| sequence >= start);
        let is_taken =
            |id: &str| taken.get(id).is_some_and(|place| place.session != *key || !goes(place.sequence));
        for StoredEvent { event, .. } in &mut events.put {
            if is_taken(&event.event_id) {
                event.event_id = derived(event.sequence);
            }
        }
        Ok(())
    }
}

fn taken(doubt: Option<String>) -> LineOutcome {
    doubt.map_or(LineOutcome::Taken, |reason| LineOutcome::Doubtful { reason })
}

fn beyond_end(field: &'static str, start: u32, stored: usize) -> Error {
    Error::validation(field, format!("lines must follow on: {start} is beyond the {stored} that are stored"))
}
