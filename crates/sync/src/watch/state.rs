//! The state that a watcher stores.

use amplifier_session_core::{
    known_json,
    model::{Digest, Timestamp},
};

use crate::{
    files::absolute,
    options::SyncOptions,
    report::FolderFailure,
    watchers::{PREFIX, WatchFailure, WatcherState},
};

/// At most this many failures are stored.
const FAILURES: usize = 20;

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
            uptime: None,
            last_sync: None,
            backlog: None,
            polls: None,
            failures: Vec::new(),
        }
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

    pub(super) fn to_value(&self) -> String {
        known_json(self)
    }

    /// Forgets the failures of sessions that were read again, and adds those that failed.
    pub(super) fn set_failures(
        &mut self,
        is_read: impl Fn(&WatchFailure) -> bool,
        failed: &[FolderFailure],
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
