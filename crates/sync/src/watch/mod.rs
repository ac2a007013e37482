//! Follows session folders, and syncs what changes.
//!
//! [`watch()`] runs until it is told to stop. Each root is followed with the notifications of the file system, or polled
//! if there are none; each store has its own list of changed sessions, so that one that is down holds up no other. A
//! complete sync at the start, from time to time, and whenever notifications may have been lost finds whatever the
//! notifications did not tell.
//!
//! A watcher stores a [`WatcherState`] in the store's meta table, renews it while it runs, and removes its claim when
//! it stops: see [`watchers`]. A second watcher of the same root refuses to start.

mod backlog;
mod backoff;
mod embed;
mod files;
mod follow;
mod lease;
mod observer;
mod options;
mod overflow;
mod retries;
mod state;
mod worker;

use std::sync::Arc;

use amplifier_session_core::{Error, ErrorKind, Result};
use tokio::{sync::watch as signal, task::JoinSet};

use backlog::Backlog;
use follow::Follower;
use worker::Worker;

pub use observer::{IgnoreWatchEvents, WatchEvent, WatchObserver};
pub use options::{Intervals, WatchOptions, WatchTarget};
pub use state::{WatchFailure, WatcherState, watchers};

/// Whether to stop.
#[derive(Debug, Clone)]
struct Stop(signal::Receiver<bool>);

impl Stop {
    fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is set.
    async fn wait(&mut self) {
        // If the sender is gone, so is the watcher.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}

/// Keeps `targets` up to date with the session folders in the roots of `options`, until `stop` is ready. Then, the
/// sessions that are being written are completed, and no further one is begun.
///
/// A store that can't be reached is tried again at growing intervals. Nothing is lost by that: what changed is known, or
/// else everything is compared again. A root that does not exist is awaited.
///
/// # Errors
///
/// `Conflict` if another process watches one of the roots for one of the stores; `Validation` for an invalid glob. Then,
/// all of it stops.
pub async fn watch(
    targets: Vec<WatchTarget>,
    options: WatchOptions,
    observer: Arc<dyn WatchObserver>,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let options = Arc::new(options);
    let (stopping, receiver) = signal::channel(false);
    let receiver = Stop(receiver);
    let backlogs: Vec<_> = targets.iter().map(|_| Arc::new(Backlog::new(options.roots.len()))).collect();
    let mut tasks = JoinSet::new();
    for (target, backlog) in targets.into_iter().zip(&backlogs) {
        let worker =
            Worker::new(target, &options, Arc::clone(backlog), Arc::clone(&observer), receiver.clone());
        tasks.spawn(worker.run());
    }
    for root in 0..options.roots.len() {
        let follower =
            Follower::new(root, &options, backlogs.clone(), Arc::clone(&observer), receiver.clone());
        tasks.spawn(follower.run());
    }
    let first = tokio::select! {
        () = stop => Ok(()),
        ended = tasks.join_next() => ended.map_or(Ok(()), flatten),
    };
    stopping.send_replace(true);
    let mut outcome = first;
    while let Some(ended) = tasks.join_next().await {
        outcome = outcome.and(flatten(ended));
    }
    outcome
}

fn flatten(ended: Result<Result<()>, tokio::task::JoinError>) -> Result<()> {
    ended.unwrap_or_else(|source| {
        Err(Error::new(ErrorKind::StorageIo, "a task of the watcher failed").with_source(source))
    })
}
