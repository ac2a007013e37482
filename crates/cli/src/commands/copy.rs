//! `copy`: copies sessions from one store to another.

use std::path::{Path, PathBuf};

use amplifier_session_storage::{
    SessionStorage, StoreUrl,
    search::SessionFilter,
    storage::{CopyOptions, CopyProgress, CopyReport, NotCopied, NotCopiedBecause},
};
use serde::Serialize;

use crate::{
    app::{App, check_writable},
    args::{CopyArgs, quoted},
    dates::{self, PeriodEnd},
    failure::{Failure, Outcome, say},
    opened::OpenedStore,
    program,
    progress::Bar,
    render::text::{counted, grouped, one_line},
};

/// At most this many sessions that were not copied are listed.
const LISTED: usize = 20;

/// The result as JSON.
#[derive(Serialize)]
struct CopyView<'a> {
    from: String,
    to: String,
    #[serde(flatten)]
    report: &'a CopyReport,
}

pub(super) async fn run(app: &mut App, args: CopyArgs) -> Result<Outcome, Failure> {
    if let Some(from) = &args.from {
        app.global.store.clone_from(from);
    }
    #[cfg(feature = "client")]
    if let Some(server) = crate::server_store::server_of(&app.global.store)? {
        return super::pull::copy(app, server, args).await;
    }
    if args.follow {
        return Err(Failure::wrong_use(
            "--follow needs a server to copy from",
            "for example --from https://sessions.example.com",
        ));
    }
    let from = app.store_url()?;
    let to = StoreUrl::parse(&args.to, app.home.as_deref())?;
    check_different(&from, &to)?;
    // Nothing is written to the source, so other programs may read it meanwhile.
    app.global.read_only = from.backend().read_only;
    let reader = app.open_reader(false).await?;
    let project = app.sessions_of(&reader, &args.place).await?;
    let since =
        args.since.as_deref().map(|since| dates::parse(since, PeriodEnd::Since, &app.now)).transpose()?;
    let options = CopyOptions::new(reader.scope.clone())
        .with_filter(project.clone())
        .with_since(since)
        .with_replace(args.replace)
        .with_include_deleted(args.include_deleted);
    let storage = target(app, &reader, &to).await?;
    let bar = Bar::new(0, "copying {wide_bar} {pos}/{len} rows, {eta} left");
    let on_copied = |progress: CopyProgress| bar.set(progress.done, progress.total);
    let copied = reader.storage()?.copying().copy_to(&storage, &options, &on_copied).await;
    drop(bar);
    // Also after an error, because the sessions before it are copied.
    let indexed = storage.update_index().await;
    let report = copied?;
    indexed?;
    print(app, &from, &to, &report)?;
    explain(app, &reader, &report, &project, &to).await
}

/// Refuses to copy a store to itself.
fn check_different(from: &StoreUrl, to: &StoreUrl) -> Result<(), Failure> {
    let resolved = |file: &Path| -> PathBuf { file.canonicalize().unwrap_or_else(|_| file.to_owned()) };
    let is_same = match (from.file(), to.file()) {
        (Some(from), Some(to)) => resolved(from) == resolved(to),
        _ => from.to_string() == to.to_string(),
    };
    if !is_same {
        return Ok(());
    }
    Err(Failure::wrong_use(
        format!("{to} is both the source and the target"),
        "choose another store with --to URL",
    ))
}

/// Opens the target, and creates it if it does not exist.
async fn target(app: &App, reader: &OpenedStore, to: &StoreUrl) -> Result<SessionStorage, Failure> {
    let space = reader.storage()?.vectors().embedding_space().await?;
    let options = app
        .open_options()?
        .with_read_only(false)
        .with_dimensions(space.map(|space| space.dimensions))
        .with_settings(app.settings_of_secrets()?);
    let storage = app.open(to, options).await?;
    check_writable(&storage)?;
    Ok(storage)
}

fn print(app: &mut App, from: &StoreUrl, to: &StoreUrl, report: &CopyReport) -> Result<(), Failure> {
    if app.out.is_json() {
        app.out.json(&CopyView { from: from.to_string(), to: to.to_string(), report })?;
        return Ok(app.out.finish()?);
    }
    let mut sessions = format!("{} copied and verified", grouped(report.sessions));
    if report.replaced > 0 {
        sessions.push_str(&format!(" ({} replaced)", grouped(report.replaced)));
    }
    if report.unchanged > 0 {
        sessions.push_str(&format!(", {} already there", grouped(report.unchanged)));
    }
    app.out.line(&format!("sessions   {sessions}"))?;
    app.out.line(&format!("messages   {}", grouped(report.messages)))?;
    app.out.line(&format!("events     {}", grouped(report.events)))?;
    app.out.line(&format!("vectors    {}", grouped(report.vectors)))?;
    if report.turns > 0 {
        app.out.line(&format!("turns      {}", grouped(report.turns)))?;
    }
    if report.summaries > 0 {
        app.out.line(&format!("summaries  {}", grouped(report.summaries)))?;
    }
    if report.superseded > 0 {
        app.out.line(&format!("superseded lines  {}", grouped(report.superseded)))?;
    }
    if report.deletions > 0 {
        app.out.line(&format!("remembered deletions  {}", grouped(report.deletions)))?;
    }
    Ok(app.out.finish()?)
}

/// Prints what was not copied, and why.
async fn explain(
    app: &App,
    reader: &OpenedStore,
    report: &CopyReport,
    project: &SessionFilter,
    to: &StoreUrl,
) -> Result<Outcome, Failure> {
    if let (Some(ours), Some(theirs)) = (&report.space, &report.other_space) {
        say(
            "note",
            &format!("no vectors were copied: the source has vectors of {ours}, and the target of {theirs}"),
        );
        if report.messages > 0 {
            let program = format!("{} --store {}", program::name(), quoted(&to.to_string()));
            say("hint", &format!("`{program} embeddings backfill` creates vectors for the copied messages"));
        }
    }
    for NotCopied { user_id, session_id, because, reason, .. } in report.not_copied.iter().take(LISTED) {
        say(because.as_str(), &format!("{session_id} of {user_id}: {}", one_line(reason)));
    }
    if report.not_copied.len() > LISTED {
        say("note", &format!("… and {} more", grouped((report.not_copied.len() - LISTED) as u64)));
    }
    if report.sessions + report.unchanged == 0 && report.not_copied.is_empty() {
        say("note", "no session matches");
        app.warn_of_unknown_project(reader, project).await?;
        app.hint_at_others(reader).await?;
        return Ok(Outcome::FoundNothing);
    }
    let has = |because| report.not_copied.iter().any(|session| session.because == because);
    if has(NotCopiedBecause::Deleted) {
        say("hint", "--include-deleted also copies sessions that were deleted from the target");
    }
    if report.is_complete() {
        return Ok(Outcome::Done);
    }
    // Sessions that were deleted from the target are left out on purpose, so this is no failure.
    let is_left = |session: &&NotCopied| session.because != NotCopiedBecause::Deleted;
    let left = report.not_copied.iter().filter(is_left).count() as u64;
    let were = if left == 1 { "was" } else { "were" };
    Err(Failure::failed(format!("{} {were} not copied", counted(left, "session")), hint(has)))
}

/// Advice about the sessions that were not copied.
fn hint(has: impl Fn(NotCopiedBecause) -> bool) -> &'static str {
    if has(NotCopiedBecause::Conflict) {
        "--replace replaces sessions of the target with those of the source"
    } else if has(NotCopiedBecause::Damaged) {
        "`verify --repair` repairs the source from the session folders; `export` skips damaged rows"
    } else {
        "run the command again"
    }
}
