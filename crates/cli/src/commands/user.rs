//! `user`: shows the current user, and renames users.

use amplifier_session_storage::{Scope, model::UserId, storage::SessionStatistics};
use serde::Serialize;

use crate::{
    app::{App, check_writable},
    args::{RenameArgs, UserAction, UserArgs},
    failure::{Failure, Outcome, say},
    render::{
        card::{CardField, fields},
        text::{counted, one_line},
    },
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

/// The result of `rename` as JSON.
#[derive(Serialize)]
struct RenamedView<'a> {
    old: &'a UserId,
    new: &'a UserId,
    sessions: u64,
}

pub(super) async fn run(app: &mut App, args: UserArgs) -> Result<Outcome, Failure> {
    match args.action {
        None | Some(UserAction::Show) => show(app).await,
        Some(UserAction::Rename(args)) => rename(app, &args).await,
    }
}

async fn show(app: &mut App) -> Result<Outcome, Failure> {
    let (identity, host) = app.who()?;
    let (mut pinned, mut counts) = (None, None);
    // The user is known before the first sync creates the store.
    if app.store_exists()? {
        let reader = app.own_reader().await?;
        pinned = reader.storage.users().pinned_user().await?;
        let scope = Scope::from(identity.user_id.clone());
        counts = Some(reader.storage.sessions().get_session_statistics(&scope, None).await?);
    }
    let (teams, org) = (app.global.team.clone(), app.global.org.clone());
    if app.out.is_json() {
        app.out.json(&CurrentUserView {
            user_id: identity.user_id.as_str(),
            source: identity.source.to_string(),
            host_id: host.as_str(),
            store_user_id: pinned.as_ref().map(UserId::as_str),
            team_ids: &teams,
            org_id: org.as_deref(),
            counts,
        })?;
        return Ok(Outcome::Done);
    }
    let source = identity.source.to_string();
    let listed = vec![
        CardField::new("user", identity.user_id.to_string()),
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

async fn rename(app: &mut App, args: &RenameArgs) -> Result<Outcome, Failure> {
    // No warning about another user: this command is what resolves it.
    let storage = app.existing_storage(false).await?;
    check_writable(&storage)?;
    let sessions = storage.users().rename_user(&args.old, &args.new).await?;
    storage.update_index().await?;
    if app.out.is_json() {
        app.out.json(&RenamedView { old: &args.old, new: &args.new, sessions })?;
    } else if sessions > 0 {
        let belong = if sessions == 1 { "belongs" } else { "belong" };
        let text = format!("{} of {} now {belong} to {}", counted(sessions, "session"), args.old, args.new);
        app.out.line(&one_line(&text))?;
    }
    app.out.finish()?;
    if sessions == 0 {
        say("note", &format!("{} has no sessions in the store", args.old));
    } else {
        say("hint", &format!("to act as {0}, pass `--user {0}` or set AMPLIFIER_SESSIONS_USER", args.new));
    }
    Ok(Outcome::found(sessions > 0))
}
