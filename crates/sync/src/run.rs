//! Runs a sync.

use amplifier_session_core::{Error, ErrorKind, Result, SessionStorage, model::SessionKey, text::counted};
use futures_util::{StreamExt, future::ready, stream};

use crate::{
    embedding::Embedder,
    last::LastSync,
    options::SyncOptions,
    plan::{Plan, Planned},
    progress::{Progress, SessionOutcome, Stage},
    report::{FolderFailure, SyncReport},
    repository::RepositoryCache,
    session::{self, Context, Ended},
    unchanged,
    writer::BackgroundWriter,
};

/// Number of sessions to read at once: most of the time is spent waiting for files and for the store.
const READ_AT_ONCE: usize = 2;
/// Number of sessions that may wait to be written or be written at the same time.
const WRITTEN_AT_ONCE: usize = 16;

/// Reads the session folders in roots into `storage`.
///
/// Invalid lines, unreadable files and sessions that can't be stored do not stop it: the report lists them. Vectors are
/// made while sessions are read. If that fails, the messages are still stored, and a later sync makes their vectors. If
/// a sync is interrupted at any moment, the next one completes it.
///
/// # Errors
///
/// `Validation` for a root without `projects` or an invalid glob; errors of the store that affect all sessions, for
/// example a full disk, with the number of finished sessions in their context as `synced`.
pub async fn sync(
    storage: &SessionStorage,
    options: &SyncOptions,
    progress: &dyn Progress,
) -> Result<SyncReport> {
    sync_while(storage, options, progress, &|| true).await
}

/// As [`sync`], but begins no further session once `more` returns false.
pub(crate) async fn sync_while(
    storage: &SessionStorage,
    options: &SyncOptions,
    progress: &dyn Progress,
    more: More<'_>,
) -> Result<SyncReport> {
    let begun = storage.now();
    // Another sync may run at the same time: rows are compared when they are written.
    let _turn = storage.backend().begin_sync();
    let mut report = SyncReport { dry_run: options.dry_run, ..SyncReport::default() };
    if options.verify || options.accepts_removals() {
        // If this sync is interrupted, sessions must be read again although their files have not changed.
        unchanged::forget(storage);
    }
    if !options.dry_run {
        report.secrets_masked_in_store = storage.secrets().apply_secrets_setting().await?;
    }
    let plan = Plan::new(storage, options, &mut report).await?;
    report.bytes = plan.bytes();
    progress.stage(Stage::Reading);
    progress.begin(plan.sessions.len() as u64, report.bytes);
    let context = Context { storage, options, progress, repositories: &RepositoryCache::default() };
    if options.dry_run {
        dry_run(context, &plan, &mut report).await?;
    } else {
        write_sessions(context, &plan, &mut report, more).await?;
        if more()
            && let Err(error) = LastSync::write(storage, options, begun).await
        {
            tracing::debug!(%error, "the options of the sync can't be stored");
        }
    }
    report.seconds = (storage.now().as_micros() - begun.as_micros()) as f64 / 1e6;
    Ok(report)
}

/// Reads some sessions, as long as `more` returns true. Makes no vectors, and does not update the index.
///
/// # Errors
///
/// As [`sync`].
#[cfg(feature = "watch")]
pub(crate) async fn sync_changed(
    context: Context<'_>,
    changed: crate::changed::Changed,
    more: More<'_>,
) -> Result<SyncReport> {
    let Context { storage, options, .. } = context;
    let begun = storage.now();
    let _turn = storage.backend().begin_sync();
    // Another process may have chosen another setting for the store.
    let secrets_masked_in_store = storage.secrets().apply_secrets_setting().await?;
    let mut report = SyncReport { secrets_masked_in_store, ..SyncReport::default() };
    let plan = Plan::of_changed(storage, options, changed, &mut report).await?;
    report.bytes = plan.bytes();
    ingest(context, &plan, &mut report, more).await?;
    report.seconds = (storage.now().as_micros() - begun.as_micros()) as f64 / 1e6;
    Ok(report)
}

