//! `delete`: removes sessions from the store.

use std::{
    collections::{BTreeSet, HashSet},
    path::{Path, PathBuf},
};

use amplifier_session_storage::{model::Session, sync::source_folder};
use serde::Serialize;

use super::confirm::confirmed;
use crate::{
    app::{App, Reader},
    args::{DeleteArgs, quoted},
    failure::{Failure, Outcome, say},
    messages::SessionView,
    render::{
        deleted,
        ids::ShortIds,
        text::{counted, one_line},
    },
};

/// The result as JSON.
#[derive(Serialize)]
struct View<'a> {
    deleted: Vec<DeletedView<'a>>,
    failed: &'a [NotDeleted],
}

/// A deleted session as JSON.
#[derive(Serialize)]
struct DeletedView<'a> {
    #[serde(flatten)]
    session: SessionView<'a>,
    /// The folder that it was read from, if known.
    folder: Option<String>,
}

impl<'a> From<&'a Deleted> for DeletedView<'a> {
    fn from(Deleted { session, folder }: &'a Deleted) -> Self {
        let folder = folder.as_ref().map(|folder| folder.to_string_lossy().into_owned());
        Self { session: SessionView::from(session), folder }
    }
}

/// A deleted session, and the folder with its files.
struct Deleted {
    session: Session,
    folder: Option<PathBuf>,
}

/// A session that could not be deleted.
#[derive(Serialize)]
struct NotDeleted {
    session_id: String,
    error: String,
}

pub(super) async fn run(app: &mut App, args: DeleteArgs) -> Result<Outcome, Failure> {
    let reader = app.editor(false).await?;
    // All sessions are found before the first is deleted, so a typing error deletes nothing.
    let sessions = found(&reader, &args.sessions).await?;
    let ids = sessions.iter().map(|session| &session.session_id);
    let short_ids = reader.storage.short_ids(&reader.scope, ids).await?;
    if !args.yes && !is_confirmed(app, &sessions, &short_ids)? {
        say("note", "nothing was deleted");
        return Ok(Outcome::Done);
    }
    let (gone, failed) = delete(&reader, sessions).await;
    if app.out.is_json() {
        app.out.json(&View { deleted: gone.iter().map(DeletedView::from).collect(), failed: &failed })?;
    } else {
        deleted::list(&mut app.out, gone.iter().map(|gone| &gone.session), &short_ids)?;
    }
    app.out.finish()?;
    say_where_the_files_are(app, &gone);
    outcome(&failed)
}

/// The sessions, without duplicates.
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

/// Shows what would be deleted, and asks for confirmation.
fn is_confirmed(app: &App, sessions: &[Session], short_ids: &ShortIds) -> Result<bool, Failure> {
    let what = counted(sessions.len() as u64, "session");
    if !app.out.can_ask() {
        let message = format!("{what} would be deleted, but input is not a terminal to ask for confirmation");
        return Err(Failure::wrong_use(message, "pass --yes to delete without asking"));
    }
    let preview = deleted::preview(sessions, short_ids, app.out.width);
    Ok(confirmed(&preview, &format!("Delete {what} from the store?"))?)
}

/// Deletes the sessions one by one. If one fails, the others are still deleted.
async fn delete(reader: &Reader, sessions: Vec<Session>) -> (Vec<Deleted>, Vec<NotDeleted>) {
    let (mut gone, mut failed) = (Vec::new(), Vec::new());
    for session in sessions {
        let folder = folder(reader, &session).await;
        let (user, project) = (&session.user_id, &session.project_slug);
        let error = match reader.storage.delete_session(user, project, &session.session_id).await {
            Ok(true) => {
                gone.push(Deleted { session, folder });
                continue;
            }
            Ok(false) => "it was deleted or moved by another process".to_owned(),
            Err(error) => error.to_string(),
        };
        failed.push(NotDeleted { session_id: session.session_id.to_string(), error });
    }
    (gone, failed)
}

/// The folder that a session was read from. It is only for a hint, so errors are ignored.
async fn folder(reader: &Reader, session: &Session) -> Option<PathBuf> {
    let stored = reader.storage.backend().get_session(&session.key()).await.ok()??;
    source_folder(&stored.sync_state?)
}

fn say_where_the_files_are(app: &App, gone: &[Deleted]) {
    let (files, session) = match gone {
        [] => return,
        [_] => ("its files", "the session"),
        _ => ("their files", "the sessions"),
    };
    let places: BTreeSet<String> = gone.iter().filter_map(|gone| place(gone.folder.as_deref()?)).collect();
    let usual = app.default_root().ok().map(|root| root.to_string_lossy().into_owned());
    let root = match places.first() {
        Some(place) if places.len() == 1 && usual.as_ref() != Some(place) => {
            format!(" --root {}", quoted(place))
        }
        _ => String::new(),
    };
    let places = match places.is_empty() {
        true => String::new(),
        false => format!(" in {}", places.into_iter().collect::<Vec<_>>().join(" and ")),
    };
    say("note", &format!("{files}{places} are not deleted, and later syncs skip {session}"));
    say("hint", &format!("`{} sync{root} --include-deleted` reads deleted sessions again", app.program()));
}

/// The root of a session folder `<root>/projects/<project>/sessions/<session>`.
fn place(folder: &Path) -> Option<String> {
    Some(one_line(&folder.ancestors().nth(4)?.to_string_lossy()))
}

fn outcome(failed: &[NotDeleted]) -> Result<Outcome, Failure> {
    for NotDeleted { session_id, error } in failed {
        say("failed", &format!("{session_id}: {}", one_line(error)));
    }
    match failed.len() as u64 {
        0 => Ok(Outcome::Done),
        count => {
            let message = format!("{} could not be deleted", counted(count, "session"));
            Err(Failure::failed(message, "fix the cause and run the command again"))
        }
    }
}
