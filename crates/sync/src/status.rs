//! Whether a store is up to date with a root.

use amplifier_session_core::{Result, SessionStorage, model::Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    options::SyncOptions,
    pending::{Pending, pending},
    roots::is_root,
    watchers::{WatcherState, watchers},
};

/// The status of a root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RootStatus {
    /// The root.
    pub root: String,
    /// Whether a watcher runs for it.
    pub watching: bool,
    /// The last watcher of it on this machine, if there was one.
    pub watcher: Option<WatcherState>,
    /// When sessions were last read, if known.
    pub last_sync: Option<Timestamp>,
    /// The age in seconds of the oldest change that is not in the store yet; 0 if the store is up to date, `None` if the
    /// folders can't be read.
    pub lag_seconds: Option<f64>,
    /// The changes that the store does not have; `None` if the folders can't be read.
    pub backlog: Option<Pending>,
}

/// Compares the root of `options` with a store, without reading sessions.
///
/// # Errors
///
/// As [`crate::sync`].
pub async fn root_status(storage: &SessionStorage, options: &SyncOptions) -> Result<RootStatus> {
    let (now, root) = (storage.now(), options.first_root());
    let watcher = watchers(storage).await?.into_iter().find(|watcher| watcher.follows(options));
    let backlog = if is_root(root) { Some(pending(storage, options).await?) } else { None };
    let waited = |oldest: Timestamp| now.as_micros().saturating_sub(oldest.as_micros()).max(0) as f64 / 1e6;
    let lag = |backlog: &Pending| backlog.oldest_change.map_or(0.0, waited);
    let complete = backlog.as_ref().and_then(|backlog| backlog.last_complete_sync);
    Ok(RootStatus {
        root: root.display().to_string(),
        watching: watcher.as_ref().is_some_and(|watcher| watcher.is_running_here(now)),
        last_sync: watcher.as_ref().and_then(|watcher| watcher.last_sync).max(complete),
        watcher,
        lag_seconds: backlog.as_ref().map(lag),
        backlog,
    })
}
