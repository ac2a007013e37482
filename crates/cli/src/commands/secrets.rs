//! `secrets`: lists the secrets in stored sessions, removes them from lines, and ignores what is harmless.

use std::{cmp::Reverse, collections::HashSet};

use amplifier_session_storage::{
    Error,
    backend::SessionQuery,
    model::{Digest, Session, SessionId},
    storage::{Addressed, AddressedLine, SecretIn, SecretsAtRest, SessionSecrets, StoredSecret},
};
use serde::Serialize;

use super::confirm::confirmed;
use crate::{
    app::{App, StoreReader},
    args::SecretsArgs,
    failure::{Failure, Outcome, report_damage, say},
    progress::Bar,
    render::{
        secrets::{self, Addresses, FoundSecret},
        text::{counted, one_line},
    },
};

/// Number of sessions listed at a time.
const PAGE: usize = 1_000;

/// The result as JSON.
#[derive(Serialize)]
struct SecretsView<'a> {
    /// How secrets in stored lines are treated.
    redact: SecretsAtRest,
    /// The number of sessions that were searched.
    searched: u64,
    /// The number of secrets.
    count: u64,
    /// The number of findings that are ignored.
    ignored: u64,
    /// The sessions with secrets.
    sessions: Vec<SessionSecretsView<'a>>,
}

/// A session with secrets as JSON.
#[derive(Serialize)]
struct SessionSecretsView<'a> {
    user_id: &'a str,
    session_id: &'a str,
    project_slug: &'a str,
    count: u64,
    secrets: Vec<SecretView<'a>>,
}

/// A secret as JSON.
#[derive(Serialize)]
struct SecretView<'a> {
    /// The address for `show`.
    address: String,
    #[serde(flatten)]
    secret: &'a StoredSecret,
}

/// The result of `--purge`, `--ignore` and `--unignore` as JSON.
#[derive(Serialize)]
struct ChangeView<'a> {
    address: &'a str,
    /// How many secrets were masked, or how many findings are now ignored or no longer ignored.
    #[serde(flatten)]
    change: Change,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Change {
    Purged(u64),
    Ignored(u64),
    Unignored(u64),
}

pub(super) async fn run(app: &mut App, args: SecretsArgs) -> Result<Outcome, Failure> {
    match (&args.purge, &args.ignore, &args.unignore) {
        (Some(address), ..) => purge(app, address, args.yes).await,
        (_, Some(address), _) => ignore(app, address, true).await,
        (.., Some(address)) => ignore(app, address, false).await,
        _ => list(app, args).await,
    }
}

async fn list(app: &mut App, args: SecretsArgs) -> Result<Outcome, Failure> {
    let reader = app.patient_reader().await?;
    let redact = match app.config.secrets_at_rest()? {
        Some(chosen) => chosen,
        None => reader.storage.secrets().secrets_at_rest().await?,
    };
    let sessions = match redact {
        SecretsAtRest::Off => Vec::new(),
        _ => selected(app, &reader, &args).await?,
    };
    let searched = sessions.len() as u64;
    let mut found = search(&reader, &sessions).await?;
    let damaged: Vec<_> = found.iter_mut().flat_map(|session| std::mem::take(&mut session.damaged)).collect();
    let ignored = found.iter().map(|session| session.ignored).sum();
    found.retain(|session| session.count > 0);
    // The secrets of a session begin with the most certain one.
    found.sort_by_key(|session| Reverse(session.secrets.first().map(|secret| secret.certainty)));
    let count = found.iter().map(|session| session.count).sum();
    let ids = found.iter().map(|session| &session.session_id);
    let addresses = Addresses(reader.storage.sessions().short_ids(&reader.scope, ids).await?);
    if app.out.is_json() {
        let sessions = found.iter().map(|session| view(session, &addresses)).collect();
        app.out.json(&SecretsView { redact, searched, count, ignored, sessions })?;
    } else {
        secrets::list(&mut app.out, &found, &addresses)?;
    }
    app.out.finish()?;
    if redact == SecretsAtRest::Off {
        say(
            "note",
            "nothing was searched, because --redact is off for this store; --redact mark lists its secrets",
        );
    } else if count > 0 {
        let (secrets, sessions) = (counted(count, "secret"), counted(found.len() as u64, "session"));
        let by = secrets::certainties(found.iter().flat_map(|session| &session.secrets));
        say("note", &format!("{secrets} in {sessions}, of {searched} searched: {by}"));
    } else {
        say("note", &format!("no secrets in {}", counted(searched, "session")));
    }
    if ignored > 0 {
        say("note", &format!("{} ignored", counted(ignored, "finding")));
    }
    report_damage(&damaged)?;
    Ok(Outcome::found(count > 0))
}

