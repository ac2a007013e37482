//! `delete`: removes sessions from the store.

use std::{
    collections::{BTreeSet, HashSet},
    path::{Path, PathBuf},
};

use amplifier_session_storage::{
    backend::{Deletion, NotErased, SessionQuery},
    model::{ProjectSlug, Session, SessionKey, Timestamp},
    storage::Relation,
    sync::source_folder,
};
use serde::Serialize;

use super::confirm::confirmed;
use crate::{
    app::{App, StoreReader},
    args::{DeleteArgs, quoted},
    dates::{self, PeriodEnd},
    failure::{Failure, Outcome, say},
    messages::SessionView,
    problems::with_causes,
    render::{
        deleted,
        ids::{ShortIds, short},
        text::{counted, one_line},
    },
    roots::roots,
};

/// How many sessions are listed before the question.
const SHOWN: usize = 20;

/// How many sessions are read at once.
const PAGE: usize = 1_000;

/// The result as JSON.
#[derive(Default, Serialize)]
struct DeleteView<'a> {
    deleted: Vec<DeletedView>,
    failed: &'a [NotDeleted],
    /// The files that still contain words of deleted sessions.
    remains: &'a [NotErasedView],
    /// Other sessions that contain text of the deleted ones.
    keep_text: Vec<KeptView>,
    /// In a dry run, the sessions that would be deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_delete: Option<Vec<SessionView>>,
}

/// A deleted session as JSON.
#[derive(Serialize)]
struct DeletedView {
    #[serde(flatten)]
    session: SessionView,
    /// The folder that it was read from, if known.
    folder: Option<String>,
}

impl From<&Deleted> for DeletedView {
    fn from(Deleted { session, folder }: &Deleted) -> Self {
        let folder = folder.as_ref().map(|folder| folder.to_string_lossy().into_owned());
        Self { session: SessionView::from(session), folder }
    }
}

/// A session that is not deleted, and its relation to a deleted one, as JSON.
#[derive(Serialize)]
struct KeptView {
    #[serde(flatten)]
    session: SessionView,
    relation: Relation,
}

