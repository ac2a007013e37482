//! Taking in one session folder.

mod damage;
mod logs;
mod metadata;
mod open;

use std::io;

use amplifier_session_core::{
    Error, Result, SessionStorage,
    backend::{SkippedLine, StoredSession},
    blocking,
    model::SessionKey,
    storage::{IngestReport, IngestTarget, SessionIngest},
};

use crate::{
    Failure, Progress, SessionFolder, SessionOutcome, Skipped, SyncOptions, SyncReport,
    files::SessionFiles,
    plan::Planned,
    state::SyncState,
    writer::{Writer, Writing},
};

/// How often a session is begun anew when somebody else wrote it in between.
const ATTEMPTS: usize = 5;
/// How many bad lines of a session are kept in the store.
const SKIPPED_KEPT: usize = 1_000;

/// What every session of a sync is taken in with.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) storage: &'a SessionStorage,
    pub(crate) options: &'a SyncOptions,
    pub(crate) progress: &'a dyn Progress,
}

/// A session folder that was read and compared with the store.
pub(crate) struct Prepared<'a> {
    context: Context<'a>,
    planned: &'a Planned,
    read: Result<Read<'a>>,
}

/// What came of reading.
enum Read<'a> {
    /// There is something to write, perhaps.
    Taken(Box<(Taking<'a>, SessionIngest)>),
    /// There is nothing to write, and this is what became of it.
    Settled(Box<SyncReport>, SessionOutcome),
}

/// A session that is being written.
pub(crate) struct Begun<'a> {
    context: Context<'a>,
    planned: &'a Planned,
    step: Result<Step<'a>>,
}

/// What became of a session.
pub(crate) type Ended = Result<(SyncReport, SessionOutcome)>;

/// How far writing has come.
enum Step<'a> {
    Writing(Box<Taking<'a>>, Writing),
    Settled(Box<SyncReport>, SessionOutcome),
}

/// Reads a session folder. Of a session with more than fits in memory, the first parts are written.
pub(crate) async fn prepare<'a>(context: Context<'a>, planned: &'a Planned) -> Prepared<'a> {
    Prepared { context, planned, read: Taking::read(context, planned).await }
}

impl<'a> Prepared<'a> {
    /// Has it written by `writer`, behind those that came before.
    pub(crate) async fn begin(self, writer: &Writer) -> Begun<'a> {
        let Self { context, planned, read } = self;
        let step = match read {
            Ok(read) => Ok(read.begin(writer).await),
            Err(error) => Err(error),
        };
        Begun { context, planned, step }
    }
}

impl<'a> Read<'a> {
    async fn begin(self, writer: &Writer) -> Step<'a> {
        match self {
            Self::Taken(taken) => {
                let (taking, ingest) = *taken;
                Step::Writing(Box::new(taking), writer.commit(ingest).await)
            }
            Self::Settled(report, outcome) => Step::Settled(report, outcome),
        }
    }
}

impl Begun<'_> {
    /// Waits until it is written. What can't be read is told in the report. Where somebody else wrote the session in
    /// between, it is begun anew.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) async fn end(self, writer: &Writer) -> Ended {
        let Self { context, planned, mut step } = self;
        let mut attempt = 1;
        loop {
            let ended = match step {
                Ok(step) => step.end().await,
                Err(error) => Err(error),
            };
            match ended {
                Err(error) if error.is_retryable() && attempt < ATTEMPTS => {
                    tracing::debug!(session = %planned.folder.session, attempt, %error, "beginning the session anew");
                    attempt += 1;
                    step = prepare(context, planned).await.begin(writer).await.step;
                }
                other => return other,
            }
        }
    }
}

impl Step<'_> {
    async fn end(self) -> Ended {
        match self {
            Self::Writing(taking, writing) => Ok(taking.finish(&writing.done().await?)),
            Self::Settled(report, outcome) => Ok((*report, outcome)),
        }
    }
}

/// One attempt to take in a session folder.
struct Taking<'a> {
    context: Context<'a>,
    folder: &'a SessionFolder,
    /// What is known of the files, from the sync before and from this one.
    state: SyncState,
    /// The bad lines as they are to be stored.
    skipped: Vec<SkippedLine>,
    report: SyncReport,
    /// Whether something changed that the ingest does not count.
    changed: bool,
}

