//! Ingests one session: lines come one by one, and only changes are written.

mod batch;
mod derived;
mod kept;
mod position;
mod posted;
mod received;
mod repair;
mod report;
mod rewind;
mod rewind_to_turn;
mod rows;
mod settled;
mod superseded;
mod times;

pub(super) use derived::{ComparedMessage, event_id_of_line, looks_derived};
pub(super) use posted::{is_unknown, unknown_host};
pub(super) use received::{ReceivedFrom, ReceivedKind, ReceivedRows, digest_of_field};
pub use repair::IngestRepair;
pub use report::{Extent, IngestReport, IngestTarget, LineOutcome};
pub use rewind_to_turn::{RewindOptions, RewindReport};
pub(super) use superseded::KeptAs;
pub use superseded::Remaining;

use self::{
    position::RowPosition,
    posted::PostedEvents,
    rows::{EventRows, MessageRows},
    settled::SettledRows,
    superseded::SupersededRows,
    times::IngestTimes,
};
use super::{
    line_masker::LineMasker,
    session_writer::SessionWriter,
    settings::EventDetail,
    store::{Ingestion, Rederivation, StoreContext, StoredSecrets},
};
use crate::{
    Error, ErrorField, Result,
    backend::{SkippedLine, StoredSession, StoredSyncState},
    content::MessageLine,
    events::MAX_LINE_BYTES,
    metadata::Metadata,
    model::{
        Digest, LineKind, MetadataFile, RawJson, Repository, Session, SessionId, SessionSource, Timestamp,
    },
};

/// Ingests one session. Rows may not be stored until [`SessionIngest::commit`].
///
/// Lines are compared with stored rows by digest and turn; only messages and events that differ are written. Small
/// sessions are written in one transaction, and large ones in several of 16 MB, unless [`SessionIngest::all_at_once`]
/// is used.
#[derive(Debug)]
pub struct SessionIngest {
    store: StoreContext,
    target: IngestTarget,
    /// Writes the rows that change.
    writer: SessionWriter,
    metadata: Option<Metadata>,
    source: Option<SessionSource>,
    repository: Option<Repository>,
    working_dir: Option<String>,
    sync_state: Option<StoredSyncState>,
    messages: MessageRows,
    events: EventRows,
    times: IngestTimes,
    superseded: SupersededRows,
    /// The rows that the last ingest of the session settled, so that this one does not read them again.
    settled: Option<SettledRows>,
    report: IngestReport,
    /// Masks secrets in lines.
    masker: LineMasker,
    /// Known problems of the stored rows, if they are being repaired.
    repair: Option<IngestRepair>,
    /// The transfers of the session from other stores.
    received: ReceivedRows,
    /// Whether `received` stays right although rows change.
    keeps_received: bool,
    /// Posted events that have not appeared among the lines yet.
    posted: PostedEvents,
}

impl Ingestion<'_> {
    /// Begins to ingest a session.
    ///
    /// # Errors
    ///
    /// `Validation` for a new session without a UUID if the settings require one; errors of the backend.
    pub async fn ingest(self, target: IngestTarget) -> Result<SessionIngest> {
        Rederivation::new(self.store).rederive().await?;
        let stored = self.store.backend.get_session(&target.key).await?;
        if self.store.settings.uuid_session_ids && stored.is_none() && !target.key.session_id.is_uuid() {
            let id = &target.key.session_id;
            return Err(
                Error::validation(ErrorField::SessionId, "must be a UUID in this store").with("session", id)
            );
        }
        let masker = StoredSecrets::new(self.store).line_masker().await?;
        Ok(SessionIngest { masker, ..self.ingest_of(target, stored) })
    }

    /// Runs `attempt`, which ingests a session, again if another process has written the session in the meantime.
    ///
    /// # Errors
    ///
    /// Those of the last attempt.
    pub async fn retry_conflicts<T, F: Future<Output = Result<T>>>(
        self,
        attempt: impl Fn() -> F,
    ) -> Result<T> {
        self.store.retry_conflicts(attempt).await
    }

    /// An ingest of a session with this stored state.
    pub(super) fn ingest_of(self, target: IngestTarget, stored: Option<StoredSession>) -> SessionIngest {
        let before = stored.as_ref().map(|stored| stored.session.clone());
        let IngestTarget { key, host_id, project_slug } = target.clone();
        let session = || Session::new(key, host_id, project_slug, self.store.now());
        let session = before.clone().unwrap_or_else(session);
        SessionIngest {
            store: self.store.clone(),
            messages: MessageRows::new(session.message_count),
            events: EventRows::new(session.event_count),
            received: stored.as_ref().map(ReceivedRows::of).unwrap_or_default(),
            keeps_received: false,
            posted: PostedEvents::default(),
            writer: SessionWriter::keeping_rows(self.store.backend.clone(), session, stored)
                .with_frees_event_ids(true),
            target,
            times: IngestTimes::new(before),
            settled: None,
            metadata: None,
            source: None,
            repository: None,
            working_dir: None,
            sync_state: None,
            superseded: SupersededRows::default(),
            report: IngestReport::default(),
            masker: LineMasker::default(),
            repair: None,
        }
    }
}

