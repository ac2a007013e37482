//! `secrets`: lists the secrets in stored sessions, removes them from lines, and ignores what is harmless.

use amplifier_session_api::{
    ApiAnswer,
    operations::{
        ignore_secrets::{IgnoreSecretsRequest, IgnoredChange},
        purge_secrets::{PurgePreview, PurgePreviewRequest, PurgeSecretsRequest},
        secrets::{SecretsRequest, SecretsResponse},
    },
};
use amplifier_session_storage::storage::{SecretsAtRest, StoredSecret};
use serde::Serialize;

use super::confirm::ChangeQuestion;
use crate::{
    app::App,
    args::SecretsArgs,
    failure::{Failure, Outcome, report_damage, say},
    progress::Bar,
    render::{
        secrets as render,
        text::{counted, one_line},
    },
};

pub(super) async fn run(app: &mut App, args: SecretsArgs) -> Result<Outcome, Failure> {
    match (&args.purge, &args.ignore, &args.unignore) {
        (Some(address), ..) => purge(app, address, args.yes).await,
        (_, Some(address), _) => ignore(app, address, true).await,
        (.., Some(address)) => ignore(app, address, false).await,
        _ => list(app, args).await,
    }
}

async fn list(app: &mut App, args: SecretsArgs) -> Result<Outcome, Failure> {
    let request = SecretsRequest {
        scope: app.global.scope.into(),
        sessions: args.sessions,
        project: None,
        projects: args.place.projects,
        repo: args.place.repo.repo,
        // A server searches as its store is set.
        redact: if app.has_server()? { None } else { app.config.secrets_at_rest()? },
        short_ids: app.out.is_terminal() && !app.out.is_json(),
    };
    let store = app.patient_reader().await?;
    let bar = Bar::new(0, "searching {wide_bar} {pos}/{len} sessions");
    let answer = store.api(app).secrets(&request, &mut |searched, all| bar.set(searched, all)).await;
    drop(bar);
    let ApiAnswer { response, notices } = answer?;
    app.say_notices(&notices);
    if app.out.is_json() {
        app.out.json(&response)?;
    } else {
        render::list(&mut app.out, &response)?;
    }
    app.out.finish()?;
    summarize(&response);
    report_damage(&response.damaged)?;
    Ok(Outcome::found(response.count > 0))
}

fn summarize(response: &SecretsResponse) {
    let SecretsResponse { redact, searched, count, ignored, sessions, .. } = response;
    if *redact == SecretsAtRest::Off {
        say(
            "note",
            "nothing was searched, because --redact is off for this store; --redact mark lists its secrets",
        );
    } else if *count > 0 {
        let (secrets, with) = (counted(*count, "secret"), counted(sessions.len() as u64, "session"));
        let found = sessions.iter().flat_map(|session| &session.secrets).map(|found| &found.secret);
        let by = render::certainties(found);
        say("note", &format!("{secrets} in {with}, of {searched} searched: {by}"));
    } else {
        say("note", &format!("no secrets in {}", counted(*searched, "session")));
    }
    if *ignored > 0 {
        say("note", &format!("{} ignored", counted(*ignored, "finding")));
    }
}

/// Masks the secrets at an address.
async fn purge(app: &mut App, address: &str, yes: bool) -> Result<Outcome, Failure> {
    let store = app.editor(false).await?;
    let request = PurgePreviewRequest { address: address.to_owned() };
    let ApiAnswer { response, notices } = store.api(app).purge_secrets_preview(&request).await?;
    app.say_notices(&notices);
    if response.secrets.is_empty() {
        return Ok(nothing_at(address));
    }
    if !yes && !is_confirmed(app, &response)? {
        say("note", "nothing was changed");
        return Ok(Outcome::Done);
    }
    let request = PurgeSecretsRequest::from(response);
    let response = store.api(app).purge_secrets(&request).await?.response;
    if response.purged == 0 {
        return Ok(nothing_at(address));
    }
    let text = format!("purged  {address}  {}", counted(response.purged, "secret"));
    changed(app, &response, &text)?;
    say(
        "note",
        "the session's files are not changed; if they still exist, a sync keeps these secrets masked",
    );
    say("hint", "replace a real secret where it is used, and search the store for copies in other sessions");
    Ok(Outcome::Done)
}

fn nothing_at(address: &str) -> Outcome {
    say("note", &format!("no secrets at {address}"));
    Outcome::FoundNothing
}

fn is_confirmed(app: &App, preview: &PurgePreview) -> Result<bool, Failure> {
    let what = counted(preview.secrets.len() as u64, "secret");
    let line = |secret: &StoredSecret| format!("  {}  {}", secret.rule, one_line(&secret.context));
    let question = ChangeQuestion {
        change: format!("{what} would be masked"),
        preview: preview.secrets.iter().map(line).collect(),
        question: format!("Mask {what} in the store? This can't be undone."),
        hint: "pass --yes to mask without asking",
    };
    question.is_confirmed(app)
}

/// Adds the findings at an address to those that are ignored, or removes them.
async fn ignore(app: &mut App, address: &str, ignore: bool) -> Result<Outcome, Failure> {
    let request = IgnoreSecretsRequest { address: address.to_owned(), ignore };
    let store = app.editor(false).await?;
    let ApiAnswer { response, notices } = store.api(app).ignore_secrets(&request).await?;
    app.say_notices(&notices);
    let (verb, count) = match response.change {
        IgnoredChange::Ignored(count) => ("ignored", count),
        IgnoredChange::Unignored(count) => ("no longer ignored", count),
    };
    changed(app, &response, &format!("{verb}  {address}  {}", counted(count, "finding")))?;
    Ok(Outcome::found(response.found > 0))
}

fn changed(app: &mut App, response: &impl Serialize, text: &str) -> Result<(), Failure> {
    if app.out.is_json() {
        app.out.json(response)?;
    } else {
        app.out.line(text)?;
    }
    Ok(app.out.finish()?)
}