fn view<'a>(session: &'a SessionSecrets, addresses: &Addresses) -> SessionSecretsView<'a> {
    let of_secret = |secret| SecretView { address: addresses.of(FoundSecret { session, secret }), secret };
    SessionSecretsView {
        user_id: session.user_id.as_str(),
        session_id: session.session_id.as_str(),
        project_slug: session.project_slug.as_str(),
        count: session.count,
        secrets: session.secrets.iter().map(of_secret).collect(),
    }
}

/// Masks the secrets at an address.
async fn purge(app: &mut App, address: &str, yes: bool) -> Result<Outcome, Failure> {
    let reader = app.editor(false).await?;
    let Addressed { session, line, .. } = reader.find_address(address).await?;
    let secrets = reader.storage.secrets().session_secrets(&reader.scope, &session.session_id).await?.secrets;
    let secrets: Vec<_> = secrets.into_iter().filter(|secret| is_at(secret, line)).collect();
    if secrets.is_empty() {
        say("note", &format!("no secrets at {address}"));
        return Ok(Outcome::found(false));
    }
    let what = counted(secrets.len() as u64, "secret");
    if !yes {
        if !app.out.can_ask() {
            let message =
                format!("{what} would be masked, but input is not a terminal to ask for confirmation");
            return Err(Failure::wrong_use(message, "pass --yes to mask without asking"));
        }
        let line = |secret: &StoredSecret| format!("  {}  {}", secret.rule, one_line(&secret.context));
        let preview: Vec<String> = secrets.iter().map(line).collect();
        if !confirmed(&preview, &format!("Mask {what} in the store? This can't be undone."))? {
            say("note", "nothing was changed");
            return Ok(Outcome::Done);
        }
    }
    // A line may have several secrets.
    let mut lines: Vec<Digest> = Vec::new();
    for secret in &secrets {
        if !lines.contains(&secret.line_digest) {
            lines.push(secret.line_digest);
        }
    }
    reader.storage.secrets().purge_secrets(&session.key(), &lines).await?;
    let purged = secrets.len() as u64;
    changed(app, address, Change::Purged(purged), &format!("purged  {address}  {what}"))?;
    say(
        "note",
        "the session's files are not changed; if they still exist, a sync keeps these secrets masked",
    );
    say("hint", "replace a real secret where it is used, and search the store for copies in other sessions");
    Ok(Outcome::Done)
}

/// Adds the findings at an address to those that are ignored, or removes them.
async fn ignore(app: &mut App, address: &str, ignore: bool) -> Result<Outcome, Failure> {
    let reader = app.editor(false).await?;
    let Addressed { session, line, .. } = reader.find_address(address).await?;
    let found = reader.storage.secrets().all_session_secrets(&reader.scope, &session.session_id).await?;
    let findings: Vec<Digest> =
        found.secrets.iter().filter(|secret| is_at(secret, line)).map(|secret| secret.digest).collect();
    let count = reader.storage.secrets().ignore_secrets(&findings, ignore).await?;
    let (verb, change) = if ignore {
        ("ignored", Change::Ignored(count))
    } else {
        ("no longer ignored", Change::Unignored(count))
    };
    changed(app, address, change, &format!("{verb}  {address}  {}", counted(count, "finding")))?;
    Ok(Outcome::found(!findings.is_empty()))
}

fn changed(app: &mut App, address: &str, change: Change, text: &str) -> Result<(), Failure> {
    if app.out.is_json() {
        app.out.json(&ChangeView { address, change })?;
    } else {
        app.out.line(text)?;
    }
    Ok(app.out.finish()?)
}

/// Whether the secret is in the addressed line; without a line, any is.
fn is_at(secret: &StoredSecret, line: Option<AddressedLine>) -> bool {
    match line {
        Some(AddressedLine::Message(sequence)) => {
            secret.kind == SecretIn::Message && secret.sequence == Some(sequence)
        }
        Some(AddressedLine::Event(sequence)) => {
            secret.kind == SecretIn::Event && secret.sequence == Some(sequence)
        }
        _ => true,
    }
}

/// The named sessions, or all that match the filter.
async fn selected(app: &App, reader: &StoreReader, args: &SecretsArgs) -> Result<Vec<Session>, Failure> {
    let project = app.project(reader, args.project.as_deref()).await?;
    let project = args.repo.within(app, reader, project).await?;
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
    let sessions = reader.storage.sessions().all_sessions(query).await?;
    if sessions.is_empty() {
        app.warn_of_unknown_project(reader, &project).await?;
        app.hint_at_others(reader).await?;
    }
    Ok(sessions)
}

/// Searches sessions, with a progress bar.
async fn search(reader: &StoreReader, sessions: &[Session]) -> Result<Vec<SessionSecrets>, Error> {
    let bar = Bar::new(sessions.len() as u64, "searching {wide_bar} {pos}/{len} sessions");
    let ids: Vec<SessionId> = sessions.iter().map(|session| session.session_id.clone()).collect();
    reader.storage.secrets().secrets_of_sessions(&reader.scope, &ids, &mut || bar.add(1)).await
}
