//! `sync`: reads session folders into the store.

use std::{collections::BTreeSet, io};

use amplifier_session_storage::{
    SessionStorage, StorageSettings,
    sync::{Skipped, SyncOptions, SyncReport, sync},
};
use serde::Serialize;

use super::{
    masking,
    push::servers,
    pushed::{self, PushedTo},
    store_folder,
};
use crate::{
    app::{App, StoreWriter, with_turns},
    args::{PushArgs, SyncArgs},
    dates::{self, PeriodEnd},
    failure::{Failure, Outcome, say},
    out::Out,
    progress::{PlannedSession, SyncPlan, Syncing},
    render::{
        kept::report_kept,
        summary,
        table::{Column, TableCell, table},
        text::{counted, one_line, size},
    },
    roots,
    unfinished::{TemporaryFolder, told_to_end},
};

/// At most this many skipped lines are listed.
const LISTED: usize = 10;

/// The result as JSON.
#[derive(Serialize)]
struct SyncView<'a> {
    #[serde(flatten)]
    report: &'a SyncReport,
    /// The results of sending to servers.
    #[serde(skip_serializing_if = "is_empty")]
    push: &'a [PushedTo],
}

fn is_empty(pushed: &&[PushedTo]) -> bool {
    pushed.is_empty()
}

/// A dry run as JSON.
#[derive(Serialize)]
struct DryRunView<'a> {
    #[serde(flatten)]
    report: &'a SyncReport,
    /// The sessions that would be read.
    plan: &'a [PlannedSession],
    /// For each server, the stored sessions that it would get, and the number of sessions to be read first.
    #[serde(skip_serializing_if = "is_empty")]
    push: &'a [PushedTo],
}

pub(super) async fn run(app: &mut App, args: SyncArgs) -> Result<Outcome, Failure> {
    let since = dates::parse_optional(args.since.as_deref(), PeriodEnd::Since, &app.now)?;
    // They must exist before a store is created for them.
    let roots = roots::existing(app, &args.root)?;
    let pushing = servers(app, &args.push, args.include_deleted)?;
    let settings = match args.events {
        Some(events) => app.settings_of_secrets()?.with_events(events.into()),
        None => app.settings()?,
    };
    let exclude: Vec<String> = app.config.list("exclude").iter().cloned().chain(args.exclude).collect();
    let captures = app.config.captures();
    let options = |writer: &StoreWriter| {
        SyncOptions::new("", writer.user.clone(), writer.host.clone())
            .with_roots(roots)
            .with_captures(captures)
            .with_since(since)
            .with_exclude(exclude)
            .with_newest(args.newest)
            .with_dry_run(args.dry_run)
            .with_accept_removals(args.accept_removals)
            .with_mirror(args.mirror)
            .with_include_deleted(args.include_deleted)
            .with_verify(args.verify)
    };
    if args.dry_run {
        return dry_run(app, settings, options, &args.push).await;
    }
    let is_new = !app.store_exists()?;
    let writer = app.writer(settings).await?;
    if is_new {
        store_folder::say_warning(app);
    }
    if !masking::is_confirmed(app, &writer.storage, args.yes).await? {
        say("note", "nothing was read or changed");
        return Ok(Outcome::Done);
    }
    let storage = with_turns(writer.storage.clone(), args.turns.choice());
    let report = interruptible(app, &storage, &options(&writer)).await?;
    if !app.out.is_json() {
        let store = app.store_url()?;
        summary::summary(&mut app.out, &report, Some(&store))?;
        app.out.finish()?;
    }
    let pushed = pushing.run(&storage, &writer.user).await;
    if app.out.is_json() {
        app.out.json(&SyncView { report: &report, push: &pushed })?;
    } else {
        pushed.iter().try_for_each(|one| one.print(&mut app.out))?;
    }
    app.out.finish()?;
    report_problems(&report);
    both(outcome(&report), pushed::report(&pushed))
}

/// The outcome of a sync and of what follows it. Both may have failed.
fn both(synced: Result<Outcome, Failure>, pushed: Result<(), Failure>) -> Result<Outcome, Failure> {
    let outcome = synced?;
    pushed.map(|()| outcome)
}

/// Syncs with a progress bar. If the process is told to end meanwhile, reports what is stored.
pub(super) async fn interruptible(
    app: &App,
    storage: &SessionStorage,
    options: &SyncOptions,
) -> Result<SyncReport, Failure> {
    let progress = Syncing::default();
    let ended = tokio::select! {
        report = sync(storage, options, &progress) => Ok(report?),
        code = told_to_end() => Err(code),
    };
    // Tokio keeps catching the signals: they shall end the process at once again.
    tokio::spawn(async { std::process::exit(told_to_end().await.into()) });
    let stored = progress.stored();
    // The bar is cleared first.
    drop(progress);
    ended.map_err(|code| {
        let store = app.store_url().map(|url| format!("; the store is {url}")).unwrap_or_default();
        say("interrupted", &format!("{stored}{store}"));
        say("hint", "run the same command again to continue: it reads only what is not stored yet");
        Failure::Ended(code)
    })
}

