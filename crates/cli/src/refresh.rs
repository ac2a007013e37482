//! Before a search or a list: what changed since the last sync is taken in, where that takes but a moment.

use std::sync::Arc;

use amplifier_session_storage::{
    SessionStorage, StoreUrl,
    config::Origin,
    model::{SessionId, UserId},
    sync::{RefreshLimits, Refreshed, SyncOptions, refresh},
};

use crate::{
    app::{App, Reader},
    failure::{Failure, say},
    render::{kept::tell_what_was_kept, text::counted},
};

/// Takes in what changed below the root. Says so where it is too much for now; what else keeps it from doing so, such as a
/// store that can't be written, keeps nobody from reading.
pub(crate) async fn before_reading(app: &App, reader: &Reader, turned_off: bool) {
    if turned_off || reader.storage.backend().info().read_only.is_some() {
        return;
    }
    if let Err(failure) = take_in(app, reader).await
        && app.global.verbose > 0
    {
        say(
            "note",
            &format!("what changed since the last sync could not be taken in: {}", failure.message()),
        );
    }
}

async fn take_in(app: &App, reader: &Reader) -> Result<(), Failure> {
    if !is_wanted(app)? {
        return Ok(());
    }
    let root = app.default_root()?;
    let (identity, host) = app.who()?;
    let user = identity.user_id;
    // A store of somebody else does not get a second owner by being read.
    let is_own = reader.storage.pinned_user().await?.as_ref() == Some(&user);
    if !is_own || !root.join("projects").is_dir() {
        return Ok(());
    }
    let events = match app.config.origin("events") {
        Origin::Default => None,
        _ => Some(app.config.event_detail()?),
    };
    // Vectors of other models take longer than anybody waits, or cost money: they are left to the next sync.
    let embeds = app.global.embedding == "local";
    let limits = RefreshLimits::default().with_embeds(embeds).with_events(events);
    let options = SyncOptions::new(root, user.clone(), host).with_exclude(app.config.list("exclude"));
    match refresh(&reader.storage, &options, limits).await? {
        Refreshed::TooMuch(sessions) => {
            let changed = counted(sessions, "session");
            say("note", &format!("{changed} changed since the last sync; run `{} sync`", app.program()));
        }
        Refreshed::Taken { sessions, kept } => {
            let accept = format!("`{} sync --accept-removals`", app.program());
            tell_what_was_kept(&kept, &accept);
            if embeds && !sessions.is_empty() {
                embed(app, &reader.storage, &user, &sessions).await?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Whether store and root are the ones that are always read, and the store lies here.
fn is_wanted(app: &App) -> Result<bool, Failure> {
    let is_usual = |key| matches!(app.config.origin(key), Origin::Default | Origin::File { .. });
    let is_here = matches!(app.store_url()?, StoreUrl::Sqlite(_) | StoreUrl::DuckDb(_));
    let is_on = app.config.switch("refresh")? && !app.global.read_only;
    Ok(is_on && is_here && is_usual("store") && is_usual("root"))
}

async fn embed(
    app: &App,
    storage: &SessionStorage,
    user: &UserId,
    sessions: &[SessionId],
) -> Result<(), Failure> {
    let provider = match storage.embedding() {
        Some(provider) => Some(Arc::clone(provider)),
        None => app.embedding()?,
    };
    let storage = storage.clone().with_embedding(provider);
    for session in sessions {
        storage.embed_owed(user, Some(session)).await?;
    }
    Ok(())
}
