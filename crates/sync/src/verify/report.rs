//! The report of a verification.

use std::path::PathBuf;

use amplifier_session_core::{backend::IndexCheck, model::Difference, storage::SessionCheck};
use serde::Serialize;

use super::compare::Compared;

/// A report lists at most this many differences; further ones are only counted.
const LISTED: usize = 10_000;

/// The result of a verification: what was compared, and what differs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Stored sessions that were compared with themselves.
    pub sessions: u64,
    /// The number of these sessions that were compared with a folder on disk.
    pub on_disk: u64,
    /// Their messages.
    pub messages: u64,
    /// Their events.
    pub events: u64,
    /// Their vectors of the current generation.
    pub vectors: u64,
    /// Messages whose vectors are pending.
    pub pending_vectors: u64,
    /// Lines of files that were compared with rows.
    pub lines: u64,
    /// The size of these files in bytes.
    pub bytes: u64,
    /// Known deviations, which are not differences.
    pub known: KnownDifferences,
    /// Folders with an older or a diverged copy of a session. They are not compared.
    pub copies: Vec<PathBuf>,
    /// Rows that are newer than the search index, and that searches read directly.
    pub newer_than_index: u64,
    /// The first 10,000 differences.
    pub differences: Vec<Difference>,
    /// The total number of differences.
    pub difference_count: u64,
    /// The first 10,000 differences that remain after a repair. `None` without a repair.
    pub left: Option<Vec<Difference>>,
    /// The total number of differences after a repair.
    pub left_count: u64,
    /// The duration in seconds, by the storage's clock.
    pub seconds: f64,
}

/// Differences between store and disk that a sync does not change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KnownDifferences {
    /// Sessions that were deleted from the store but whose folders still exist.
    pub deleted_sessions: u64,
    /// Stored sessions without a folder in the root.
    pub without_folder: u64,
    /// Folders and files that a sync skips.
    pub skipped_folders: u64,
    /// Lines and metadata files that a sync skips because they can't be read.
    pub skipped_lines: u64,
    /// Stored rows that damaged or missing files do not contain.
    pub kept_rows: u64,
    /// Lines on disk whose rows were removed by a rewind.
    pub rewound_lines: u64,
}

impl VerifyReport {
    /// Whether everything is in order: nothing differed, or everything was repaired.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        match &self.left {
            Some(_) => self.left_count == 0,
            None => self.difference_count == 0,
        }
    }

    pub(super) fn add(&mut self, check: &SessionCheck, compared: Option<&Compared>) {
        self.sessions += 1;
        self.messages += check.messages;
        self.events += check.events;
        self.vectors += check.vectors;
        self.pending_vectors += check.pending_vectors;
        if let Some(compared) = compared {
            self.on_disk += 1;
            self.lines += compared.lines;
            self.bytes += compared.bytes;
            self.known.skipped_lines += compared.skipped;
            self.known.kept_rows += compared.kept;
            self.known.rewound_lines += compared.rewound;
        }
    }

    pub(super) fn add_index(&mut self, check: &IndexCheck) {
        self.newer_than_index = check.newer;
    }
}

/// Differences. Only the first ones are listed.
#[derive(Debug, Clone, Default)]
pub(super) struct ListedDifferences {
    pub(super) listed: Vec<Difference>,
    pub(super) count: u64,
}

impl ListedDifferences {
    pub(super) fn add(&mut self, difference: Difference) {
        self.count += 1;
        if self.listed.len() < LISTED {
            self.listed.push(difference);
        }
    }

    /// Adds differences; their total number is `count`.
    pub(super) fn extend(&mut self, differences: impl IntoIterator<Item = Difference>, count: u64) {
        let before = self.count;
        differences.into_iter().for_each(|difference| self.add(difference));
        self.count = before + count;
    }
}
