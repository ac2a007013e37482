//! `export` and `import`: sessions as a file, from store to store.

use std::{fs::File, io::BufReader};

use amplifier_session_storage::{
    Scope, StorageSettings,
    search::SessionFilter,
    storage::{ImportOptions, ImportReport},
};

use crate::{
    app::App,
    args::{ExportArgs, ImportArgs, ScopeArg},
    failure::{Failure, Outcome, say},
    file::WholeFile,
    render::text::{counted, grouped},
};

/// The most refused sessions that are listed.
const LISTED: usize = 10;

pub(super) async fn export(app: &mut App, args: ExportArgs) -> Result<Outcome, Failure> {
    let reader = app.reader(false).await?;
    let mut filter = SessionFilter::default();
    if let Some(project) = args.project.clone() {
        filter = filter.with_project(project);
    }
    let scope = match &args.session {
        None => reader.scope.clone(),
        Some(session) => {
            let found = reader.storage.find_session(&reader.scope, session).await?;
            filter = filter.with_session(found.session_id);
            // Several users may have a session of this id.
            Scope::User(found.user_id)
        }
    };
    let mut file = WholeFile::begin(&args.out)?;
    let report = reader.storage.export_sessions(&scope, filter, file.writer()).await?;
    if report.sessions > 0 {
        file.place()?;
    }
    if app.out.is_json() {
        app.out.json(&report)?;
    } else if report.sessions > 0 {
        let (messages, events) = (counted(report.messages, "message"), counted(report.events, "event"));
        let sessions = counted(report.sessions, "session");
        app.out.line(&format!("{sessions}, {messages}, {events} in {}", args.out.display()))?;
    }
    app.out.finish()?;
    if report.sessions == 0 {
        say("note", "no session matches, and no file was made");
        app.warn_of_unknown_project(&reader, args.project.as_ref()).await?;
    }
    Ok(Outcome::found(report.sessions > 0))
}

pub(super) async fn import(app: &mut App, args: ImportArgs) -> Result<Outcome, Failure> {
    let file = File::open(&args.file).map_err(|error| {
        let message = format!("can't read {}: {error}", args.file.display());
        Failure::failed(message, "`export --out FILE` writes what `import` reads")
    })?;
    let writer = app.writer(StorageSettings::default()).await?;
    let owner = (app.global.scope != ScopeArg::All).then(|| writer.user.clone());
    let options = ImportOptions::default().with_replace(args.replace).with_owner(owner);
    writer.storage.pin_user(&writer.user).await?;
    let imported = writer.storage.import_sessions(&mut BufReader::new(file), &options).await;
    // Also where it stopped: what was read before is stored.
    writer.storage.backend().update_index().await?;
    let report = imported?;
    if app.out.is_json() {
        app.out.json(&report)?;
    } else {
        let replaced = match report.replaced {
            0 => String::new(),
            replaced => format!(" ({} replaced)", grouped(replaced)),
        };
        app.out.line(&format!("sessions  {}{replaced}", grouped(report.sessions)))?;
        app.out.line(&format!("messages  {}", grouped(report.messages)))?;
        app.out.line(&format!("events    {}", grouped(report.events)))?;
    }
    app.out.finish()?;
    outcome(app, &report)
}

fn outcome(app: &App, report: &ImportReport) -> Result<Outcome, Failure> {
    if report.refused.is_empty() {
        if report.messages > 0 {
            say("hint", &format!("`{} backfill` makes the vectors", app.program()));
        }
        return Ok(Outcome::Done);
    }
    for refused in report.refused.iter().take(LISTED) {
        say("refused", &format!("{} of {}: {}", refused.session_id, refused.user_id, refused.reason));
    }
    if report.refused.len() > LISTED {
        say("refused", &format!("… and {} more", report.refused.len() - LISTED));
    }
    let message = match report.refused.len() {
        1 => "1 session was not taken".to_owned(),
        more => format!("{} sessions were not taken", grouped(more as u64)),
    };
    Err(Failure::failed(
        message,
        "--replace lets sessions take the place of others; --scope all takes those of other users",
    ))
}