impl<'a> Taking<'a> {
    async fn read(context: Context<'a>, planned: &'a Planned) -> Result<Read<'a>> {
        let folder = &planned.folder;
        let target = IngestTarget {
            key: SessionKey::new(context.options.user.clone(), folder.session.clone()),
            host_id: context.options.host.clone(),
            project_slug: folder.project.clone(),
        };
        let mut ingest = context.storage.ingest(target).await?;
        let mut taking = Self::new(context, folder, ingest.stored());
        if planned.is_known && ingest.stored().is_none() {
            // Somebody deleted it since the sync began.
            return Ok(Read::Settled(Box::new(taking.report), SessionOutcome::Unchanged));
        }
        ingest.set_seen(folder.modified);
        if let Some(had_payloads) = taking.state.is_of_earlier_version() {
            ingest.derive_again(had_payloads == taking.keeps_payloads());
        }
        let path = folder.path.clone();
        match blocking(move || SessionFiles::look(&path)).await? {
            Ok(Some(files)) => taking.files(&mut ingest, &files).await?,
            // It vanished since it was found.
            Ok(None) => return Ok(Read::Settled(Box::new(taking.report), SessionOutcome::Unchanged)),
            Err(error) => {
                taking.fail("the folder", &error);
                return Ok(Read::Settled(Box::new(taking.report), SessionOutcome::Failed));
            }
        }
        if taking.state.is_empty() && !taking.report.failures.is_empty() {
            // There is nothing to store, and a session without anything would look like an empty one.
            return Ok(Read::Settled(Box::new(taking.report), SessionOutcome::Failed));
        }
        taking.save(&mut ingest);
        Ok(Read::Taken(Box::new((taking, ingest))))
    }

    fn new(context: Context<'a>, folder: &'a SessionFolder, stored: Option<&StoredSession>) -> Self {
        let mut state =
            SyncState::of(&folder.project, stored.and_then(|stored| stored.sync_state.as_deref()));
        if context.options.accept_removals {
            state.forget_damage();
        }
        state.set_folder(&folder.path);
        Self {
            context,
            folder,
            state,
            skipped: stored.map_or_else(Vec::new, |stored| stored.skipped.clone()),
            report: SyncReport::default(),
            changed: stored.is_some_and(|stored| stored.session.project_slug != folder.project),
        }
    }

    async fn files(&mut self, ingest: &mut SessionIngest, files: &SessionFiles) -> Result<()> {
        self.metadata(ingest, files).await?;
        self.transcript(ingest, files).await?;
        self.events(ingest, files).await
    }

    /// Has what is known so far stored with the rows that are taken so far.
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

    /// Tells of a file that can't be read, which is no reason to leave the others.
    fn settle(&mut self, file: &str, taken: Result<(), Trouble>) -> Result<()> {
        match taken {
            Ok(()) => Ok(()),
            Err(Trouble::Unreadable(error)) => {
                self.fail(file, &error);
                Ok(())
            }
            Err(Trouble::Store(error)) => Err(error),
        }
    }

    fn fail(&mut self, what: &str, error: &io::Error) {
        self.report.fail(Failure::of(self.folder, format!("{what} can't be read: {error}")));
    }

    fn skip(&mut self, file: &str, line: u64, reason: String) {
        if self.skipped.len() < SKIPPED_KEPT {
            self.skipped.push(SkippedLine { file: file.to_owned(), line, reason: reason.clone() });
        }
        self.report.skip(Skipped::line(self.folder, file, line, reason));
    }

    fn warn(&mut self, file: &str, line: u64, reason: String) {
        self.report.warn(Skipped::line(self.folder, file, line, reason));
    }

    /// Forgets the bad lines of a file that is read again behind its first `lines` lines.
    fn forget_skipped(&mut self, file: &str, lines: u64) {
        self.skipped.retain(|skipped| skipped.file != file || skipped.line <= lines);
    }
}

/// Why a file was not taken in.
#[derive(Debug)]
enum Trouble {
    /// The file can't be read, which concerns this file alone.
    Unreadable(io::Error),
    /// The store failed.
    Store(Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}
