//! The report of an upgrade.

use std::{collections::BTreeMap, path::PathBuf};

use amplifier_session_core::model::EmbeddingSpace;
use serde::Serialize;

/// The result of an upgrade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UpgradeOutcome {
    /// The file is already a store of this library.
    #[default]
    UpToDate,
    /// It would be upgraded.
    WouldUpgrade,
    /// The store now contains its sessions.
    Upgraded,
}

/// Numbers of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct UpgradeCounts {
    /// Sessions.
    pub sessions: u64,
    /// Messages.
    pub messages: u64,
    /// Events.
    pub events: u64,
    /// Vectors.
    pub vectors: u64,
}

/// What an upgrade did or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Upgrade {
    /// The result.
    pub outcome: UpgradeOutcome,
    /// The old file.
    pub file: PathBuf,
    /// The new store.
    pub store: String,
    /// The generation of the Python library's tables in the file.
    pub generation: Option<u32>,
    /// The rows that were written to the store, or would be written to an empty one.
    #[serde(flatten)]
    pub counts: UpgradeCounts,
    /// Sessions that were not changed, because the store has them or they were deleted from it.
    pub skipped: u64,
    /// The space of the store's vectors.
    pub space: Option<EmbeddingSpace>,
    /// Written messages that have something to embed but no vectors: a backfill makes them.
    #[serde(rename = "owing")]
    pub pending: u64,
    /// Vectors that were not written, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Messages with an unknown role, which are stored as system messages.
    pub unknown_roles: u64,
    /// The new name of the old file, if the store took its place.
    pub backup: Option<PathBuf>,
}

impl Upgrade {
    /// The report if nothing was done.
    pub(crate) fn nothing(file: PathBuf, store: String) -> Self {
        Self { file, store, ..Self::default() }
    }
}

/// The progress of an upgrade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UpgradeProgress {
    /// Messages and events that were processed.
    pub done: u64,
    /// All messages and events.
    pub total: u64,
}

/// Called from time to time with the progress.
pub type OnProgress = Box<dyn FnMut(UpgradeProgress) + Send>;
