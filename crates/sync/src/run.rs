//! One sync from beginning to end.

use amplifier_session_core::{Error, ErrorKind, Result, SessionStorage, model::SessionKey};

use crate::{
    Failure, Progress, SessionOutcome, Stage, SyncOptions, SyncReport,
    embedding::Embedder,
    plan::{Plan, Planned},
    session::{Context, Prepared, prepare},
};

/// Takes the session folders below a root into `storage`.
///
/// Bad lines, unreadable files and sessions that can't be stored do not stop it: the report names them. Vectors are
/// made beside the reading; where that fails, the messages are stored nevertheless and owe their vectors until a
/// later sync makes them. A sync that is broken off at any moment is completed by the next one.
///
/// # Errors
///
/// `Validation` for a root without `projects` or a bad glob; those of the store that concern all sessions, for example
/// a full disk, with `synced` in their context: how many sessions are done.
pub async fn sync(
    storage: &SessionStorage,
    options: &SyncOptions,
    progress: &dyn Progress,
) -> Result<SyncReport> {
    let begun = storage.now();
    let mut report = SyncReport { dry_run: options.dry_run, ..SyncReport::default() };
    let plan = Plan::new(storage, options, &mut report).await?;
    report.bytes = plan.bytes();
    progress.stage(Stage::Reading);
    progress.begin(plan.sessions.len() as u64, report.bytes);
    let context = Context { storage, options, progress };
    match options.dry_run {
        true => foretell(context, &plan, &mut report).await?,
        false => carry_out(context, &plan, &mut report).await?,
    }
    report.seconds = (storage.now().as_micros() - begun.as_micros()) as f64 / 1e6;
    Ok(report)
}

/// Says what would become of each session.
async fn foretell(context: Context<'_>, plan: &Plan, report: &mut SyncReport) -> Result<()> {
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

async fn carry_out(context: Context<'_>, plan: &Plan, report: &mut SyncReport) -> Result<()> {
    let Context { storage, options, progress } = context;
    storage.pin_user(&options.user).await?;
    let embedder = Embedder::start(storage, &options.user);
    let mut sessions = plan.sessions.iter();
    let mut ready = read(context, sessions.next()).await;
    while let Some((planned, prepared)) = ready.take() {
        // While one session is written, the next is read: the store waits for a disk, and reading for a processor.
        let (outcome, next) = tokio::join!(write(planned, prepared, report), read(context, sessions.next()));
        ready = next;
        let outcome = outcome.map_err(|error| {
            error
                .with("synced", format_args!("{} of {} sessions", report.sessions.found, plan.sessions.len()))
        })?;
        report.count(outcome);
        progress.session(&planned.folder, outcome);
        if let Some(embedder) = embedder.as_ref().filter(|_| outcome != SessionOutcome::Unchanged) {
            embedder.wake();
        }
    }
    if let Some(embedder) = embedder {
        progress.stage(Stage::Embedding);
        report.add_vectors(embedder.finish().await?);
    }
    progress.stage(Stage::Indexing);
    report.index_problem = storage.update_index().await.err().map(|error| error.to_string());
    Ok(())
}

/// Reads one session; nothing of one that is unchanged.
async fn read<'a>(
    context: Context<'a>,
    planned: Option<&'a Planned>,
) -> Option<(&'a Planned, Option<Prepared<'a>>)> {
    let planned = planned?;
    match planned.bytes {
        Some(_) => Some((planned, Some(prepare(context, &planned.folder).await))),
        None => Some((planned, None)),
    }
}

/// Writes one session; the error is one that concerns all of them.
async fn write(
    planned: &Planned,
    prepared: Option<Prepared<'_>>,
    report: &mut SyncReport,
) -> Result<SessionOutcome> {
    let Some(prepared) = prepared else { return Ok(SessionOutcome::Unchanged) };
    match prepared.write().await {
        Ok((found, outcome)) => {
            report.merge(found);
            Ok(outcome)
        }
        Err(error) if concerns_all(&error) => Err(error.with_operation("sync")),
        Err(error) => {
            tracing::warn!(session = %planned.folder.session, %error, "session not taken in");
            report.fail(Failure::of(&planned.folder, error.to_string()));
            Ok(SessionOutcome::Failed)
        }
    }
}

/// Whether the next session would fail in the same way.
fn concerns_all(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageIo
            | ErrorKind::StorageConnection
            | ErrorKind::Authentication
            | ErrorKind::Unsupported
    )
}
