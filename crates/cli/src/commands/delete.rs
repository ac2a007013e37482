//! `delete`: removes sessions from the store.

use std::{collections::BTreeSet, path::Path};

use amplifier_session_api::{
    ApiAnswer,
    operations::delete::{
        DeletePreviewRequest, DeleteRequest, DeleteResponse, DeletedSession, FileWithWords, KeptSession,
        NotDeleted,
    },
    views::SessionView,
};
use amplifier_session_storage::sync::root_of;

use super::confirm::ChangeQuestion;
use crate::{
    app::App,
    args::{DeleteArgs, quoted},
    failure::{Failure, Outcome, say},
    program,
    render::{
        deleted,
        ids::{ShortIds, short},
        text::{counted, one_line},
    },
    roots::roots,
    words::because,
};

/// The number of sessions that are listed before the question.
const SHOWN: usize = 20;

pub(super) async fn run(app: &mut App, args: DeleteArgs) -> Result<Outcome, Failure> {
    let DeleteArgs { sessions, project, repo, older_than, all, dry_run, yes, .. } = args;
    let request = DeletePreviewRequest {
        sessions,
        project,
        repo: repo.repo,
        older_than,
        all,
        short_ids: true,
        ..DeletePreviewRequest::default()
    };
    request.check(&app.now)?;
    let store = if dry_run { app.own_reader(false).await? } else { app.editor(false).await? };
    // All sessions are found before the first one is deleted, so that a typing error deletes nothing.
    let ApiAnswer { response: mut preview, notices } = store.api(app).delete_preview(&request).await?;
    app.say_notices(&notices);
    let short_ids = std::mem::take(&mut preview.short_ids);
    say_what_is_kept(&preview.keep_text, &short_ids);
    if dry_run {
        return would_delete(app, &preview, &short_ids);
    }
    let sessions = preview.would_delete.unwrap_or_default();
    if !sessions.is_empty() && !yes && !is_confirmed(app, &sessions, &short_ids)? {
        say("note", "nothing was deleted");
        return Ok(Outcome::Done);
    }
    let session_ids = sessions.into_iter().map(|view| view.session.session_id).collect();
    let ApiAnswer { response, .. } = store.api(app).delete(&DeleteRequest { session_ids }).await?;
    if app.out.is_json() {
        app.out.json(&response)?;
    } else {
        let gone = response.deleted.iter().map(|gone| &gone.session);
        deleted::list(&mut app.out, "deleted", gone, &short_ids)?;
    }
    app.out.finish()?;
    say_where_the_files_are(app, &response.deleted);
    outcome(app, &response)
}

/// Says which other sessions contain text of the sessions.
fn say_what_is_kept(kept: &[KeptSession], short_ids: &ShortIds) {
    if kept.is_empty() {
        return;
    }
    let name = |KeptSession { session, relation }: &KeptSession| {
        format!("{} {}", relation.as_str(), short(short_ids, &session.session.session_id))
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
fn would_delete(app: &mut App, preview: &DeleteResponse, short_ids: &ShortIds) -> Result<Outcome, Failure> {
    let sessions = preview.would_delete.as_deref().unwrap_or_default();
    if app.out.is_json() {
        app.out.json(preview)?;
    } else if app.out.is_terminal() {
        let width = app.out.width;
        app.out.lines(&deleted::preview(sessions, short_ids, width))?;
    } else {
        deleted::list(&mut app.out, "would-delete", sessions, short_ids)?;
    }
    app.out.finish()?;
    say("note", &format!("dry run: {} would be deleted", deleted::total(sessions)));
    Ok(Outcome::Done)
}

/// Shows what would be deleted, and asks for confirmation.
fn is_confirmed(app: &App, sessions: &[SessionView], short_ids: &ShortIds) -> Result<bool, Failure> {
    let shown = &sessions[..sessions.len().min(SHOWN)];
    let mut preview = deleted::preview(shown, short_ids, app.out.width);
    if shown.len() < sessions.len() {
        let more = counted((sessions.len() - shown.len()) as u64, "more session");
        preview.push(format!("... and {more}; `--dry-run` lists all"));
    }
    let question = ChangeQuestion {
        change: format!("{} would be deleted", counted(sessions.len() as u64, "session")),
        preview,
        question: format!("Delete {} from the store?", deleted::total(sessions)),
        hint: "pass --yes to delete without asking",
    };
    question.is_confirmed(app)
}

fn say_where_the_files_are(app: &App, gone: &[DeletedSession]) {
    let (files, session) = match gone {
        [] => return,
        [_] => ("its files", "the session"),
        _ => ("their files", "the sessions"),
    };
    let root = |gone: &DeletedSession| {
        let root = root_of(Path::new(gone.folder.as_deref()?))?;
        Some(one_line(&root.to_string_lossy()))
    };
    let folders: BTreeSet<String> = gone.iter().filter_map(root).collect();
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
    // A server reads no files: the machine that has them sends them.
    let again = if app.has_server().unwrap_or_default() {
        format!("`{} sync{root} --include-deleted --push {}` sends", program::name(), app.global.store)
    } else {
        format!("`{} sync{root} --include-deleted` reads", app.program())
    };
    say("hint", &format!("{again} deleted sessions again"));
}

fn outcome(app: &App, response: &DeleteResponse) -> Result<Outcome, Failure> {
    let DeleteResponse { deleted, failed, remains, .. } = response;
    for NotDeleted { session_id, error } in failed {
        say("failed", &format!("{session_id}: {}", one_line(error)));
    }
    let what = match deleted.len() {
        0 => "words of deleted sessions are",
        1 => "the session is deleted, but its words are",
        _ => "the sessions are deleted, but their words are",
    };
    for FileWithWords { file, reason } in remains {
        say("failed", &format!("{what} still in {file}{}", because(reason.as_deref())));
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
