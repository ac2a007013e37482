//! Reads one session folder.

mod copies;
mod damage;
mod logs;
pub(crate) mod metadata;
pub(crate) mod open;
mod reading;
mod replaced;
mod repository;
mod two_logs;

use std::io;

use amplifier_session_core::{
    Error, Result, SessionStorage,
    backend::{SkippedLine, StoredSession},
    blocking,
    model::SessionKey,
    storage::{IngestReport, IngestTarget, SessionIngest},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, ready},
};

use crate::{
    discover::SessionFolder,
    files::{INSTEAD_OF_DAMAGED, SessionFiles, Stamp, TRANSCRIPT},
    options::SyncOptions,
    plan::Planned,
    progress::{Progress, SessionOutcome},
    report::{FolderFailure, Skipped, SyncReport},
    repository::RepositoryCache,
    state::SyncState,
    writer::BackgroundWriter,
};

/// How often to retry a session if another process wrote it in the meantime.
const ATTEMPTS: usize = 5;
/// At most this many invalid lines of a session are recorded in the store.
const SKIPPED_KEPT: usize = 1_000;

/// Data that all sessions of a sync share.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) storage: &'a SessionStorage,
    pub(crate) options: &'a SyncOptions,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) repositories: &'a RepositoryCache,
}

/// The report and outcome of a session.
pub(crate) type Ended = Result<(SyncReport, SessionOutcome)>;

/// A session folder that was read and compared with the store.
pub(crate) enum Read<'a> {
    /// There may be something to write. If the session is too large for memory, its first parts are already written.
    Complete(Box<(SessionReader<'a>, SessionIngest)>),
    /// There is nothing to write.
    Settled(Box<SyncReport>, SessionOutcome),
}

impl Read<'_> {
    fn settled(report: SyncReport, outcome: SessionOutcome) -> Self {
        Self::Settled(Box::new(report), outcome)
    }
}

/// Reads a session folder, unless it is unchanged.
pub(crate) async fn read<'a>(context: Context<'a>, planned: &'a Planned) -> Result<Read<'a>> {
    match planned.bytes {
        Some(_) => SessionReader::read(context, planned).await,
        None => Ok(Read::settled(SyncReport::default(), SessionOutcome::Unchanged)),
    }
}

/// Queues a session for writing. The result resolves when it is written.
pub(crate) async fn queue<'a>(read: Result<Read<'a>>, writer: &BackgroundWriter) -> BoxFuture<'a, Ended> {
    match read {
        Ok(Read::Complete(read)) => {
            let (reader, ingest) = *read;
            let writing = writer.commit(ingest).await;
            async move { Ok(reader.finish(&writing.done().await?)) }.boxed()
        }
        Ok(Read::Settled(report, outcome)) => ready(Ok((*report, outcome))).boxed(),
        Err(error) => ready(Err(error)).boxed(),
    }
}

/// Waits until a session is written. Files that can't be read are in the report. If another process wrote the session
/// in the meantime, it is read again.
///
/// # Errors
///
/// Errors of the store.
pub(crate) async fn finish<'a>(
    context: Context<'a>,
    planned: &'a Planned,
    mut written: BoxFuture<'a, Ended>,
    writer: &BackgroundWriter,
) -> Ended {
    for attempt in 1..ATTEMPTS {
        match written.await {
            // A lock may be held for hours, and each attempt waits for it.
            Err(error) if error.is_retryable() && !error.is_lock_timeout() => {
                tracing::debug!(session = %planned.folder.session, attempt, %error, "retrying the session");
            }
            other => return other,
        }
        written = queue(read(context, planned).await, writer).await;
    }
    written.await
}

/// The result of an attempt to read a session folder.
enum Attempt<'a> {
    Read(Read<'a>),
    /// The transcript, which has this stamp, is damaged, and its backup is not.
    Damaged(Stamp),
}

/// One attempt to read a session folder.
pub(crate) struct SessionReader<'a> {
    context: Context<'a>,
    folder: &'a SessionFolder,
    /// The state of the files, from the previous sync and from this one.
    state: SyncState,
    /// The state from the previous sync, if all files are compared completely.
    before: Option<SyncState>,
    /// The state before this sync, with the files whose rows are being replaced.
    replacing: SyncState,
    /// The invalid lines to store.
    skipped: Vec<SkippedLine>,
    report: SyncReport,
    /// Whether something changed that the ingest does not count.
    changed: bool,
    /// Whether the transcript has a backup.
    has_backup: bool,
    /// The stamp of the transcript, if the backup must be read instead.
    damaged_transcript: Option<Stamp>,
}