/// Reports what would be read. A store that does not exist is not created: a temporary empty one is used instead.
async fn dry_run(
    app: &mut App,
    settings: StorageSettings,
    options: impl FnOnce(&StoreWriter) -> SyncOptions,
    push: &PushArgs,
) -> Result<Outcome, Failure> {
    let empty = TemporaryFolder::create()?;
    let url = if app.store_exists()? { app.store_url()? } else { App::temporary_store(empty.path())? };
    let writer = app.writer_on(&url, settings).await?;
    let plan = SyncPlan::default();
    let report = sync(&writer.storage, &options(&writer), &plan).await?;
    let plan = plan.into_sessions();
    let pushed = servers(app, push, false)?.preview(&writer.storage, &writer.user, &plan).await;
    if app.out.is_json() {
        app.out.json(&DryRunView { report: &report, plan: &plan, push: &pushed })?;
    } else {
        list(&mut app.out, &plan)?;
        app.out.finish()?;
        let found = counted(report.sessions.found, "session");
        say("note", &format!("dry run: {} of {found} would be read", plan.len()));
        pushed.iter().try_for_each(|one| one.print(&mut app.out))?;
    }
    app.out.finish()?;
    report_problems(&report);
    both(outcome(&report), pushed::report(&pushed))
}

/// Prints what would be read: a table on a terminal, tab-separated fields in a pipe.
fn list(out: &mut Out, plan: &[PlannedSession]) -> io::Result<()> {
    if !out.is_terminal() {
        return plan.iter().try_for_each(|PlannedSession { project, session, outcome, bytes, .. }| {
            out.line(&format!("{outcome}\t{}\t{session}\t{}", one_line(project), size(*bytes)))
        });
    }
    if plan.is_empty() {
        return Ok(());
    }
    let columns = [
        Column::text(""),
        Column::text("project").shrinking(1, 8).cut_at_start(),
        Column::text("session").shrinking(2, 16),
        Column::number("size"),
    ];
    let row = |PlannedSession { project, session, outcome, bytes, .. }: &PlannedSession| {
        let cells = [outcome.to_string(), one_line(project), session.to_string(), size(*bytes)];
        cells.map(TableCell::plain).to_vec()
    };
    let rows: Vec<Vec<TableCell>> = plan.iter().map(row).collect();
    out.lines(&table(&columns, &rows, out.width, out.paint))
}

/// The sync fails if sessions failed, but not if lines were skipped.
fn outcome(report: &SyncReport) -> Result<Outcome, Failure> {
    let failed: BTreeSet<_> =
        report.failures.iter().map(|failure| (&failure.project, &failure.session)).collect();
    match failed.len() as u64 {
        0 => Ok(Outcome::Done),
        failed => {
            let message = format!("{} could not be read or stored", counted(failed, "session"));
            Err(Failure::failed(
                message,
                "fix the cause and run `sync` again; it reads only what is not stored yet",
            ))
        }
    }
}

pub(super) fn report_problems(report: &SyncReport) {
    for failure in report.failures.iter().take(LISTED) {
        let session = failure.session.as_deref().unwrap_or_default();
        say(
            "failed",
            &format!("{}/{}: {}", one_line(&failure.project), one_line(session), one_line(&failure.error)),
        );
    }
    for skipped in report.skipped.iter().take(LISTED) {
        say("skipped", &place_and_reason(skipped));
    }
    if report.skipped_count > LISTED as u64 {
        say("skipped", &format!("… and {} more, listed with --json", report.skipped_count - LISTED as u64));
    }
    report_kept(&report.kept, "--accept-removals");
    for warning in report.warnings.iter().take(LISTED) {
        say("warning", &place_and_reason(warning));
    }
    if report.warning_count > LISTED as u64 {
        say("warning", &format!("… and {} more, listed with --json", report.warning_count - LISTED as u64));
    }
    if let Some(reason) = &report.vectors_pending_reason {
        say("warning", &format!("some vectors are still missing: {reason}"));
        say("hint", "the next sync creates them; until then, these messages are found by words only");
    }
    if let Some(problem) = &report.index_problem {
        say("warning", &format!("the search index could not be updated: {problem}"));
        say("hint", "all sessions are stored; delete the folder of the index to have it rebuilt");
    }
}

/// `project/session/file:line: reason`, as far as known.
fn place_and_reason(skipped: &Skipped) -> String {
    let places = [Some(&skipped.project), skipped.session.as_ref(), skipped.file.as_ref()];
    let place = places.into_iter().flatten().map(|place| one_line(place)).collect::<Vec<_>>().join("/");
    let line = skipped.line.map_or_else(String::new, |line| format!(":{line}"));
    format!("{place}{line}: {}", one_line(&skipped.reason))
}
