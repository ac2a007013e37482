//! The automatic refresh: before a search or a list, reads what changed since the last sync if that is fast.

use std::sync::Arc;

use amplifier_session_api::{
    incomplete::{IncompleteReason, RefreshGap},
    refresh::RefreshSources,
};
use amplifier_session_storage::{
    config::SettingOrigin,
    model::SessionId,
    sync::{RefreshLimits, Refreshed},
};

use crate::{
    app::{App, with_turns},
    failure::{Failure, say},
    opened::OpenedStore,
    render::{kept::report_kept, text::counted},
    roots::roots,
};

/// Reads what changed in the roots. Prints a note if that fails or is too much, and returns why the store may lack
/// changes. Problems do not prevent the command from reading.
pub(crate) async fn before_reading(
    app: &App,
    reader: &OpenedStore,
    turned_off: bool,
) -> Option<IncompleteReason> {
    let gap = match refresh_store(app, reader, turned_off).await {
        Ok(gap) => gap,
        Err(failure) => {
            say("note", &format!("changes since the last sync could not be read: {}", failure.message()));
            Some((RefreshGap::Failed, None))
        }
    };
    gap.map(|(because, sessions)| IncompleteReason::NotRefreshed { because, sessions })
}

/// Why changes were not read, and how many sessions changed, if it is known.
async fn refresh_store(
    app: &App,
    reader: &OpenedStore,
    turned_off: bool,
) -> Result<Option<(RefreshGap, Option<u64>)>, Failure> {
    if app.has_server()? || !is_possible(app)? {
        return Ok(None);
    }
    if turned_off || !app.config.switch("refresh")? {
        return Ok(Some((RefreshGap::TurnedOff, None)));
    }
    let events = match app.config.origin("events") {
        SettingOrigin::Default => None,
        _ => Some(app.config.event_detail()?),
    };
    // Vectors of other models take too long or cost money, so they are left to the next sync.
    let embeds = app.global.embedding == "local";
    let sources = RefreshSources {
        roots: roots(app, &[])?,
        captures: app.config.captures(),
        exclude: app.config.list("exclude").to_vec(),
        host: app.who()?.1,
        limits: RefreshLimits::default().with_embeds(embeds).with_events(events),
    };
    match reader.api_here(app)?.refresh(&sources).await? {
        Some(Refreshed::TooMuch(sessions)) => {
            let changed = counted(sessions, "session");
            say("note", &format!("{changed} changed since the last sync; run `{} sync`", app.program()));
            return Ok(Some((RefreshGap::TooMuch, Some(sessions))));
        }
        Some(Refreshed::Busy) => return Ok(Some((RefreshGap::Busy, None))),
        Some(Refreshed::Taken { sessions, kept }) => {
            let accept = format!("`{} sync --accept-removals`", app.program());
            report_kept(&kept, &accept);
            if embeds && !sessions.is_empty() {
                embed(app, reader, &sessions).await?;
            }
        }
        _ => {}
    }
    Ok(None)
}

/// Whether store and root are the defaults or configured, and the store is a local file that may be written.
fn is_possible(app: &App) -> Result<bool, Failure> {
    let is_usual =
        |key| matches!(app.config.origin(key), SettingOrigin::Default | SettingOrigin::File { .. });
    let is_here = app.store_url()?.file().is_some();
    Ok(is_here && !app.global.read_only && is_usual("store") && is_usual("root"))
}

async fn embed(app: &App, reader: &OpenedStore, sessions: &[SessionId]) -> Result<(), Failure> {
    let storage = reader.storage()?;
    let provider = match storage.embedding() {
        Some(provider) => Some(Arc::clone(provider)),
        None => app.embedding()?,
    };
    let storage = with_turns(storage.clone().with_embedding(provider), None);
    Ok(app.api(&storage, &reader.caller).embed_pending(sessions).await?)
}
