//! Watchers, as they are recorded in a store.

use amplifier_session_core::{Result, SessionStorage, model::Timestamp};
use serde::{Deserialize, Serialize};

use crate::{files::absolute, options::SyncOptions};

/// The beginning of the keys in the store's meta table: one entry for each user, host and root.
pub(crate) const PREFIX: &str = "watcher-";

/// The state of a watcher, as it reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct WatcherState {
    /// The root, as an absolute path.
    pub root: String,
    /// The owner of the sessions.
    pub user: String,
    /// The machine.
    pub host: String,
    /// The id of its process.
    pub process: u32,
    /// A random number that no other watcher has.
    pub token: String,
    /// When it began.
    pub since: Timestamp,
    /// When it was last seen.
    pub seen: Timestamp,
    /// When it counts as gone, unless it is seen again. `None` if it has stopped.
    pub expires: Option<Timestamp>,
    /// How long the machine had been running when it was last seen, in microseconds, if known.
    #[serde(default)]
    pub uptime: Option<u64>,
    /// When it last compared sessions with the store.
    pub last_sync: Option<Timestamp>,
    /// The number of changed sessions that the store did not have when it was last seen; `None` if unknown.
    pub backlog: Option<u64>,
    /// Why it polls, if it does.
    pub polls: Option<String>,
    /// The last sessions that could not be read or stored.
    pub failures: Vec<WatchFailure>,
}

/// A session that a watcher could not read or store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct WatchFailure {
    /// The project folder.
    pub project: String,
    /// The session folder; `None` if the whole project can't be read.
    pub session: Option<String>,
    /// The error.
    pub error: String,
    /// When it happened.
    pub at: Timestamp,
}

impl WatcherState {
    /// Whether it seems to run: it was seen recently, and has not stopped.
    #[must_use]
    pub fn is_running(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| now < expires)
    }

    /// As [`WatcherState::is_running`], for a watcher on this machine, whose process must also exist. Changes of the wall
    /// clock have no effect if it is known how long the machine has been running.
    #[must_use]
    pub fn is_running_here(&self, now: Timestamp) -> bool {
        self.is_running_at(now, uptime())
    }

    pub(crate) fn is_running_at(&self, now: Timestamp, uptime: Option<u64>) -> bool {
        let is_fresh = match (self.expires, self.uptime, uptime) {
            (Some(expires), Some(seen), Some(uptime)) => {
                let lifetime = expires.as_micros().saturating_sub(self.seen.as_micros());
                // If the machine was restarted, it has been running for less time than then.
                let waited = uptime.checked_sub(seen);
                waited.is_some_and(|waited| i64::try_from(waited).is_ok_and(|waited| waited < lifetime))
            }
            _ => self.is_running(now),
        };
        is_fresh && process_exists(self.process)
    }

    /// Whether it follows the root of `options` on the same machine and for the same user.
    #[must_use]
    pub fn follows(&self, options: &SyncOptions) -> bool {
        self.root == absolute(options.first_root())
            && self.user == options.user.as_str()
            && self.host == options.host.as_str()
    }

    pub(crate) fn parse(value: &str) -> Option<Self> {
        serde_json::from_str(value).ok()
    }
}

/// How long this machine has been running, in microseconds, if known. Unlike the wall clock, it does not jump.
pub(crate) fn uptime() -> Option<u64> {
    // Only Linux has this file: seconds with two decimals, and how long the processors were idle.
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some((seconds * 1e6) as u64)
}

#[cfg(unix)]
fn process_exists(process: u32) -> bool {
    use rustix::{
        io::Errno,
        process::{Pid, test_kill_process},
    };
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    // A process of another user exists, but may not be signalled.
    process.is_some_and(|process| test_kill_process(process) != Err(Errno::SRCH))
}

#[cfg(not(unix))]
fn process_exists(_: u32) -> bool {
    true
}

/// The watchers recorded in a store, in any order, whether they run or not.
///
/// # Errors
///
/// Errors of the store.
pub async fn watchers(storage: &SessionStorage) -> Result<Vec<WatcherState>> {
    let entries = storage.backend().meta().await?;
    let ours = entries.iter().filter(|(key, _)| key.starts_with(PREFIX));
    Ok(ours.filter_map(|(_, value)| WatcherState::parse(value)).collect())
}