impl From<&(Session, Relation)> for KeptView {
    fn from((session, relation): &(Session, Relation)) -> Self {
        Self { session: SessionView::from(session), relation: *relation }
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

/// A file that still contains words of deleted sessions.
#[derive(Serialize)]
struct NotErasedView {
    file: String,
    reason: String,
}

impl From<NotErased> for NotErasedView {
    fn from(NotErased { file, error }: NotErased) -> Self {
        Self { file: file.to_string_lossy().into_owned(), reason: with_causes(&error) }
    }
}

pub(super) async fn run(app: &mut App, args: DeleteArgs) -> Result<Outcome, Failure> {
    let before = oldest(app, args.older_than.as_deref())?;
    let reader = if args.dry_run { app.own_reader().await? } else { app.editor(false).await? };
    // All sessions are found before the first one is deleted, so that a typing error deletes nothing.
    let sessions = if args.sessions.is_empty() {
        matching(app, &reader, &args, before).await?
    } else {
        found(&reader, &args.sessions).await?
    };
    let keys = sessions.iter().map(Session::key).collect();
    let kept = reader.storage.statistics().sessions_with_text_of(&reader.scope, &keys).await?;
    let ids =
        sessions.iter().chain(kept.iter().map(|(session, _)| session)).map(|session| &session.session_id);
    let short_ids = reader.storage.sessions().short_ids(&reader.scope, ids).await?;
    say_which_folders(&args, &sessions);
    say_what_is_kept(&kept, &short_ids);
    if args.dry_run {
        return would_delete(app, &sessions, &kept, &short_ids);
    }
    if !sessions.is_empty() && !args.yes && !is_confirmed(app, &sessions, &short_ids)? {
        say("note", "nothing was deleted");
        return Ok(Outcome::Done);
    }
    let (gone, failed, remains) = delete(&reader, sessions).await;
    if app.out.is_json() {
        let deleted = gone.iter().map(DeletedView::from).collect();
        let keep_text = kept.iter().map(KeptView::from).collect();
        app.out.json(&DeleteView {
            deleted,
            failed: &failed,
            remains: &remains,
            keep_text,
            would_delete: None,
        })?;
    } else {
        deleted::list(&mut app.out, "deleted", gone.iter().map(|gone| &gone.session), &short_ids)?;
    }
    app.out.finish()?;
    say_where_the_files_are(app, &gone);
    outcome(app, gone.len(), &failed, &remains)
}

/// The time before which the last activity of a session must be.
fn oldest(app: &App, age: Option<&str>) -> Result<Option<Timestamp>, Failure> {
    let Some(age) = age else { return Ok(None) };
    let before = dates::parse(age, PeriodEnd::Since, &app.now)?;
    if before > dates::parse("now", PeriodEnd::Since, &app.now)? {
        let message = format!("--older-than {age} is in the future");
        return Err(Failure::wrong_use(message, "it would match all sessions; --all deletes them"));
    }
    Ok(Some(before))
}

/// The user's sessions that match the filters.
async fn matching(
    app: &App,
    reader: &StoreReader,
    args: &DeleteArgs,
    before: Option<Timestamp>,
) -> Result<Vec<Session>, Failure> {
    let project = app.project(reader, args.project.as_deref()).await?;
    let project = args.repo.within(app, reader, project).await?;
    let query = SessionQuery::new(reader.scope.clone())
        .with_filter(project.clone())
        .with_until(before)
        .with_limit(PAGE);
    let sessions = reader.storage.sessions().all_sessions(query).await?;
    if sessions.is_empty() {
        say("note", "no session matches");
        app.warn_of_unknown_project(reader, &project).await?;
        app.hint_at_others(reader).await?;
    }
    Ok(sessions)
}

/// Says that the sessions of a slug ran in several folders, which may not all be meant.
fn say_which_folders(args: &DeleteArgs, sessions: &[Session]) {
    let Some(typed) = &args.project else { return };
    let is_of_slug = |session: &&Session| {
        let slug = session.working_dir.as_deref().and_then(|folder| ProjectSlug::of_folder(folder).ok());
        slug.as_ref() == Some(&session.project_slug)
    };
    let folders: BTreeSet<String> = sessions
        .iter()
        .filter(is_of_slug)
        .filter_map(|session| Some(one_line(session.working_dir.as_deref()?.trim_end_matches('/'))))
        .collect();
    if folders.len() > 1 {
        let folders = folders.into_iter().collect::<Vec<_>>().join(" and ");
        say("note", &format!("the sessions of {} ran in {folders}", one_line(typed)));
        say("hint", "--project FOLDER names only those that ran in one of them");
    }
}

/// Says which other sessions contain text of the sessions.
fn say_what_is_kept(kept: &[(Session, Relation)], short_ids: &ShortIds) {
    if kept.is_empty() {
        return;
    }
    let name = |(session, relation): &(Session, Relation)| {
        format!("{} {}", relation.as_str(), short(short_ids, &session.session_id))
    };
    let mut names: Vec<String> = kept.iter().take(SHOWN).map(name).collect();
    if kept.len() > SHOWN {
        names.push(format!("{} more (--json lists all)", kept.len() - SHOWN));
    }
    let (contain, stay) = if kept.len() == 1 { ("contains", "stays") } else { ("contain", "stay") };
    let (sessions, names) = (counted(kept.len() as u64, "other session"), names.join(", "));
    say("note", &format!("{sessions} {contain} text of these and {stay} in the store: {names}"));
}

/// Prints what would be deleted.
fn would_delete(
    app: &mut App,
    sessions: &[Session],
    kept: &[(Session, Relation)],
    short_ids: &ShortIds,
) -> Result<Outcome, Failure> {
    if app.out.is_json() {
        let sessions = sessions.iter().map(SessionView::from).collect();
        let keep_text = kept.iter().map(KeptView::from).collect();
        app.out.json(&DeleteView { would_delete: Some(sessions), keep_text, ..DeleteView::default() })?;
    } else if app.out.is_terminal() {
        let width = app.out.width;
        app.out.lines(&deleted::preview(sessions, short_ids, width))?;
    } else {
        deleted::list(&mut app.out, "would-delete", sessions.iter(), short_ids)?;
    }
    app.out.finish()?;
    say("note", &format!("dry run: {} would be deleted", deleted::total(sessions)));
    Ok(Outcome::Done)
}

/// The sessions, without duplicates.
async fn found(reader: &StoreReader, typed: &[String]) -> Result<Vec<Session>, Failure> {
    let mut sessions = Vec::new();
    let mut seen = HashSet::new();
    for typed in typed {
        let session = reader.find_session(typed).await?;
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
    let shown = &sessions[..sessions.len().min(SHOWN)];
    let mut preview = deleted::preview(shown, short_ids, app.out.width);
    if shown.len() < sessions.len() {
        let more = counted((sessions.len() - shown.len()) as u64, "more session");
        preview.push(format!("... and {more}; `--dry-run` lists all"));
    }
    Ok(confirmed(&preview, &format!("Delete {} from the store?", deleted::total(sessions)))?)
}

/// Deletes the sessions. If one fails, the others are still deleted.
async fn delete(
    reader: &StoreReader,
    sessions: Vec<Session>,
) -> (Vec<Deleted>, Vec<NotDeleted>, Vec<NotErasedView>) {
    let mut folders = Vec::with_capacity(sessions.len());
    for session in &sessions {
        folders.push(folder(reader, session).await);
    }
    let keys: Vec<SessionKey> = sessions.iter().map(Session::key).collect();
    let Deletion { deleted, remains } = reader.storage.sessions().delete_sessions(&keys).await;
    let (mut gone, mut failed) = (Vec::new(), Vec::new());
    for ((session, folder), deleted) in sessions.into_iter().zip(folders).zip(deleted) {
        let error = match deleted {
            Ok(true) => {
                gone.push(Deleted { session, folder });
                continue;
            }
            Ok(false) => "it was deleted by another process".to_owned(),
            Err(error) => with_causes(&error),
        };
        failed.push(NotDeleted { session_id: session.session_id.to_string(), error });
    }
    (gone, failed, remains.into_iter().map(NotErasedView::from).collect())
}

/// The folder that a session was read from. It is only for a hint, so errors are ignored.
async fn folder(reader: &StoreReader, session: &Session) -> Option<PathBuf> {
    let stored = reader.storage.backend().get_session(&session.key()).await.ok()??;
    source_folder(&stored.sync_state?)
}

fn say_where_the_files_are(app: &App, gone: &[Deleted]) {
    let (files, session) = match gone {
        [] => return,
        [_] => ("its files", "the session"),
        _ => ("their files", "the sessions"),
    };
    let folders: BTreeSet<String> = gone.iter().filter_map(|gone| root_of(gone.folder.as_deref()?)).collect();
    let usual = roots(app, &[]).unwrap_or_default();
    let is_usual = |folder: &String| usual.iter().any(|root| *root.to_string_lossy() == **folder);
    let root = match folders.first() {
        Some(folder) if folders.len() == 1 && !is_usual(folder) => {
            format!(" --root {}", quoted(folder))
        }
        _ => String::new(),
    };
    let folders = if folders.is_empty() {
        String::new()
    } else {
        format!(" in {}", folders.into_iter().collect::<Vec<_>>().join(" and "))
    };
    say("note", &format!("{files}{folders} are not deleted, and later syncs skip {session}"));
    say("hint", &format!("`{} sync{root} --include-deleted` reads deleted sessions again", app.program()));
}

/// The root of a session folder `<root>/projects/<project>/sessions/<session>`, or with `state/workspaces`.
fn root_of(folder: &Path) -> Option<String> {
    let projects = folder.ancestors().nth(3)?;
    let root =
        if projects.ends_with("state/workspaces") { projects.ancestors().nth(2) } else { projects.parent() };
    Some(one_line(&root?.to_string_lossy()))
}

fn outcome(
    app: &App,
    gone: usize,
    failed: &[NotDeleted],
    remains: &[NotErasedView],
) -> Result<Outcome, Failure> {
    for NotDeleted { session_id, error } in failed {
        say("failed", &format!("{session_id}: {}", one_line(error)));
    }
    let what = match gone {
        0 => "words of deleted sessions are",
        1 => "the session is deleted, but its words are",
        _ => "the sessions are deleted, but their words are",
    };
    for NotErasedView { file, reason } in remains {
        say("failed", &format!("{what} still in {file}: {}", one_line(reason)));
    }
    if !failed.is_empty() {
        let message = format!("{} could not be deleted", counted(failed.len() as u64, "session"));
        return Err(Failure::failed(message, "fix the cause and run the command again"));
    }
    if !remains.is_empty() {
        let hint = format!(
            "the next command that writes to the store erases them, such as `{} sync`",
            app.program()
        );
        return Err(Failure::failed("the words of deleted sessions could not be erased", hint));
    }
    Ok(Outcome::Done)
}
