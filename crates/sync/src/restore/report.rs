//! The report of a restore.

use amplifier_session_core::model::{DamagedRow, ProjectSlug, SessionId, SessionKey, UserId};
use serde::Serialize;

/// The result of a restore.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RestoreReport {
    /// The number of sessions whose files exist now.
    pub sessions: u64,
    /// The number of these sessions whose files already existed with the same content.
    pub unchanged: u64,
    /// The number of their messages.
    pub messages: u64,
    /// The number of their events.
    pub events: u64,
    /// The total size of their files.
    pub bytes: u64,
    /// Files that are not byte for byte the same as the synced ones, and why.
    pub differing: Vec<DifferingFile>,
    /// Sessions that were not restored, and why.
    pub failed: Vec<NotRestored>,
    /// Rows that are missing from the files because they can't be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
}

/// A restored file that is missing or is not byte for byte the same as the synced one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DifferingFile {
    /// The owner of the session.
    pub user_id: UserId,
    /// The project folder.
    pub project: ProjectSlug,
    /// The session folder.
    pub session_id: SessionId,
    /// The path within the session folder.
    pub file: String,
    /// The kind of reason.
    pub because: DiffersBecause,
    /// The reason in words.
    pub reason: String,
}

/// Why a restored file differs from the synced one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DiffersBecause {
    /// Lines that a sync skipped are not stored.
    SkippedLines,
    /// Events were stored without their lines. The file is not written.
    NoLines,
    /// The synced file was damaged, and rows from before the damage are stored.
    KeptRows,
    /// The size differs: line ends, blank lines and a byte order mark of a log are not stored, and the synced file may
    /// have continued.
    OtherSize,
}

/// A session that was not restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NotRestored {
    /// Its owner.
    pub user_id: UserId,
    /// Its id.
    pub session_id: SessionId,
    /// The reason.
    pub reason: String,
}

impl RestoreReport {
    pub(super) fn fail(&mut self, key: &SessionKey, reason: String) {
        let SessionKey { user_id, session_id } = key.clone();
        self.failed.push(NotRestored { user_id, session_id, reason });
    }
}
