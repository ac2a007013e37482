//! `delete`: takes sessions out of the store.

use std::{
    collections::HashSet,
    io::{self, BufRead as _, Write as _},
};

use amplifier_session_storage::model::Session;
use serde::Serialize;

use crate::{
    app::{App, Reader},
    args::DeleteArgs,
    failure::{Failure, Outcome, say},
    messages::SessionView,
    render::{
        deleted,
        text::{counted, one_line},
    },
};

/// What became of the sessions, as JSON.
#[derive(Serialize)]
struct View<'a> {
    deleted: Vec<SessionView<'a>>,
    failed: &'a [NotDeleted],
}

/// A session that is still there.
#[derive(Serialize)]
struct NotDeleted {
    session_id: String,
    error: String,
}

pub(super) async fn run(app: &mut App, args: DeleteArgs) -> Result<Outcome, Failure> {
    let reader = app.own_reader(false).await?;
    // All are found before one is deleted: a slip of the keyboard deletes nothing.
    let sessions = found(&reader, &args.sessions).await?;
    if !args.yes && !confirmed(app, &sessions)? {
        say("note", "nothing was deleted");
        return Ok(Outcome::Done);
    }
    let (gone, failed) = delete(&reader, sessions).await;
    if app.out.is_json() {
        app.out.json(&View { deleted: gone.iter().map(SessionView::from).collect(), failed: &failed })?;
    } else {
        deleted::list(&mut app.out, &gone)?;
    }
    app.out.finish()?;
    say_what_a_sync_would_do(app, &gone);
    outcome(&failed)
}

/// The sessions, each once.
async fn found(reader: &Reader, typed: &[String]) -> Result<Vec<Session>, Failure> {
    let mut sessions = Vec::new();
    let mut seen = HashSet::new();
    for typed in typed {
        let session = reader.storage.find_session(&reader.scope, typed).await?;
        if seen.insert(session.key()) {
            sessions.push(session);
        }
    }
    Ok(sessions)
}

/// Shows what would go and asks whether it shall.
fn confirmed(app: &App, sessions: &[Session]) -> Result<bool, Failure> {
    let what = counted(sessions.len() as u64, "session");
    if !app.out.can_ask() {
        let message = format!("{what} would be deleted, and nobody can be asked: input is no terminal");
        return Err(Failure::wrong_use(message, "--yes deletes without asking"));
    }
    let mut stderr = io::stderr().lock();
    for line in deleted::preview(sessions, app.out.width) {
        writeln!(stderr, "{line}")?;
    }
    write!(stderr, "Delete {what} from the store? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    if io::stdin().lock().read_line(&mut answer)? == 0 {
        writeln!(stderr)?;
    }
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Deletes one after the other; what fails does not keep the others.
async fn delete(reader: &Reader, sessions: Vec<Session>) -> (Vec<Session>, Vec<NotDeleted>) {
    let (mut gone, mut failed) = (Vec::new(), Vec::new());
    for session in sessions {
        let (user, project) = (&session.user_id, &session.project_slug);
        let error = match reader.storage.delete_session(user, project, &session.session_id).await {
            Ok(true) => {
                gone.push(session);
                continue;
            }
            Ok(false) => "somebody else deleted or moved it just now".to_owned(),
            Err(error) => error.to_string(),
        };
        failed.push(NotDeleted { session_id: session.session_id.to_string(), error });
    }
    (gone, failed)
}

fn say_what_a_sync_would_do(app: &App, gone: &[Session]) {
    let (files, again, glob) = match gone {
        [] => return,
        [one] => ("its files", "it", one.session_id.as_str()),
        _ => ("their files", "them", "SESSION"),
    };
    let each = if gone.len() > 1 { ", with --exclude once for each," } else { "" };
    let command = format!("{} sync --exclude '*/{glob}'", app.program());
    say("note", &format!("{files} in ~/.amplifier are not touched: a sync takes {again} in again"));
    say("hint", &format!("`{command}`{each} leaves {again} out"));
}

fn outcome(failed: &[NotDeleted]) -> Result<Outcome, Failure> {
    for NotDeleted { session_id, error } in failed {
        say("failed", &format!("{session_id}: {}", one_line(error)));
    }
    match failed.len() as u64 {
        0 => Ok(Outcome::Done),
        count => {
            let message = format!("{} could not be deleted", counted(count, "session"));
            Err(Failure::failed(message, "delete again when the cause is gone"))
        }
    }
}
