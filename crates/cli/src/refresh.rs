//! The automatic refresh: before a search or a list, reads what changed since the last sync if that is fast.

use std::{path::PathBuf, sync::Arc};

use amplifier_session_storage::{
    SessionStorage,
    config::SettingOrigin,
    model::{SessionId, UserId},
    sync::{RefreshLimits, Refreshed, SyncOptions, is_root, refresh},
};

use crate::{
    app::{App, StoreReader, with_turns},
    failure::{Failure, say},
    render::{kept::report_kept, text::counted},
    roots::roots,
};

/// Reads what changed in the roots. Prints a note if there is too much to read. Other problems, such as a store
/// that can't be written, do not prevent the command from reading.
pub(crate) async fn before_reading(app: &App, reader: &StoreReader, turned_off: bool) {
    if turned_off || reader.storage.backend().info().read_only.is_some() {
        return;
    }
    if let Err(failure) = refresh_store(app, reader).await
        && app.global.verbose > 0
    {
        say("note", &format!("changes since the last sync could not be read: {}", failure.message()));
    }
}

async fn refresh_store(app: &App, reader: &StoreReader) -> Result<(), Failure> {
    if !is_wanted(app)? {
        return Ok(());
    }
    let roots: Vec<PathBuf> = roots(app, &[])?.into_iter().filter(|root| is_root(root)).collect();
    let (identity, host) = app.who()?;
    let user = identity.user_id;
    // Reading the store of another user must not add a second owner to it.
    let is_own = reader.storage.users().pinned_user().await?.as_ref() == Some(&user);
    if !is_own || roots.is_empty() {
        return Ok(());
    }
    let events = match app.config.origin("events") {
        SettingOrigin::Default => None,
        _ => Some(app.config.event_detail()?),
    };
    // Vectors of other models take too long or cost money, so they are left to the next sync.
    let embeds = app.global.embedding == "local";
    let limits = RefreshLimits::default().with_embeds(embeds).with_events(events);
    let mut unwatched = Vec::new();
    for root in roots {
        let of_root = SyncOptions::new(&root, user.clone(), host.clone());
        if !is_watched(&reader.storage, &of_root).await? {
            unwatched.push(root);
        }
    }
    if unwatched.is_empty() {
        return Ok(());
    }
    let options = SyncOptions::new("", user.clone(), host)
        .with_roots(unwatched)
        .with_captures(app.config.captures())
        .with_exclude(app.config.list("exclude"));
    match refresh(&reader.storage, &options, limits).await? {
        Refreshed::TooMuch(sessions) => {
            let changed = counted(sessions, "session");
            say("note", &format!("{changed} changed since the last sync; run `{} sync`", app.program()));
        }
        Refreshed::Taken { sessions, kept } => {
            let accept = format!("`{} sync --accept-removals`", app.program());
            report_kept(&kept, &accept);
            if embeds && !sessions.is_empty() {
                embed(app, &reader.storage, &user, &sessions).await?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Whether `watch` keeps the store up to date.
#[cfg(feature = "watch")]
async fn is_watched(storage: &SessionStorage, options: &SyncOptions) -> Result<bool, Failure> {
    let watchers = amplifier_session_storage::sync::watch::watchers(storage).await?;
    Ok(watchers.iter().any(|watcher| watcher.follows(options) && watcher.is_running_here(storage.now())))
}

#[cfg(not(feature = "watch"))]
async fn is_watched(_: &SessionStorage, _: &SyncOptions) -> Result<bool, Failure> {
    Ok(false)
}

/// Whether the refresh is on, and store and root are the defaults or configured, and the store is a local file.
fn is_wanted(app: &App) -> Result<bool, Failure> {
    let is_usual =
        |key| matches!(app.config.origin(key), SettingOrigin::Default | SettingOrigin::File { .. });
    let is_here = app.store_url()?.file().is_some();
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
    let storage = with_turns(storage.clone().with_embedding(provider), None);
    for session in sessions {
        storage.vectors().embed_pending(user, Some(session)).await?;
    }
    Ok(())
}
