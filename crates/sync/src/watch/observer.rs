//! The reports of a watcher.

use std::{path::Path, time::Duration};

use amplifier_session_core::{Error, storage::EmbedReport};

use crate::report::SyncReport;

/// Receives the events of a watcher. It is called by several tasks, and must return soon.
pub trait WatchObserver: Send + Sync {
    /// Called for each event.
    fn event(&self, event: &WatchEvent<'_>);
}

impl<F: Fn(&WatchEvent<'_>) + Send + Sync> WatchObserver for F {
    fn event(&self, event: &WatchEvent<'_>) {
        self(event);
    }
}

/// An event: something that a watcher did or found.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum WatchEvent<'a> {
    /// A root is followed: changes are noticed when they happen.
    Following {
        /// The root.
        root: &'a Path,
    },
    /// A root is compared with the stores at regular intervals, because changes can't be noticed.
    Polling {
        /// The root.
        root: &'a Path,
        /// Why.
        reason: &'a str,
        /// The interval.
        every: Duration,
    },
    /// A root has no folder `projects` at the moment. It is followed again when the folder exists.
    RootGone {
        /// The root.
        root: &'a Path,
    },
    /// Sessions were compared with a store and read where they differ.
    Synced {
        /// The name of the store.
        target: &'a str,
        /// The root.
        root: &'a Path,
        /// Whether all sessions of the root were compared.
        complete: bool,
        /// The result of the sync.
        report: &'a SyncReport,
        /// The number of sessions that changed since; `None` if any session may have changed.
        backlog: Option<u64>,
    },
    /// A store can't be used at the moment. It is tried again.
    StoreDown {
        /// The name of the store.
        target: &'a str,
        /// Why.
        error: &'a Error,
        /// When it is tried again.
        retry_in: Duration,
        /// The number of waiting sessions; `None` if any session may have changed.
        backlog: Option<u64>,
    },
    /// A store can be used, either for the first time or again.
    StoreUp {
        /// The name of the store.
        target: &'a str,
    },
    /// Vectors were made, or could not be made.
    Embedded {
        /// The name of the store.
        target: &'a str,
        /// The result, with the reason if it ended early.
        report: &'a EmbedReport,
    },
    /// The search index of a store could not be updated. Searches are correct but slower.
    IndexFailed {
        /// The name of the store.
        target: &'a str,
        /// Why.
        error: &'a Error,
    },
}
