//! What is told of an upgrade.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use amplifier_session_core::model::EmbeddingSpace;
use serde::{Deserialize, Serialize};

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is a store of this library already.
    UpToDate,
    /// It would be upgraded.
    WouldUpgrade,
    /// It is a store of this library now.
    Upgraded,
}

/// How many rows there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Sessions.
    pub sessions: u64,
    /// Messages.
    pub messages: u64,
    /// Events.
    pub events: u64,
    /// Vectors.
    pub vectors: u64,
}

/// What was done, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Upgrade {
    /// What became of the file.
    pub outcome: Outcome,
    /// The file.
    pub file: PathBuf,
    /// Which generation of the Python library's tables it had.
    pub generation: Option<u32>,
    /// What the store holds.
    #[serde(flatten)]
    pub counts: Counts,
    /// The model of its vectors and their dimensions.
    pub space: Option<EmbeddingSpace>,
    /// Messages with something to embed that have no vectors: a backfill makes them.
    pub owing: u64,
    /// Vectors that the store does not hold, by what they are: they are in the backup alone.
    pub left_out: BTreeMap<String, u64>,
    /// Messages whose role is none that is known here: they are kept as the system's.
    pub unknown_roles: u64,
    /// The old file.
    pub backup: Option<PathBuf>,
}

impl Upgrade {
    /// Nothing is done with `file`.
    pub(crate) fn nothing(file: &Path) -> Self {
        Self {
            outcome: Outcome::UpToDate,
            file: file.to_owned(),
            generation: None,
            counts: Counts::default(),
            space: None,
            owing: 0,
            left_out: BTreeMap::new(),
            unknown_roles: 0,
            backup: None,
        }
    }
}

/// How far an upgrade is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Messages and events that are done.
    pub done: u64,
    /// Messages and events in all.
    pub total: u64,
}

/// Called from time to time with how far it is.
pub type OnProgress = Box<dyn FnMut(Progress) + Send>;
