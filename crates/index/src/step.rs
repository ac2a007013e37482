//! Folding in steps: each ends at a revision, and is kept if the process is killed later.

use amplifier_session_core::{Error, ErrorKind, Result};

use crate::rows::{Rows, StoreRevision};

/// The end of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepEnd {
    /// All rows are in the index.
    Now,
    /// The rows up to this revision are in the index.
    Revision(u64),
}

/// The result of a fold for one part.
#[derive(Debug, Default)]
pub(crate) struct PartFolded {
    /// Number of rows added.
    pub(crate) rows: u64,
    /// Why the part was rebuilt, if it was.
    pub(crate) rebuilt: Option<String>,
}

/// The state of a part after a step.
pub(crate) fn step_mark(end: StepEnd, rows: &mut dyn Rows, now: StoreRevision) -> Result<StoreRevision> {
    match end {
        StepEnd::Now => Ok(now),
        StepEnd::Revision(revision) => match rows.nonce(revision)? {
            Some(nonce) => Ok(StoreRevision { revision, nonce, ..now }),
            None => {
                Err(Error::new(ErrorKind::StorageIo, "a row has a revision that the store does not know")
                    .with_operation("index")
                    .with("revision", revision))
            }
        },
    }
}
