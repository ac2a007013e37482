//! `restore`: writes sessions back as Amplifier's files.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
};

use amplifier_session_storage::{
    model::SessionKey,
    sync::{DifferingFile, NotRestored, RestoreOptions, RestoreProgress, RestoreReport, restore},
};

use crate::{
    app::App,
    args::RestoreArgs,
    failure::{Failure, Outcome, report_damage, say, say_some},
    opened::OpenedStore,
    progress::Bar,
    render::text::{counted, grouped},
    unfinished::Unfinished,
};

/// At most this many files or sessions are listed.
const LISTED: usize = 10;

pub(super) async fn run(app: &mut App, args: RestoreArgs) -> Result<Outcome, Failure> {
    #[cfg(feature = "client")]
    let pulled = super::pull::into_temporary(app, &args.sessions).await?;
    let reader = app.patient_reader().await?;
    let project = app.sessions_of(&reader, &args.place).await?;
    let options = RestoreOptions::new(&args.to, reader.scope.clone())
        .with_filter(project.clone())
        .with_sessions(named(&reader, &args.sessions).await?)
        .with_overwrite(args.overwrite);
    let bar = Bar::new(0, "restoring {wide_bar} {pos}/{len} sessions");
    let progress = Restoring { bar, staging: Mutex::new(None) };
    let report = restore(reader.storage()?, &options, &progress).await?;
    drop(progress);
    let found = report.sessions > 0 || !report.failed.is_empty();
    if app.out.is_json() {
        app.out.json(&report)?;
    } else if found {
        print(app, &report)?;
    }
    app.out.finish()?;
    if !found {
        say("note", "no session matches; nothing was written");
        app.warn_of_unknown_project(&reader, &project).await?;
    }
    say_what_differs(&report.differing);
    let outcome = outcome(&report.failed);
    report_damage(&report.damaged)?;
    outcome?;
    #[cfg(feature = "client")]
    if let Some(pulled) = pulled {
        pulled.report()?;
    }
    Ok(Outcome::found(found))
}

/// The sessions given as arguments; `None` without any.
async fn named(reader: &OpenedStore, typed: &[String]) -> Result<Option<Vec<SessionKey>>, Failure> {
    let mut keys = Vec::new();
    for typed in typed {
        keys.push(reader.find_session(typed).await?.key());
    }
    Ok(Some(keys).filter(|keys| !keys.is_empty()))
}

/// The progress on a bar.
struct Restoring {
    bar: Bar,
    staging: Mutex<Option<Unfinished>>,
}

impl RestoreProgress for Restoring {
    fn begin(&self, sessions: u64) {
        self.bar.set(0, sessions);
    }

    fn staging(&self, folder: &Path) {
        *self.staging.lock().unwrap_or_else(PoisonError::into_inner) = Some(Unfinished::existing(folder));
    }

    fn session(&self, _session: &SessionKey) {
        self.bar.add(1);
    }
}

fn print(app: &mut App, report: &RestoreReport) -> Result<(), Failure> {
    let unchanged = match report.unchanged {
        0 => String::new(),
        unchanged => format!(" ({} unchanged)", grouped(unchanged)),
    };
    app.out.line(&format!("sessions  {}{unchanged}", grouped(report.sessions)))?;
    app.out.line(&format!("messages  {}", grouped(report.messages)))?;
    app.out.line(&format!("events    {}", grouped(report.events)))?;
    Ok(())
}

fn say_what_differs(differing: &[DifferingFile]) {
    let line = |DifferingFile { project, session_id, file, reason, .. }: &DifferingFile| {
        format!("{project}/{session_id}/{file}: {reason}")
    };
    say_some("differs", differing.iter().map(line), LISTED, differing.len() as u64);
}

fn outcome(failed: &[NotRestored]) -> Result<(), Failure> {
    let line = |NotRestored { user_id, session_id, reason, .. }: &NotRestored| {
        format!("{session_id} of {user_id}: {reason}")
    };
    say_some("failed", failed.iter().map(line), LISTED, failed.len() as u64);
    match failed.len() as u64 {
        0 => Ok(()),
        count => {
            let (sessions, were) = (counted(count, "session"), if count == 1 { "was" } else { "were" });
            let hint = "--overwrite replaces existing files; --to another folder leaves them alone";
            Err(Failure::failed(format!("{sessions} {were} not restored"), hint))
        }
    }
}
