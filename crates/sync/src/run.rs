//! One sync from beginning to end.

use amplifier_session_core::{
    Error, ErrorKind, Result, SessionStorage,
    model::{SessionKey, Timestamp},
};
use futures_util::{StreamExt, future::ready, stream};

use crate::{
    Failure, Progress, SessionOutcome, Stage, SyncOptions, SyncReport,
    embedding::Embedder,
    last::LastSync,
    plan::{Plan, Planned},
    session::{Begun, Context, Ended, Prepared, prepare},
    writer::Writer,
};

/// How many sessions are read at once: much of it is waiting, for files and for what the store has of them.
const READ_AT_ONCE: usize = 2;
/// How many sessions may wait to be written, or be on the way.
const WRITTEN_AT_ONCE: usize = 16;

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
    // Whether another one runs is no matter: the rows are compared when they are written.
    let _turn = storage.backend().begin_sync();
    let mut report = SyncReport { dry_run: options.dry_run, ..SyncReport::default() };
    let plan = Plan::new(storage, options, &mut report).await?;
    report.bytes = plan.bytes();
    progress.stage(Stage::Reading);
    progress.begin(plan.sessions.len() as u64, report.bytes);
    let context = Context { storage, options, progress };
    match options.dry_run {
        true => foretell(context, &plan, &mut report).await?,
        false => {
            carry_out(context, &plan, &mut report).await?;
            if let Err(error) = LastSync::write(storage, options, begun).await {
                tracing::debug!(%error, "the sync can't be remembered");
            }
        }
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
    // Also where no file has changed since an earlier version wrote the store.
    storage.renew().await?;
    if let Some(embedder) = take_in(context, plan, report, None).await? {
        progress.stage(Stage::Embedding);
        report.add_vectors(embedder.finish().await?);
    }
    progress.stage(Stage::Indexing);
    report.index_problem = storage.update_index().await.err().map(|error| error.to_string());
    Ok(())
}

/// Reads and writes the sessions of a plan, up to a time. The answer is what makes their vectors meanwhile, if something
/// does.
pub(crate) async fn take_in(
    context: Context<'_>,
    plan: &Plan,
    report: &mut SyncReport,
    until: Option<Timestamp>,
) -> Result<Option<Embedder>> {
    let Context { storage, options, progress } = context;
    let embedder = Embedder::start(storage, &options.user);
    let writer = Writer::start(storage);
    let mut written = stream::iter(&plan.sessions)
        .take_while(|_| ready(until.is_none_or(|until| storage.now() < until)))
        .map(|planned| read(context, planned))
        .buffered(READ_AT_ONCE)
        .then(|(planned, prepared)| begin(planned, prepared, &writer))
        .map(|(planned, begun)| end(planned, begun, &writer))
        .buffered(WRITTEN_AT_ONCE)
        .boxed();
    while let Some((planned, ended)) = written.next().await {
        let outcome = settle(planned, ended, report).map_err(|error| {
            error
                .with("synced", format_args!("{} of {} sessions", report.sessions.found, plan.sessions.len()))
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

/// Reads one session; nothing of one that is unchanged.
async fn read<'a>(context: Context<'a>, planned: &'a Planned) -> (&'a Planned, Option<Prepared<'a>>) {
    match planned.bytes {
        Some(_) => (planned, Some(prepare(context, planned).await)),
        None => (planned, None),
    }
}

/// Has one session written, behind those before it.
async fn begin<'a>(
    planned: &'a Planned,
    prepared: Option<Prepared<'a>>,
    writer: &Writer,
) -> (&'a Planned, Option<Begun<'a>>) {
    match prepared {
        Some(prepared) => (planned, Some(prepared.begin(writer).await)),
        None => (planned, None),
    }
}

/// Waits until one session is written.
async fn end<'a>(planned: &'a Planned, begun: Option<Begun<'a>>, writer: &Writer) -> (&'a Planned, Ended) {
    match begun {
        Some(begun) => (planned, begun.end(writer).await),
        None => (planned, Ok((SyncReport::default(), SessionOutcome::Unchanged))),
    }
}

/// Reports what became of one session; the error is one that concerns all of them.
fn settle(planned: &Planned, ended: Ended, report: &mut SyncReport) -> Result<SessionOutcome> {
    match ended {
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
