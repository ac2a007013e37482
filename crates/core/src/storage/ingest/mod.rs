//! Ingests one session: lines come one by one, and only changes are written.

mod batch;
mod kept;
mod pending;
mod repair;
mod report;
mod rewind;
mod rows;
mod settled;
mod superseded;
mod times;

pub use repair::IngestRepair;
pub use report::{Extent, IngestReport, IngestTarget, LineOutcome};
pub(super) use rows::{looks_derived, stated_id};
pub use settled::{SettledRows, SyncStateWithSettled};
pub use superseded::Remaining;

use self::{
    rows::{EventRows, MessageRows},
    superseded::SupersededRows,
    times::Times,
};
use super::{
    EventDetail, SessionStorage,
    line_masker::LineMasker,
    session_writer::{PART_BYTES, free_event_ids},
    turns::stated_in,
};
use crate::{
    Error, Result,
    backend::{SequenceRange, SessionChange, SkippedLine, StorageBackendExt, StoredSession},
    content::MessageLine,
    events::MAX_LINE_BYTES,
    metadata::Metadata,
    model::{Digest, MetadataFile, RawJson, Session, SessionId, SessionSource, Timestamp},
};

/// Ingests one session. Rows may not be stored until [`SessionIngest::commit`].
///
/// Lines are compared with stored rows by digest and turn; only messages and events that differ are written. Small
/// sessions are written in one transaction, and large ones in several of 16 MB, unless [`SessionIngest::all_at_once`]
/// is used.
#[derive(Debug)]
pub struct SessionIngest {
    storage: SessionStorage,
    target: IngestTarget,
    stored: Option<StoredSession>,
    session: Option<Session>,
    metadata: Option<(Vec<MetadataFile>, Metadata)>,
    source: Option<SessionSource>,
    skipped: Option<Vec<SkippedLine>>,
    sync_state: Option<String>,
    messages: MessageRows,
    events: EventRows,
    times: Times,
    superseded: SupersededRows,
    /// What was settled when the session was last ingested, and how to store what this ingest settles.
    settled: Option<SettledRows>,
    with_settled: Option<SyncStateWithSettled>,
    report: IngestReport,
    flush_bytes: usize,
    /// Masks secrets in lines.
    masker: LineMasker,
    /// Known problems of the stored rows, if they are being repaired.
    repair: Option<IngestRepair>,
}

impl SessionStorage {
    /// Begins to ingest a session.
    ///
    /// # Errors
    ///
    /// `Validation` for a new session without a UUID if the settings require one; errors of the backend.
    pub async fn ingest(&self, target: IngestTarget) -> Result<SessionIngest> {
        self.renew().await?;
        let stored = self.backend.get_session(&target.key).await?;
        if self.settings.uuid_session_ids && stored.is_none() && !target.key.session_id.is_uuid() {
            let id = &target.key.session_id;
            return Err(Error::validation("session_id", "must be a UUID in this store").with("session", id));
        }
        let masker = self.line_masker().await?;
        Ok(SessionIngest { masker, ..self.ingest_of(target, stored) })
    }

    /// An ingest of a session with this stored state.
    pub(super) fn ingest_of(&self, target: IngestTarget, stored: Option<StoredSession>) -> SessionIngest {
        let session = stored.as_ref().map(|stored| stored.session.clone());
        let count = |of: fn(&Session) -> u32| session.as_ref().map_or(0, of);
        SessionIngest {
            storage: self.clone(),
            messages: MessageRows::new(count(|s| s.message_count)),
            events: EventRows::new(count(|s| s.event_count)),
            target,
            times: Times::new(session.as_ref()),
            session,
            settled: None,
            with_settled: None,
            metadata: None,
            source: None,
            skipped: None,
            sync_state: None,
            stored,
            superseded: SupersededRows::default(),
            report: IngestReport::default(),
            flush_bytes: PART_BYTES,
            masker: LineMasker::default(),
            repair: None,
        }
    }
}

impl SessionIngest {
    /// The stored session, as of the beginning or the last write.
    #[must_use]
    pub fn stored(&self) -> Option<&StoredSession> {
        self.stored.as_ref()
    }

    /// Writes everything in one transaction at the end, regardless of its size, for callers that have it in memory
    /// anyway.
    #[must_use]
    pub fn all_at_once(mut self) -> Self {
        self.flush_bytes = usize::MAX;
        self
    }

