//! Follows session folders, and syncs what changes.
//!
//! [`watch()`] runs until it is told to stop. Each root is followed with the notifications of the file system, or
//! polled if there are none. Each store has its own list of changed sessions, so that a store that is down does not
//! hold up the others. A complete sync finds what notifications did not report: at the start, at intervals, and
//! whenever notifications may have been lost.
//!
//! A watcher stores a [`WatcherState`](crate::WatcherState) in the store's meta table, renews it while it runs, and removes its claim when
//! it stops: see [`watchers`](crate::watchers()). A second watcher of the same root refuses to start.

mod backlog;
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

pub use observer::{WatchEvent, WatchObserver};
pub use options::{Intervals, WatchOptions, WatchTarget};

/// Whether to stop.
#[derive(Debug, Clone)]
struct Stop(signal::Receiver<bool>);

impl Stop {
    fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the signal to stop.
    async fn wait(&mut self) {
        // If the sender is gone, so is the watcher.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}

/// Keeps `targets` up to date with the session folders in the roots of `options`, until `stop` completes. It then
/// finishes writing the current sessions and begins no further one.
///
/// A store that can't be reached is tried again at growing intervals. Nothing is lost meanwhile: either the changes are
/// recorded, or everything is compared again. If a root does not exist, waits for it.
///
/// # Errors
///
/// `Conflict` if another process watches one of the roots for one of the stores; `Validation` for an invalid glob. In
/// both cases, the whole watcher stops.
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
    // The others end their current sessions; the first error is returned.
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