impl SessionIngest {
    /// The stored session, as of the beginning or the last write.
    #[must_use]
    pub fn stored(&self) -> Option<&StoredSession> {
        self.writer.stored.as_ref()
    }

    /// Writes everything in one transaction at the end, regardless of its size, for callers that have it in memory
    /// anyway.
    #[must_use]
    pub fn all_at_once(mut self) -> Self {
        self.writer = self.writer.with_part_bytes(usize::MAX);
        self
    }

    /// The number of pending bytes.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.writer.bytes() + self.kept_bytes()
    }

    /// Sets the metadata files, the session's own first.
    ///
    /// # Errors
    ///
    /// `Validation` if a file is not a JSON object, and nothing is changed; errors of the redactor.
    pub fn set_metadata(&mut self, files: Vec<MetadataFile>) -> Result<()> {
        let files = self.masker.mask_files(files)?;
        self.metadata = Some(Metadata::read(&files)?);
        self.writer.set_files(files);
        Ok(())
    }

    /// Sets the program that wrote the session's files.
    pub fn set_source(&mut self, source: SessionSource) {
        self.source = Some(source);
    }

    /// Sets the working folder of a session whose metadata files name none.
    pub fn set_working_dir(&mut self, folder: String) {
        self.working_dir = Some(folder);
    }

    /// Sets the repository of the session's working folder. By default, the stored one is kept.
    pub fn set_repository(&mut self, repository: Repository) {
        self.repository = Some(repository);
    }

    /// The fields that the session would have if it was written with what was given so far.
    #[must_use]
    pub fn described(&self) -> Session {
        self.session_after()
    }

    /// Sets the list of skipped lines to store.
    pub fn set_skipped(&mut self, skipped: Vec<SkippedLine>) {
        self.writer.set_skipped(skipped);
    }

    /// Sets how far the files were read, in the caller's format.
    pub fn set_sync_state(&mut self, sync_state: String) {
        self.sync_state = Some(StoredSyncState::of(sync_state));
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
        let states = if self.has_no_rows() {
            Vec::new()
        } else {
            // Counted here, because the session's count may be wrong after an interrupted write.
            self.message_states().await?
        };
        if start as usize > states.len() {
            return Err(beyond_end(ErrorField::StartSequence, start, states.len()));
        }
        self.messages.begin(&mut self.writer, start, states);
        self.repair_messages();
        Ok(())
    }

    /// Processes the next line of the transcript. `seen` is its time if it states none.
    ///
    /// # Errors
    ///
    /// Errors of the backend. An invalid line is an outcome, not an error.
    pub async fn transcript_line(&mut self, line: RawJson, seen: Timestamp) -> Result<LineOutcome> {
        let now = self.store.now();
        let (line, secrets) = self.masker.mask(line).await?;
        let read = match MessageLine::parse(&line, self.target.key.session_id.source()) {
            Ok(read) => read,
            Err(error) => return Ok(skipped(&error, line)),
        };
        let before = self.writer.bytes();
        let warning = self.messages.line(&mut self.writer, &self.target, line, &read, (seen, now));
        let is_written = self.writer.bytes() > before;
        self.report.secrets_masked += if is_written { secrets as u64 } else { 0 };
        self.flush_when_full().await.map(|()| taken(warning))
    }

    /// Ends the transcript.
    pub fn end_transcript(&mut self, extent: Extent) {
        if let Some(count) = self.messages.position.end(extent) {
            self.writer.truncate_messages(count);
        }
    }

    /// Begins the events at `start`, the sequence of the next line.
    ///
    /// # Errors
    ///
    /// `Validation` if `start` is after the last stored row; errors of the backend.
    pub async fn begin_events(&mut self, start: u32) -> Result<()> {
        let digests = if self.has_no_rows() && start == 0 {
            Vec::new()
        } else {
            self.stored_event_digests(start).await?
        };
        self.events.begin(&mut self.writer, start, digests);
        self.find_posted(start).await?;
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
        let detail = self.store.settings.events;
        if detail == EventDetail::None {
            return Ok(LineOutcome::Taken);
        }
        let now = self.store.now();
        let is_too_large = line.as_bytes().len() > MAX_LINE_BYTES;
        let (line, secrets) = if is_too_large { (line, 0) } else { self.masker.mask(line).await? };
        let before = self.writer.bytes();
        match self.events.line(&mut self.writer, &self.target, &line, (seen, now), detail) {
            Ok(warning) => {
                let is_written = self.writer.bytes() > before;
                self.report.secrets_masked += if is_written { secrets as u64 } else { 0 };
                self.posted.take(&line);
                self.flush_when_full().await.map(|()| taken(warning))
            }
            Err(error) => Ok(skipped(&error, line)),
        }
    }

    /// Ends the events. Those that were posted, and that the lines lack, stay after them.
    pub fn end_events(&mut self, extent: Extent) {
        if self.posted.first.is_some() {
            self.posted.extent = Some(extent);
        } else {
            self.end_event_rows(extent);
        }
    }

    fn end_event_rows(&mut self, extent: Extent) {
        if self.store.settings.events != EventDetail::None
            && let Some(count) = self.events.position.end(extent)
        {
            self.writer.truncate_events(count);
        }
    }

    /// Writes the pending rows and the session itself.
    ///
    /// # Errors
    ///
    /// `Conflict` (retryable) if another process wrote the session since it was read; errors of the backend.
    pub async fn commit(mut self) -> Result<IngestReport> {
        let before = self.prepare_commit().await?;
        let finished = self.writer.finish(self.sync_state).await?;
        Ok(before.with_rows(finished.rows))
    }

    /// [`Self::begin_transcript`] or [`Self::begin_events`]. A long transcript may not be read again from its beginning.
    ///
    /// # Errors
    ///
    /// As these.
    pub async fn begin(&mut self, kind: LineKind, start: u32) -> Result<()> {
        match kind {
            LineKind::Message if start > 0 && self.resume_transcript(start) => Ok(()),
            LineKind::Message => self.begin_transcript(start).await,
            LineKind::Event => self.begin_events(start).await,
        }
    }

    /// [`Self::transcript_line`] or [`Self::event_line`].
    ///
    /// # Errors
    ///
    /// As these.
    pub async fn line(&mut self, kind: LineKind, line: RawJson, seen: Timestamp) -> Result<LineOutcome> {
        match kind {
            LineKind::Message => self.transcript_line(line, seen).await,
            LineKind::Event => self.event_line(line, seen).await,
        }
    }

    /// [`Self::end_transcript`] or [`Self::end_events`].
    pub fn end(&mut self, kind: LineKind, extent: Extent) {
        match kind {
            LineKind::Message => self.end_transcript(extent),
            LineKind::Event => self.end_events(extent),
        }
    }

    fn position(&self, kind: LineKind) -> &RowPosition {
        match kind {
            LineKind::Message => &self.messages.position,
            LineKind::Event => &self.events.position,
        }
    }

    /// Whether the session certainly has no stored rows yet. If writes are not atomic, an interrupted one may leave
    /// rows without a session.
    fn has_no_rows(&self) -> bool {
        self.stored().is_none() && self.store.backend.info().atomic_writes
    }

    /// The digests of the stored events from `start` on.
    async fn stored_event_digests(&mut self, start: u32) -> Result<Vec<Digest>> {
        // From one before `start`, to check that there is no gap.
        let first = start.saturating_sub(1);
        let mut digests = self.event_digests(first).await?;
        if start > first {
            if digests.is_empty() {
                let stored = self.stored().map_or(0, |stored| stored.session.event_count);
                return Err(beyond_end(ErrorField::StartSequence, start, stored as usize));
            }
            digests.remove(0);
        }
        Ok(digests)
    }

    /// Derives what depends on all lines, for the last write. Returns the report of everything but the written rows.
    async fn prepare_commit(&mut self) -> Result<IngestReport> {
        self.end_posted().await?;
        self.assign_times().await?;
        self.prepare_write().await?;
        self.forget_replaced();
        self.sync_state = self.state_with_received();
        let created = self.times.before.is_none();
        let messages_by_content_type = std::mem::take(&mut self.messages.content_types);
        Ok(IngestReport { created, messages_by_content_type, ..self.report.clone() })
    }

    async fn flush_when_full(&mut self) -> Result<()> {
        if self.pending_bytes() < self.writer.part_bytes {
            return Ok(());
        }
        self.keep_posted().await?;
        self.prepare_write().await?;
        self.writer.unfinished = self.state_with_received();
        self.writer.flush().await
    }

    /// Adds what the next write contains beside rows.
    async fn prepare_write(&mut self) -> Result<()> {
        self.add_superseded().await?;
        *self.writer.session_mut() = self.session_after();
        Ok(())
    }

    /// The session's fields after the rows are written. Its times are the previous ones, or guesses, until
    /// [`SessionIngest::assign_times`] derives them.
    fn session_after(&self) -> Session {
        let given = self.metadata.as_ref();
        let mut session = self.writer.session().clone();
        if self.stored().is_none() {
            let created = given.and_then(Metadata::created).or(self.times.seen);
            session.created = created.unwrap_or(session.created);
            session.updated = session.created;
        }
        session.project_slug = self.target.project_slug.clone();
        if is_unknown(&session.host_id) {
            session.host_id = self.target.host_id.clone();
        }
        session.source = self.source.unwrap_or(session.source);
        if let Some(metadata) = given {
            metadata.apply(&mut session);
        }
        if let Some(folder) = self.working_dir.as_ref().filter(|_| !self.files_name_folder()) {
            session.working_dir = Some(folder.clone());
        }
        session.repository = self.repository.clone().or(session.repository);
        if session.parent_id.is_none() {
            session.parent_id = self.events.parent.clone().or_else(|| self.parent_from_events());
        }
        if let Some(found) = &self.times.found {
            (session.created, session.updated) = (found.created, found.updated);
            session.model.clone_from(&found.model);
        }
        self.messages.describe(&self.writer.derived, &mut session);
        session
    }

    /// Whether the metadata files, given or else stored, name the working folder.
    fn files_name_folder(&self) -> bool {
        let stored = || Metadata::read(&self.stored()?.metadata_files).ok()?.working_dir();
        self.metadata.as_ref().map_or_else(stored, Metadata::working_dir).is_some()
    }

    /// The stored parent, if it does not come from the metadata.
    fn parent_from_events(&self) -> Option<SessionId> {
        let stored = self.stored()?;
        let is_stated = Metadata::read(&stored.metadata_files).ok()?.parent().is_some();
        stored.session.parent_id.clone().filter(|_| !is_stated && !stored.metadata_files.is_empty())
    }
}

fn skipped(error: &Error, line: RawJson) -> LineOutcome {
    LineOutcome::Skipped { kind: error.kind(), reason: error.to_string(), line }
}

fn taken(warning: Option<String>) -> LineOutcome {
    warning.map_or(LineOutcome::Taken, |reason| LineOutcome::Doubtful { reason })
}

fn beyond_end(field: ErrorField, start: u32, stored: usize) -> Error {
    Error::validation(field, format!("leaves a gap: {start} is past the end of the {stored} stored lines"))
}
