//! `status`: whether the store is up to date.

use std::path::Path;

use amplifier_session_storage::{
    SessionStorage,
    model::Timestamp,
    sync::{
        FolderFailure, Pending, SyncOptions, is_root, pending,
        watch::{WatcherState, watchers},
    },
};
use serde::Serialize;

use crate::{
    app::App,
    args::StatusArgs,
    dates,
    failure::{Failure, Outcome},
    render::{
        card::labelled,
        text::{counted, duration, one_line, size},
    },
    roots::roots,
};

/// The status of a store.
#[derive(Serialize)]
struct StatusView {
    store: String,
    roots: Vec<RootView>,
}

/// The status of a root.
#[derive(Serialize)]
struct RootView {
    root: String,
    /// Whether `watch` runs for it.
    watching: bool,
    /// The last watcher of it on this machine, if there was one.
    watcher: Option<WatcherState>,
    /// When sessions were last read, if known.
    last_sync: Option<Timestamp>,
    /// The age of the oldest change that is not in the store yet; 0 if the store is up to date, `None` if the folders
    /// can't be read.
    lag_seconds: Option<f64>,
    /// The changes that the store does not have; `None` if the folders can't be read.
    backlog: Option<Pending>,
}

pub(super) async fn run(app: &mut App, args: StatusArgs) -> Result<Outcome, Failure> {
    let reader = app.silent_reader(false).await?;
    let (identity, host) = app.who()?;
    let mut status = StatusView { store: app.store_url()?.to_string(), roots: Vec::new() };
    for root in roots(app, &args.root)? {
        let options = SyncOptions::new(&root, identity.user_id.clone(), host.clone())
            .with_captures(app.config.captures())
            .with_exclude(app.config.list("exclude"));
        status.roots.push(root_view(&reader.storage, &root, &options).await?);
    }
    if app.out.is_json() {
        app.out.json(&status)?;
        return Ok(Outcome::Done);
    }
    let width = app.out.wrap_at();
    let mut rows = vec![("store", status.store.clone())];
    rows.extend(status.roots.iter().flat_map(|root| self::rows(app, root)));
    let lines = rows.into_iter().flat_map(|(label, value)| labelled(label, &value, width));
    app.out.lines(&lines.collect::<Vec<_>>())?;
    Ok(Outcome::Done)
}

async fn root_view(
    storage: &SessionStorage,
    root: &Path,
    options: &SyncOptions,
) -> Result<RootView, Failure> {
    let now = storage.now();
    let watcher = watchers(storage).await?.into_iter().find(|watcher| watcher.follows(options));
    let backlog = if is_root(root) { Some(pending(storage, options).await?) } else { None };
    let waited = |oldest: Timestamp| now.as_micros().saturating_sub(oldest.as_micros()).max(0) as f64 / 1e6;
    let lag = |backlog: &Pending| backlog.oldest_change.map_or(0.0, waited);
    let complete = backlog.as_ref().and_then(|backlog| backlog.last_complete_sync);
    Ok(RootView {
        root: root.display().to_string(),
        watching: watcher.as_ref().is_some_and(|watcher| watcher.is_running_here(now)),
        last_sync: watcher.as_ref().and_then(|watcher| watcher.last_sync).max(complete),
        watcher,
        lag_seconds: backlog.as_ref().map(lag),
        backlog,
    })
}

fn rows(app: &App, root: &RootView) -> Vec<(&'static str, String)> {
    let time = |ts: Timestamp| dates::second(ts, &app.now);
    let watcher = match &root.watcher {
        Some(WatcherState { process, host, since, .. }) if root.watching => {
            format!("process {process} on {host}, since {}", time(*since))
        }
        Some(WatcherState { seen, .. }) => format!("not running; last seen {}", time(*seen)),
        None => format!("not running; `{} watch` starts it", app.program()),
    };
    let mut rows = vec![("root", root.root.clone()), ("watch", watcher)];
    let polls = root.watcher.as_ref().filter(|_| root.watching).and_then(|watcher| watcher.polls.clone());
    rows.extend(polls.map(|reason| ("polls", one_line(&reason))));
    rows.push(("last sync", root.last_sync.map_or_else(|| "unknown".to_owned(), time)));
    rows.push(match &root.backlog {
        None => ("backlog", "unknown: there is no folder `projects` in the root".to_owned()),
        Some(Pending { sessions: 0, .. }) => ("backlog", "nothing".to_owned()),
        Some(Pending { sessions, bytes, .. }) => {
            ("backlog", format!("{}, {}", counted(*sessions, "session"), size(*bytes)))
        }
    });
    rows.extend(root.lag_seconds.map(|seconds| ("lag", duration(seconds * 1e3))));
    let failures = root.watcher.iter().flat_map(|watcher| &watcher.failures);
    rows.extend(failures.map(|failure| {
        let session = failure.session.as_deref().unwrap_or_default();
        let place = format!("{}/{session}", one_line(&failure.project));
        ("failed", format!("{place}: {} ({})", one_line(&failure.error), time(failure.at)))
    }));
    // The watcher also knows when it failed, so its entry is shown.
    let is_known = |failure: &&FolderFailure| {
        let mut watched = root.watcher.iter().flat_map(|watcher| &watcher.failures);
        watched.any(|known| (&known.project, &known.session) == (&failure.project, &failure.session))
    };
    let found =
        root.backlog.iter().flat_map(|backlog| &backlog.failures).filter(|failure| !is_known(failure));
    rows.extend(found.map(|failure| {
        let session = failure.session.as_deref().unwrap_or_default();
        let place = one_line(&format!("{}/{session}", failure.project));
        ("failed", format!("{place}: {}", one_line(&failure.error)))
    }));
    rows
}
