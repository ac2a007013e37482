//! Takes sessions from a server: `copy --from https://…` and `restore --store https://…`.

use std::collections::BTreeSet;

use amplifier_session_client::{HttpStore, ServerAddress};
use amplifier_session_storage::{
    Error, SessionStorage, StoreUrl,
    model::SessionId,
    storage::{PullOptions, PullReport, TransferFailure, TransferProgress},
};
use serde::Serialize;

use crate::{
    app::{App, check_writable},
    args::{CopyArgs, ScopeArg},
    failure::{Failure, Outcome, say, say_some},
    progress::Bar,
    render::text::{counted, grouped, one_line},
    server_store::{connect, server_of},
    unfinished::TemporaryFolder,
};

/// At most this many sessions that were not taken are listed.
const LISTED: usize = 20;

/// The result of a copy as JSON.
#[derive(Serialize)]
struct PulledView<'a> {
    from: String,
    to: String,
    #[serde(flatten)]
    report: &'a PullReport,
}

/// A copy of the sessions of a server, which is deleted when this is dropped.
pub(super) struct PulledStore {
    _folder: TemporaryFolder,
    report: PullReport,
}

/// Copies the sessions of a server to a store.
pub(super) async fn copy(app: &mut App, from: ServerAddress, args: CopyArgs) -> Result<Outcome, Failure> {
    let is_narrowed =
        !args.place.projects.is_empty() || args.place.repo.repo.is_some() || args.since.is_some();
    if is_narrowed || args.replace {
        let options = if args.replace { "--replace" } else { "--project, --repo and --since" };
        let message =
            format!("{options} can't be used with a server, which gives all sessions of its token's user");
        return Err(Failure::wrong_use(message, "copy them to a new store, and from there to the other one"));
    }
    check_scope(app)?;
    if args.follow {
        return super::follow::follow(app, from, &args).await;
    }
    let server = connect(app, from, true)?;
    let to = StoreUrl::parse(&args.to, app.home.as_deref())?;
    let writer = app.writer_on(&to, app.settings_of_secrets()?).await?;
    check_writable(&writer.storage)?;
    let options = PullOptions::new(writer.user).with_include_deleted(args.include_deleted);
    let pulled = pull(&server, &writer.storage, &options).await;
    // Also after an error, because the sessions before it are stored.
    let indexed = writer.storage.update_index().await;
    let report = pulled?;
    indexed?;
    print(app, server.address(), &to, &report)?;
    explain(&report, server.address())?;
    let found = report.sessions + report.unchanged > 0 || !report.deleted.is_empty();
    if !found {
        say("note", &format!("there are no sessions of yours at {}", server.address()));
    }
    Ok(Outcome::found(found))
}

/// If the selected store is a server, takes the named sessions from it, or all, into a temporary store, which becomes the
/// selected one.
pub(super) async fn into_temporary(
    app: &mut App,
    sessions: &[String],
) -> Result<Option<PulledStore>, Failure> {
    let Some(from) = server_of(&app.global.store)? else { return Ok(None) };
    check_scope(app)?;
    let server = connect(app, from, true)?;
    let mut options = PullOptions::new(app.who()?.0.user_id);
    if !sessions.is_empty() {
        let mut ids = BTreeSet::<SessionId>::new();
        for session in sessions {
            ids.insert(server.find_session(session).await?);
        }
        options = options.with_sessions(Some(ids));
    }
    let folder = TemporaryFolder::create()?;
    let url = App::temporary_store(folder.path())?;
    let storage = app.open(&url, app.open_options()?.with_read_only(false)).await?;
    let report = pull(&server, &storage, &options).await?;
    app.global.store = url.to_string();
    Ok(Some(PulledStore { _folder: folder, report }))
}

impl PulledStore {
    /// Lists the sessions that could not be taken, and fails if there are any.
    pub(super) fn report(&self) -> Result<(), Failure> {
        failures(&self.report)
    }
}

/// A server gives only the sessions of the user of its token.
fn check_scope(app: &App) -> Result<(), Failure> {
    if app.global.scope == ScopeArg::Own {
        return Ok(());
    }
    let message = format!("--scope {} can't be used with a server", app.global.scope.as_str());
    Err(Failure::wrong_use(message, "a server gives the sessions of its token's user"))
}

/// Takes what the store lacks.
pub(super) async fn pull(
    server: &HttpStore,
    storage: &SessionStorage,
    options: &PullOptions,
) -> Result<PullReport, Error> {
    let bar = Bar::new(0, "taking {wide_bar} {pos}/{len} sessions");
    let on_progress = |progress: TransferProgress| bar.set(progress.done, progress.total);
    storage.exchange().pull(server, options, &on_progress).await
}

fn print(app: &mut App, from: &ServerAddress, to: &StoreUrl, report: &PullReport) -> Result<(), Failure> {
    if app.out.is_json() {
        app.out.json(&PulledView { from: from.to_string(), to: to.to_string(), report })?;
        return Ok(app.out.finish()?);
    }
    let there = match report.unchanged {
        0 => String::new(),
        unchanged => format!(", {} already there", grouped(unchanged)),
    };
    app.out.line(&format!("sessions   {} copied{there}", grouped(report.sessions)))?;
    app.out.line(&format!("messages   {}", grouped(report.messages)))?;
    app.out.line(&format!("events     {}", grouped(report.events)))?;
    if report.superseded > 0 {
        app.out.line(&format!("superseded lines  {}", grouped(report.superseded)))?;
    }
    if report.secrets_masked > 0 {
        app.out.line(&format!("masked     {}", counted(report.secrets_masked, "secret")))?;
    }
    Ok(app.out.finish()?)
}

fn explain(report: &PullReport, from: &ServerAddress) -> Result<(), Failure> {
    if !report.deleted.is_empty() {
        let sessions = counted(report.deleted.len() as u64, "session");
        say("note", &format!("{sessions} of {from} were deleted from the target, and were not copied"));
        say("hint", "--include-deleted also copies them");
    }
    failures(report)
}

fn failures(report: &PullReport) -> Result<(), Failure> {
    let line = |TransferFailure { session_id, reason }: &TransferFailure| {
        format!("{session_id}: {}", one_line(reason))
    };
    say_some("failed", report.failed.iter().map(line), LISTED, report.failed.len() as u64);
    match report.failed.len() as u64 {
        0 => Ok(()),
        count => {
            let message = format!("{} could not be taken from the server", counted(count, "session"));
            Err(Failure::failed(message, "run the same command again: it takes only what is missing"))
        }
    }
}
