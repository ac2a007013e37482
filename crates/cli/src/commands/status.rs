//! `watch status`: whether the store is up to date.

use amplifier_session_storage::{
    model::Timestamp,
    sync::{FolderFailure, Pending, RootStatus, SyncOptions, WatcherState, root_status},
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
    roots: Vec<RootStatus>,
}

pub(super) async fn run(app: &mut App, args: StatusArgs) -> Result<Outcome, Failure> {
    let reader = app.silent_reader(false).await?;
    let (identity, host) = app.who()?;
    let mut status = StatusView { store: app.store_url()?.to_string(), roots: Vec::new() };
    for root in roots(app, &args.root)? {
        let options = SyncOptions::new(&root, identity.user_id.clone(), host.clone())
            .with_captures(app.config.captures())
            .with_exclude(app.config.list("exclude"));
        status.roots.push(root_status(reader.storage()?, &options).await?);
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

fn rows(app: &App, root: &RootStatus) -> Vec<(&'static str, String)> {
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
