//! Copies of a session: folders other than the one from which its rows were read.

use amplifier_session_core::model::HostId;
use serde::{Deserialize, Serialize};

use crate::files::Stamp;

/// The folder that the stored rows of a session come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadFolder {
    pub(crate) folder: String,
    pub(crate) host: String,
}

impl ReadFolder {
    /// How to name the folder to a user of the machine `here`.
    pub(crate) fn name_on(&self, here: &HostId) -> String {
        if self.host == here.as_str() {
            self.folder.clone()
        } else {
            format!("{} on another machine ({})", self.folder, self.host)
        }
    }
}

/// How a copy compares with the stored session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CopyKind {
    /// All stored messages.
    Equal,
    /// Only the first ones of the stored messages.
    Older,
    /// Another message than the stored one, from this line on.
    Diverged {
        /// The line, from 1.
        line: u64,
    },
}

/// A copy that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownCopy {
    /// The stamp of its transcript.
    pub(crate) stamp: Stamp,
    pub(crate) kind: CopyKind,
}

impl CopyKind {
    /// The reason why a sync on the machine `here` changes nothing, for a report.
    pub(crate) fn reason(self, read: &ReadFolder, here: &HostId) -> String {
        let read = read.name_on(here);
        match self {
            Self::Equal | Self::Older => {
                format!("is a copy with no more than what was read from {read}: nothing is changed")
            }
            Self::Diverged { line } => format!(
                "differs from line {line} on from what was read from {read}, which the store keeps; \
                 with --accept-removals, a sync takes this folder instead"
            ),
        }
    }
}
