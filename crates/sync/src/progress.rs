//! Telling how far a sync is.

use crate::SessionFolder;

/// Is told how far a sync is, for example to draw a bar. All methods do nothing by default.
pub trait Progress: Send + Sync {
    /// It is known what there is to do: so many sessions to look at, so many bytes to read.
    fn begin(&self, sessions: u64, bytes: u64) {
        let _ = (sessions, bytes);
    }

    /// So many more bytes are read.
    fn advance(&self, bytes: u64) {
        let _ = bytes;
    }

    /// One session is done. In a dry run: this is what would become of it.
    fn session(&self, folder: &SessionFolder, outcome: SessionOutcome) {
        let _ = (folder, outcome);
    }

    /// Something else begins.
    fn stage(&self, stage: Stage) {
        let _ = stage;
    }
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {}

/// What a sync is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Reading session folders; vectors are made beside it.
    Reading,
    /// Making the vectors that are still owed.
    Embedding,
    /// Bringing the search index up to the rows.
    Indexing,
}

/// What became of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionOutcome {
    /// It was not stored before.
    New,
    /// Something of it is stored that was not, or removed.
    Changed,
    /// The store held it as it is.
    Unchanged,
    /// Something of it could not be read or stored; see [`crate::SyncReport::failures`].
    Failed,
}
