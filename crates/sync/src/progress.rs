//! Progress of a sync.

use crate::discover::SessionFolder;

/// Receives the progress of a sync, for example to draw a progress bar. By default, all methods do nothing.
pub trait Progress: Send + Sync {
    /// The plan is complete, with this number of sessions to check and bytes to read.
    fn begin(&self, sessions: u64, bytes: u64) {
        let _ = (sessions, bytes);
    }

    /// This many more bytes were read.
    fn advance(&self, bytes: u64) {
        let _ = bytes;
    }

    /// A session was processed. In a dry run, `outcome` is what would happen.
    fn session(&self, folder: &SessionFolder, outcome: SessionOutcome) {
        let _ = (folder, outcome);
    }

    /// The next stage begins.
    fn stage(&self, stage: Stage) {
        let _ = stage;
    }
}

/// Ignores progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {}

/// A stage of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Reading session folders; vectors are made at the same time.
    Reading,
    /// Making the remaining vectors.
    Embedding,
    /// Updating the search index.
    Indexing,
}

/// The outcome for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionOutcome {
    /// It is new in the store.
    New,
    /// Rows were stored or removed.
    Changed,
    /// The stored session was up to date.
    Unchanged,
    /// Part of it could not be read or stored; see [`crate::SyncReport::failures`].
    Failed,
}