impl<'a> SessionReader<'a> {
    async fn read(context: Context<'a>, planned: &'a Planned) -> Result<Read<'a>> {
        let mut damaged = None;
        loop {
            match Self::attempt(context, planned, damaged).await? {
                Attempt::Read(read) => return Ok(read),
                Attempt::Damaged(stamp) => damaged = Some(stamp),
            }
        }
    }

    /// Reads the folder; if its transcript has the stamp `damaged`, with the backup instead.
    async fn attempt(
        context: Context<'a>,
        planned: &'a Planned,
        damaged: Option<Stamp>,
    ) -> Result<Attempt<'a>> {
        let settled = |report, outcome| Ok(Attempt::Read(Read::settled(report, outcome)));
        let folder = &planned.folder;
        let target = IngestTarget {
            key: SessionKey::new(context.options.user.clone(), folder.session.clone()),
            host_id: context.options.host.clone(),
            project_slug: folder.project.clone(),
        };
        let mut ingest = context.storage.ingestion().ingest(target).await?;
        let mut reader = Self::new(context, folder, ingest.stored());
        if planned.is_known && ingest.stored().is_none() {
            // It was deleted after the sync began.
            return settled(reader.report, SessionOutcome::Unchanged);
        }
        if let Some(repair) = &planned.repair {
            reader.before = Some(reader.state.clone());
            reader.state.forget_positions();
            ingest.repair(repair.clone());
        }
        let places = folder.places();
        if let Some(stamp) = damaged {
            reader.state.set_damaged_transcript(stamp);
            reader.report.skip(Skipped::file(folder, Some(TRANSCRIPT), INSTEAD_OF_DAMAGED.to_owned()));
        }
        let found = blocking(move || SessionFiles::find(&places)).await?;
        let found = found.map(|found| found.map(|files| reader.state.choose(files)));
        if let Ok(Some(files)) = &found
            && reader.is_copy(&ingest, files).await?
        {
            return settled(reader.report, SessionOutcome::Unchanged);
        }
        ingest.set_seen(folder.modified);
        ingest.set_source(folder.source);
        if reader.before.is_none() {
            ingest.continue_settled();
        }
        if let Some(had_payloads) = reader.state.is_of_earlier_version() {
            ingest.derive_again(had_payloads == reader.keeps_payloads());
        }
        match found {
            Ok(Some(files)) => reader.files(&mut ingest, &files).await?,
            // The folder disappeared after it was found.
            Ok(None) => return settled(reader.report, SessionOutcome::Unchanged),
            Err(error) => {
                reader.fail("the folder", &error);
                return settled(reader.report, SessionOutcome::Failed);
            }
        }
        if let Some(stamp) = reader.damaged_transcript {
            return Ok(Attempt::Damaged(stamp));
        }
        if reader.state.is_empty() && !reader.report.failures.is_empty() {
            // There is nothing to store, and a session stored without rows would look like an empty one.
            return settled(reader.report, SessionOutcome::Failed);
        }
        reader.repository(&mut ingest).await?;
        reader.save(&mut ingest);
        Ok(Attempt::Read(Read::Complete(Box::new((reader, ingest)))))
    }

    fn new(context: Context<'a>, folder: &'a SessionFolder, stored: Option<&StoredSession>) -> Self {
        let mut state = SyncState::of(&folder.project, stored.and_then(|stored| stored.sync_state.as_ref()));
        if context.options.accepts_removals() {
            state.forget_damage();
        }
        let before = context.options.verify.then(|| state.clone());
        if before.is_some() {
            state.forget_positions();
        }
        state.set_read_folder(&folder.path, &context.options.host);
        Self {
            context,
            folder,
            replacing: state.clone(),
            state,
            before,
            skipped: stored.map_or_else(Vec::new, |stored| stored.skipped.clone()),
            report: SyncReport::default(),
            changed: stored.is_some_and(|StoredSession { session, .. }| {
                session.project_slug != folder.project || session.source != folder.source
            }),
            has_backup: false,
            damaged_transcript: None,
        }
    }

    async fn files(&mut self, ingest: &mut SessionIngest, files: &SessionFiles) -> Result<()> {
        self.metadata(ingest, files).await?;
        self.has_backup = files.backup().is_some();
        self.transcript(ingest, files).await?;
        match self.damaged_transcript {
            Some(_) => Ok(()),
            None => self.events(ingest, files).await,
        }
    }

    /// Makes the ingest store the current state together with its rows.
    fn save(&self, ingest: &mut SessionIngest) {
        ingest.set_sync_state(self.state.to_json());
        ingest.set_skipped(self.skipped.clone());
    }

    fn finish(mut self, ingest: &IngestReport) -> (SyncReport, SessionOutcome) {
        self.report.add(ingest);
        let outcome = if !self.report.failures.is_empty() {
            SessionOutcome::Failed
        } else if ingest.created {
            SessionOutcome::New
        } else if self.changed || self.report.has_rows() {
            SessionOutcome::Changed
        } else {
            SessionOutcome::Unchanged
        };
        (self.report, outcome)
    }

    /// Reports a file that can't be read; the others are still read.
    fn record_outcome(&mut self, file: &str, taken: Result<(), FileError>) -> Result<()> {
        match taken {
            Ok(()) => Ok(()),
            Err(FileError::Unreadable(error)) => {
                self.fail(file, &error);
                Ok(())
            }
            Err(FileError::Store(error)) => Err(error),
        }
    }

    fn fail(&mut self, what: &str, error: &io::Error) {
        self.report.fail(FolderFailure::of(self.folder, format!("{what} can't be read: {error}")));
    }

    fn skip(&mut self, line: SkippedLine) {
        self.report.skip(Skipped::line(self.folder, &line.file, line.line, line.reason.clone()));
        if self.has_room_for_skipped() {
            self.skipped.push(line);
        }
    }

    fn has_room_for_skipped(&self) -> bool {
        self.skipped.len() < SKIPPED_KEPT
    }

    fn warn(&mut self, file: &str, line: u64, reason: String) {
        self.report.warn(Skipped::line(self.folder, file, line, reason));
    }

    /// Forgets the invalid lines of a file after its first `lines` lines, because these are read again.
    fn forget_skipped(&mut self, file: &str, lines: u64) {
        self.skipped.retain(|skipped| skipped.file != file || skipped.line <= lines);
    }
}

/// Why a file could not be read.
#[derive(Debug)]
pub(crate) enum FileError {
    /// The file can't be read. This affects only this file.
    Unreadable(io::Error),
    /// The store failed.
    Store(Error),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

impl From<Error> for FileError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}
