//! The state that a watcher stores.

use amplifier_session_core::{
    Result, SessionStorage,
    model::{Digest, Timestamp},
};
use serde::{Deserialize, Serialize};

use crate::{files::absolute, options::SyncOptions, report::Failure};

/// The beginning of the keys in the store's meta table: one entry for each user, host and root.
const PREFIX: &str = "watcher-";

/// At most this many failures are stored.
const FAILURES: usize = 20;

/// The state of a watcher, as it reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    pub(super) fn new(options: &SyncOptions, process: u32, token: String, now: Timestamp) -> Self {
        Self {
            root: absolute(options.first_root()),
            user: options.user.to_string(),
            host: options.host.to_string(),
            process,
            token,
            since: now,
            seen: now,
            expires: None,
            last_sync: None,
            backlog: None,
            polls: None,
            failures: Vec::new(),
        }
    }

    /// Whether it seems to run: it was seen recently, and has not stopped.
    #[must_use]
    pub fn is_running(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| now < expires)
    }

    /// As [`WatcherState::is_running`], for a watcher on this machine, whose process must also exist.
    #[must_use]
    pub fn is_running_here(&self, now: Timestamp) -> bool {
        self.is_running(now) && process_exists(self.process)
    }

    /// Whether it follows the root of `options` on the same machine and for the same user.
    #[must_use]
    pub fn follows(&self, options: &SyncOptions) -> bool {
        self.root == absolute(options.first_root())
            && self.user == options.user.as_str()
            && self.host == options.host.as_str()
    }

    /// Whether both are states of one watcher.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.process, &self.token) == (other.process, &other.token)
    }

    /// The key in the meta table.
    pub(super) fn key(&self) -> String {
        let name = format!("{}\0{}\0{}", self.host, self.user, self.root);
        format!("{PREFIX}{:032x}", u128::from_be_bytes(Digest::of(name.as_bytes()).0))
    }

    pub(super) fn parse(value: &str) -> Option<Self> {
        serde_json::from_str(value).ok()
    }

    pub(super) fn to_value(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Forgets the failures of sessions that were read again, and adds those that failed.
    pub(super) fn set_failures(
        &mut self,
        is_read: impl Fn(&WatchFailure) -> bool,
        failed: &[Failure],
        at: Timestamp,
    ) {
        self.failures.retain(|failure| !is_read(failure));
        self.failures.extend(failed.iter().take(FAILURES).map(|failure| WatchFailure {
            project: failure.project.clone(),
            session: failure.session.clone(),
            error: failure.error.clone(),
            at,
        }));
        let surplus = self.failures.len().saturating_sub(FAILURES);
        self.failures.drain(..surplus);
    }
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
