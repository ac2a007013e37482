//! `secrets`: lists the secrets in stored sessions.

use std::collections::HashSet;

use amplifier_session_storage::{
    Error,
    backend::SessionQuery,
    model::{Session, SessionId},
    storage::{SecretsAtRest, SessionSecrets},
};
use serde::Serialize;

use crate::{
    app::{App, Reader},
    args::SecretsArgs,
    failure::{Failure, Outcome, report_damage, say},
    progress::Bar,
    render::{secrets, text::counted},
};

/// Number of sessions listed at a time.
const PAGE: usize = 1_000;

/// The result as JSON.
#[derive(Serialize)]
struct View<'a> {
    /// How secrets in stored lines are treated.
    redact: SecretsAtRest,
    /// The number of sessions that were searched.
    searched: u64,
    /// The number of secrets.
    count: u64,
    /// The sessions with secrets.
    sessions: &'a [SessionSecrets],
}

pub(super) async fn run(app: &mut App, args: SecretsArgs) -> Result<Outcome, Failure> {
    let reader = app.patient_reader().await?;
    let redact = match app.config.secrets_at_rest()? {
        Some(chosen) => chosen,
        None => reader.storage.secrets_at_rest().await?,
    };
    let sessions = match redact {
        SecretsAtRest::Off => Vec::new(),
        _ => selected(app, &reader, &args).await?,
    };
    let searched = sessions.len() as u64;
    let mut found = search(&reader, &sessions).await?;
    let damaged: Vec<_> = found.iter_mut().flat_map(|session| std::mem::take(&mut session.damaged)).collect();
    found.retain(|session| session.count > 0);
    let count = found.iter().map(|session| session.count).sum();
    if app.out.is_json() {
        app.out.json(&View { redact, searched, count, sessions: &found })?;
    } else {
        let ids = found.iter().map(|session| &session.session_id);
        let short_ids = reader.storage.short_ids(&reader.scope, ids).await?;
        for secrets in &found {
            secrets::session(&mut app.out, secrets, &short_ids)?;
        }
    }
    app.out.finish()?;
    if redact == SecretsAtRest::Off {
        say(
            "note",
            "nothing was searched, because --redact is off for this store; --redact mark lists its secrets",
        );
    } else if count > 0 {
        let (secrets, sessions) = (counted(count, "secret"), counted(found.len() as u64, "session"));
        say("note", &format!("{secrets} in {sessions}, of {searched} searched"));
    } else {
        say("note", &format!("no secrets in {}", counted(searched, "session")));
    }
    report_damage(&damaged)?;
    Ok(Outcome::found(count > 0))
}

/// The named sessions, or all that match the filter.
async fn selected(app: &App, reader: &Reader, args: &SecretsArgs) -> Result<Vec<Session>, Failure> {
    let project = app.project(reader, args.project.as_deref()).await?;
    if !args.sessions.is_empty() {
        let (mut sessions, mut seen) = (Vec::new(), HashSet::new());
        for typed in &args.sessions {
            let session = reader.find_session(typed).await?;
            let is_of_project = project.admits(&session);
            if is_of_project && seen.insert(session.key()) {
                sessions.push(session);
            }
        }
        return Ok(sessions);
    }
    let query = SessionQuery::new(reader.scope.clone()).with_filter(project.clone()).with_limit(PAGE);
    let sessions = reader.storage.all_sessions(query).await?;
    if sessions.is_empty() {
        app.warn_of_unknown_project(reader, &project).await?;
        app.hint_at_others(reader).await?;
    }
    Ok(sessions)
}

/// Searches sessions, with a progress bar.
async fn search(reader: &Reader, sessions: &[Session]) -> Result<Vec<SessionSecrets>, Error> {
    let bar = Bar::new(sessions.len() as u64, "searching {wide_bar} {pos}/{len} sessions");
    let ids: Vec<SessionId> = sessions.iter().map(|session| session.session_id.clone()).collect();
    reader.storage.secrets_of_sessions(&reader.scope, &ids, &mut || bar.add(1)).await
}