/// Reports what would happen to each session.
async fn dry_run(context: Context<'_>, plan: &Plan, report: &mut SyncReport) -> Result<()> {
    for planned in &plan.sessions {
        let outcome = match planned.bytes {
            None => SessionOutcome::Unchanged,
            Some(_) if is_stored(context, planned).await? => SessionOutcome::Changed,
            Some(_) => SessionOutcome::New,
        };
        report.count(outcome);
        context.progress.session(&planned.folder, outcome);
    }
    Ok(())
}

async fn is_stored(context: Context<'_>, planned: &Planned) -> Result<bool> {
    let key = SessionKey::new(context.options.user.clone(), planned.folder.session.clone());
    Ok(planned.is_known || context.storage.backend().get_session(&key).await?.is_some())
}

async fn write_sessions(
    context: Context<'_>,
    plan: &Plan,
    report: &mut SyncReport,
    more: More<'_>,
) -> Result<()> {
    let Context { storage, options, progress, .. } = context;
    storage.users().pin_user(&options.user).await?;
    // Even if no file has changed since an earlier version wrote the store.
    storage.rederivation().rederive().await?;
    if let Some(embedder) = ingest(context, plan, report, more).await? {
        progress.stage(Stage::Embedding);
        report.add_vectors(embedder.finish().await?);
    }
    progress.stage(Stage::Indexing);
    report.index_problem = storage.update_index_if_due().await.err().map(|error| error.to_string());
    Ok(())
}

/// Whether to begin another session.
pub(crate) type More<'a> = &'a (dyn Fn() -> bool + Sync);

/// Reads and writes the sessions of a plan, as long as `more` returns true. Returns the task that makes their vectors,
/// if there is an embedding provider.
pub(crate) async fn ingest(
    context: Context<'_>,
    plan: &Plan,
    report: &mut SyncReport,
    more: More<'_>,
) -> Result<Option<Embedder>> {
    let Context { storage, options, progress, .. } = context;
    let embedder = Embedder::start(storage, &options.user);
    let writer = BackgroundWriter::start(storage);
    // Reading waits for the processor and writing for the disk, so both go on at the same time. Both keep the order.
    let mut written = stream::iter(&plan.sessions)
        .take_while(|_| ready(more()))
        .map(|planned| async move { (planned, session::read(context, planned).await) })
        .buffered(READ_AT_ONCE)
        .then(async |(planned, read)| (planned, session::queue(read, &writer).await))
        .map(async |(planned, written)| (planned, session::finish(context, planned, written, &writer).await))
        .buffered(WRITTEN_AT_ONCE)
        .boxed();
    while let Some((planned, ended)) = written.next().await {
        let outcome = finish(planned, ended, report).map_err(|error| {
            error.with(
                "synced",
                format_args!(
                    "{} of {}",
                    report.sessions.found,
                    counted(plan.sessions.len() as u64, "session")
                ),
            )
        })?;
        report.count(outcome);
        progress.session(&planned.folder, outcome);
        if let Some(embedder) = embedder.as_ref().filter(|_| outcome != SessionOutcome::Unchanged) {
            embedder.wake();
        }
    }
    drop(written);
    Ok(embedder)
}

/// Adds the outcome of a session to the report. Returns errors that affect all sessions.
fn finish(planned: &Planned, ended: Ended, report: &mut SyncReport) -> Result<SessionOutcome> {
    match ended {
        Ok((found, outcome)) => {
            report.merge(found);
            Ok(outcome)
        }
        Err(error) if affects_all(&error) => Err(error.with_operation("sync")),
        Err(error) => {
            tracing::warn!(session = %planned.folder.session, %error, "session could not be read");
            report.fail(FolderFailure::of(&planned.folder, error.to_string()));
            Ok(SessionOutcome::Failed)
        }
    }
}

/// Whether the error affects all sessions.
pub(crate) fn affects_all(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageIo
            | ErrorKind::StorageConnection
            | ErrorKind::Authentication
            | ErrorKind::Unsupported
    )
}