    /// The number of pending bytes.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.messages.pending.bytes() + self.events.pending.bytes() + self.unreadable_bytes()
    }

    /// Sets the metadata files, the session's own first.
    ///
    /// # Errors
    ///
    /// `Validation` if a file is not a JSON object, and nothing is changed; errors of the redactor.
    pub fn set_metadata(&mut self, files: Vec<MetadataFile>) -> Result<()> {
        let files = self.masker.mask_files(files)?;
        let metadata = Metadata::read(&files)?;
        self.metadata = Some((files, metadata));
        Ok(())
    }

    /// Sets the program that wrote the session's files.
    pub fn set_source(&mut self, source: SessionSource) {
        self.source = Some(source);
    }

    /// Sets the list of skipped lines to store.
    pub fn set_skipped(&mut self, skipped: Vec<SkippedLine>) {
        self.skipped = Some(skipped);
    }

    /// Sets how far the files were read, in the caller's format.
    pub fn set_sync_state(&mut self, sync_state: String) {
        self.sync_state = Some(sync_state);
    }

    /// Sets when the files of the session last changed. It is the time of lines and sessions that have no better one.
    pub fn set_seen(&mut self, seen: Timestamp) {
        self.times.seen = Some(seen);
    }

    /// Derives all data from the lines again, even if the store has the same line: for sessions that an earlier version
    /// stored. With `events`, events of tool calls and prompts are written again; use it if at least as much of each
    /// event is stored as before.
    pub fn derive_again(&mut self, events: bool) {
        self.times.again = true;
        self.events.derive_again(events);
    }

    /// Begins the transcript at `start`, the sequence of the next line.
    ///
    /// # Errors
    ///
    /// `Validation` if `start` is after the last stored row; errors of the backend.
    pub async fn begin_transcript(&mut self, start: u32) -> Result<()> {
        let states = match self.has_no_rows() {
            true => Vec::new(),
            // Counted here, because the session's count may be wrong after an interrupted write.
            false => self.message_states().await?,
        };
        if start as usize > states.len() {
            return Err(beyond_end("start_sequence", start, states.len()));
        }
        self.messages.begin(start, states);
        self.repair_messages();
        Ok(())
    }

    /// Processes the next line of the transcript. `seen` is its time if it states none.
    ///
    /// # Errors
    ///
    /// Errors of the backend. An invalid line is an outcome, not an error.
    pub async fn transcript_line(&mut self, line: RawJson, seen: Timestamp) -> Result<LineOutcome> {
        let now = self.storage.now();
        let (line, secrets) = self.masker.mask(line).await?;
        let read = match MessageLine::parse(&line, self.target.key.session_id.source()) {
            Ok(read) => read,
            Err(error) => return Ok(skipped(&error, line)),
        };
        let before = self.messages.pending.bytes();
        let doubt = self.messages.line(&self.target, line, &read, seen, now);
        let is_written = self.messages.pending.bytes() > before;
        self.report.secrets_masked += if is_written { secrets as u64 } else { 0 };
        self.flush_when_full().await.map(|()| taken(doubt))
    }

    /// Ends the transcript.
    pub fn end_transcript(&mut self, extent: Extent) {
        self.messages.pending.end(extent);
    }

    /// Begins the events at `start`, the sequence of the next line.
    ///
    /// # Errors
    ///
    /// `Validation` if `start` is after the last stored row; errors of the backend.
    pub async fn begin_events(&mut self, start: u32) -> Result<()> {
        let digests = match self.has_no_rows() && start == 0 {
            true => Vec::new(),
            false => self.stored_event_digests(start).await?,
        };
        self.events.begin(start, digests);
        self.repair_events();
        Ok(())
    }

    /// Writes all following events, even if the store has the same line, because more of each event is to be stored
    /// than before. Call this after [`SessionIngest::begin_events`].
    pub fn rewrite_events(&mut self) {
        self.events.rewrite();
    }

    /// Processes the next line of the event log. `seen` is its time if it states none.
    ///
    /// # Errors
    ///
    /// Errors of the backend. An invalid line is an outcome, not an error.
    pub async fn event_line(&mut self, line: RawJson, seen: Timestamp) -> Result<LineOutcome> {
        let detail = self.storage.settings.events;
        if detail == EventDetail::None {
            return Ok(LineOutcome::Taken);
        }
        let now = self.storage.now();
        let is_too_large = line.as_bytes().len() > MAX_LINE_BYTES;
        let (line, secrets) = if is_too_large { (line, 0) } else { self.masker.mask(line).await? };
        let before = self.events.pending.bytes();
        match self.events.line(&self.target, &line, seen, now, detail) {
            Ok(doubt) => {
                let is_written = self.events.pending.bytes() > before;
                self.report.secrets_masked += if is_written { secrets as u64 } else { 0 };
                self.flush_when_full().await.map(|()| taken(doubt))
            }
            Err(error) => Ok(skipped(&error, line)),
        }
    }

    /// Ends the events.
    pub fn end_events(&mut self, extent: Extent) {
        if self.storage.settings.events != EventDetail::None {
            self.events.pending.end(extent);
        }
    }

    /// Writes the pending rows and the session itself.
    ///
    /// # Errors
    ///
    /// `Conflict` (retryable) if another process wrote the session since it was read; errors of the backend.
    pub async fn commit(mut self) -> Result<IngestReport> {
        if let Some(change) = self.last_change().await? {
            let stated = stated_in(&change, || self.storage.now());
            self.storage.backend.write_one(change).await?;
            self.storage.keep_stated(stated).await?;
        }
        Ok(self.report)
    }

    /// Whether the session certainly has no stored rows yet. If writes are not atomic, an interrupted one may leave
    /// rows without a session.
    fn has_no_rows(&self) -> bool {
        self.stored.is_none() && self.storage.backend.info().atomic_writes
    }

    /// The digests of the stored events from `start` on.
    async fn stored_event_digests(&mut self, start: u32) -> Result<Vec<Digest>> {
        let digests = self.event_digests_from(start).await;
        self.repaired_digests(digests, start)
    }

    async fn event_digests_from(&self, start: u32) -> Result<Vec<Digest>> {
        /// Digests of one page.
        const PAGE: usize = 100_000;
        // From one before `start`, to check that there is no gap.
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
        let differs = |stored: &StoredSession| {
            self.session_after() != stored.session
                || self.skipped.as_ref().is_some_and(|skipped| *skipped != stored.skipped)
                || (self.sync_state.is_some() && self.sync_state != stored.sync_state)
        };
        self.has_other_metadata()
            || self.stored.as_ref().is_none_or(differs)
            || self.messages.pending.has_changes()
            || !self.times.retimed.is_empty()
            || self.events.pending.has_changes()
            || self.has_unreadable()
    }

    /// The pending change, with the times of all messages as known so far; `None` if nothing is pending.
    async fn last_change(&mut self) -> Result<Option<SessionChange>> {
        self.settle_times().await?;
        self.write_most_times().await?;
        if self.has_changes() { self.change().await.map(Some) } else { Ok(None) }
    }

    async fn flush_when_full(&mut self) -> Result<()> {
        if self.pending_bytes() >= self.flush_bytes {
            self.write().await?;
        }
        Ok(())
    }

    /// Writes the pending rows together with the current session.
    async fn write(&mut self) -> Result<()> {
        let change = self.change().await?;
        let (session, stated) = (change.session.clone(), stated_in(&change, || self.storage.now()));
        let version = self.storage.backend.write_one(change).await?;
        self.storage.keep_stated(stated).await?;
        self.superseded.has_written = true;
        self.remember(session, version);
        Ok(())
    }

    /// The pending rows together with the current session, to be written now.
    async fn change(&mut self) -> Result<SessionChange> {
        let messages = self.messages.pending.take();
        let mut events = self.events.pending.take();
        free_event_ids(&*self.storage.backend, &self.target.key, &mut events).await?;
        let superseded = self.superseded_by(&messages, &events).await?;
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
            superseded,
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
        self.report.messages_retimed += self.times.count(&change.retimed);
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

    /// The session's fields after the rows are written. Its times are the previous ones, or guesses, until
    /// [`SessionIngest::settle_times`] derives them.
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
        session.source = self.source.unwrap_or(session.source);
        if let Some(metadata) = given {
            metadata.apply(&mut session);
        }
        if session.parent_id.is_none() {
            session.parent_id = self.events.parent.clone().or_else(|| self.parent_from_events());
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

    /// The stored parent, if it does not come from the metadata.
    fn parent_from_events(&self) -> Option<SessionId> {
        let stored = self.stored.as_ref()?;
        let is_stated = Metadata::read(&stored.metadata_files).ok()?.parent().is_some();
        stored.session.parent_id.clone().filter(|_| !is_stated && !stored.metadata_files.is_empty())
    }
}

fn skipped(error: &Error, line: RawJson) -> LineOutcome {
    LineOutcome::Skipped { kind: error.kind(), reason: error.to_string(), line }
}

fn taken(doubt: Option<String>) -> LineOutcome {
    doubt.map_or(LineOutcome::Taken, |reason| LineOutcome::Doubtful { reason })
}

fn beyond_end(field: &'static str, start: u32, stored: usize) -> Error {
    Error::validation(field, format!("leaves a gap: {start} is past the end of the {stored} stored lines"))
}
