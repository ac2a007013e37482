//! The claim of a watcher to a root in a store.

use std::time::Duration;

use amplifier_session_core::{Error, ErrorKind, Result, SessionStorage, model::Timestamp};

use super::options::Now;
use crate::watchers::WatcherState;

/// How often to retry a change while the stored state keeps changing.
const ATTEMPTS: usize = 5;

/// The state of this watcher in a store.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) state: WatcherState,
    /// The stored value.
    stored: Option<String>,
    lifetime: Duration,
}

impl Lease {
    /// A claim that is not stored yet. It expires when `lifetime` has passed since it was last stored.
    pub(super) fn new(state: WatcherState, lifetime: Duration) -> Self {
        Self { state, stored: None, lifetime }
    }

    /// Stores the state, unless a running watcher has stored its own.
    ///
    /// # Errors
    ///
    /// `Conflict`, not retryable, if there is another watcher; errors of the store.
    pub(super) async fn renew(&mut self, storage: &SessionStorage, now: Now) -> Result<()> {
        let lifetime = i64::try_from(self.lifetime.as_micros()).unwrap_or(i64::MAX);
        self.state.expires = Some(Timestamp::from_micros(now.wall.as_micros().saturating_add(lifetime)));
        self.store(storage, now).await
    }

    /// Whether another watcher would take the claim for that of a watcher that is gone.
    pub(super) fn is_stale(&self, now: Now) -> bool {
        self.stored.is_some() && !self.state.is_running_at(now.wall, now.uptime)
    }

    /// Stores that the watcher has stopped.
    pub(super) async fn release(&mut self, storage: &SessionStorage, now: Now) -> Result<()> {
        self.state.expires = None;
        self.store(storage, now).await
    }

    async fn store(&mut self, storage: &SessionStorage, now: Now) -> Result<()> {
        (self.state.seen, self.state.uptime) = (now.wall, now.uptime);
        let (key, value) = (self.state.key(), self.state.to_value());
        for _ in 0..ATTEMPTS {
            let found = storage.backend().swap_meta(&key, self.stored.as_deref(), &value).await?;
            if found.as_deref() == Some(value.as_str()) {
                self.stored = Some(value);
                return Ok(());
            }
            // The key contains the host, so the other watcher is on this machine.
            let other = found.as_deref().and_then(WatcherState::parse);
            let is_other = |other: &WatcherState| {
                !other.is_same(&self.state) && other.is_running_at(now.wall, now.uptime)
            };
            if let Some(other) = other.filter(is_other) {
                return Err(taken(&other));
            }
            // The state of a watcher that is gone, or our own, stored although the store reported an error.
            self.stored = found;
        }
        Err(Error::new(ErrorKind::Conflict, "the watcher's state keeps changing").retryable())
    }
}

fn taken(other: &WatcherState) -> Error {
    let WatcherState { process, host, since, root, .. } = other;
    Error::new(
        ErrorKind::Conflict,
        format!("process {process} on {host} has been watching {root} since {since}"),
    )
    .with_operation("watch")
    .with("watcher", process)
}
