//! `user`: shows the current user, and renames users.

use amplifier_session_api::{
    ApiAnswer,
    operations::users::{RenameUserRequest, UsersRequest},
};
use amplifier_session_storage::{identity::UserSource, model::UserId, storage::SessionStatistics};
use serde::Serialize;

use crate::{
    app::{App, CurrentUser},
    args::{RenameArgs, UserAction, UserArgs},
    failure::{Failure, Outcome, say},
    render::{
        card::{CardField, fields},
        text::{counted, one_line},
    },
    server_store,
};

/// The current user as JSON.
#[derive(Serialize)]
struct CurrentUserView<'a> {
    user_id: &'a str,
    source: String,
    host_id: &'a str,
    store_user_id: Option<&'a str>,
    team_ids: &'a [String],
    org_id: Option<&'a str>,
    /// The counts of the user's sessions; absent without a store.
    #[serde(flatten)]
    counts: Option<SessionStatistics>,
}

pub(super) async fn run(app: &mut App, args: UserArgs) -> Result<Outcome, Failure> {
    match args.action {
        None | Some(UserAction::Show) => show(app).await,
        Some(UserAction::Rename(args)) => rename(app, args).await,
    }
}

async fn current(app: &App) -> Result<CurrentUser, Failure> {
    if let Some(user) = server_store::user(app).await? {
        return Ok(user);
    }
    let identity = app.who()?.0;
    let source = match identity.source {
        UserSource::Configuration => app.config.origin("user").to_string(),
        other => other.to_string(),
    };
    let (teams, org) = (app.global.team.clone(), app.global.org.clone());
    Ok(CurrentUser { user_id: identity.user_id.to_string(), source, teams, org })
}

async fn show(app: &mut App) -> Result<Outcome, Failure> {
    let CurrentUser { user_id, source, teams, org } = current(app).await?;
    let host = app.host()?;
    let (mut pinned, mut counts) = (None, None);
    // The user is known before the first sync creates the store.
    if app.has_server()? || app.store_exists()? {
        let reader = app.own_reader(false).await?;
        let found = reader.api(app).users(&UsersRequest::default()).await?.response;
        (pinned, counts) = (found.store_user_id, Some(found.counts));
    }
    if app.out.is_json() {
        app.out.json(&CurrentUserView {
            user_id: &user_id,
            source,
            host_id: host.as_str(),
            store_user_id: pinned.as_ref().map(UserId::as_str),
            team_ids: &teams,
            org_id: org.as_deref(),
            counts,
        })?;
        return Ok(Outcome::Done);
    }
    let listed = vec![
        CardField::new("user", user_id),
        CardField::new("source", source),
        CardField::new("machine", host.to_string()),
        CardField::new("teams", teams.join(", ")),
        CardField::new("organisation", org),
        CardField::new("store's user", pinned.map(|user| user.to_string())),
        CardField::new("sessions", counts.map(|counts| counts.sessions.to_string())),
    ];
    fields(&mut app.out, &listed)?;
    Ok(Outcome::Done)
}

async fn rename(app: &mut App, args: RenameArgs) -> Result<Outcome, Failure> {
    // No warning about another user: this command is what resolves it.
    let store = app.administrator().await?;
    let request = RenameUserRequest { old: args.old, new: args.new };
    let ApiAnswer { response, .. } = store.api(app).rename_user(&request).await?;
    let sessions = response.sessions;
    if app.out.is_json() {
        app.out.json(&response)?;
    } else if sessions > 0 {
        let belong = if sessions == 1 { "belongs" } else { "belong" };
        let text =
            format!("{} of {} now {belong} to {}", counted(sessions, "session"), response.old, response.new);
        app.out.line(&one_line(&text))?;
    }
    app.out.finish()?;
    if sessions == 0 {
        say("note", &format!("{} has no sessions in the store", response.old));
    } else {
        say(
            "hint",
            &format!("to act as {0}, pass `--user {0}` or set AMPLIFIER_SESSIONS_USER", response.new),
        );
    }
    Ok(Outcome::found(sessions > 0))
}
