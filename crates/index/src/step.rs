//! Folding in steps: each ends at a revision, and is kept if the process is killed later.

use amplifier_session_core::{Error, ErrorKind, Result};

use crate::rows::{Rows, StoreRevision};

/// The result of a fold for one part.
#[derive(Debug)]
pub(crate) struct PartFolded {
    /// Number of rows added.
    pub(crate) rows: u64,
    /// Why the part was rebuilt, if it was.
    pub(crate) rebuilt: Option<String>,
}

/// The state of a part after a step that ended at a revision, or with all rows in the index.
pub(crate) fn step_mark(end: Option<u64>, rows: &mut dyn Rows, now: StoreRevision) -> Result<StoreRevision> {
    let Some(revision) = end else { return Ok(now) };
    let nonce = rows.nonce(revision)?.ok_or_else(|| {
        Error::new(ErrorKind::StorageIo, "a row has a revision that the store does not know")
            .with_operation("index")
            .with("revision", revision)
    })?;
    Ok(StoreRevision { revision, nonce, ..now })
}
