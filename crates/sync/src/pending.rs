//! Changes that a store does not have yet.

use std::path::PathBuf;

use amplifier_session_core::{Result, SessionStorage, model::Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    last::LastSyncs,
    options::SyncOptions,
    plan::Plan,
    report::{FolderFailure, SyncReport},
};

/// The changes in roots that a store does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Pending {
    /// The number of sessions that a sync would read.
    pub sessions: u64,
    /// The number of bytes that it would read.
    pub bytes: u64,
    /// When the session that has waited longest changed.
    pub oldest_change: Option<Timestamp>,
    /// When the session that changed last changed.
    pub newest_change: Option<Timestamp>,
    /// When the last complete sync of each root began, if known: the earliest.
    pub last_complete_sync: Option<Timestamp>,
    /// Folders that can't be read or stored.
    pub failures: Vec<FolderFailure>,
    /// Folders that are copies of a session and changed nothing.
    pub copies: Vec<PathBuf>,
}

/// Compares the folders in roots with a store, without reading sessions.
///
/// # Errors
///
/// As [`crate::sync`].
pub async fn pending(storage: &SessionStorage, options: &SyncOptions) -> Result<Pending> {
    let last = LastSyncs::read(storage, options).await?;
    let mut report = SyncReport::default();
    let mut plan = Plan::new(storage, options, &mut report).await?;
    plan.sessions.retain(|planned| planned.is_changed);
    let changes = || plan.sessions.iter().map(|planned| planned.folder.modified);
    Ok(Pending {
        sessions: plan.sessions.len() as u64,
        bytes: plan.bytes(),
        oldest_change: changes().min(),
        newest_change: changes().max(),
        last_complete_sync: last.begun(),
        failures: report.failures,
        copies: report.copies,
    })
}
