//! The input and the report of ingesting a session.

use std::collections::BTreeMap;

use crate::{
    ErrorKind,
    model::{ContentType, HostId, ProjectSlug, RawJson, SessionKey},
    storage::session_writer::WrittenRows,
};

/// The session to ingest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestTarget {
    /// Owner and id.
    pub key: SessionKey,
    /// The machine that it comes from.
    pub host_id: HostId,
    /// Its project.
    pub project_slug: ProjectSlug,
}

/// Whether lines are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// They are complete: stored rows after the last line are removed.
    Whole,
    /// They are a part: stored rows after the last line stay.
    Part,
}

/// The outcome for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineOutcome {
    /// It was accepted, or was already stored.
    Taken,
    /// It was accepted, or was already stored, but a part of it can't be read.
    Doubtful {
        /// What can't be read.
        reason: String,
    },
    /// It is invalid and was skipped; it has no sequence.
    Skipped {
        /// `Validation`, or `EventTooLarge`.
        kind: ErrorKind,
        /// The reason.
        reason: String,
        /// The line, with its secrets masked if they are masked in the store.
        line: RawJson,
    },
}

/// The report of ingesting one session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IngestReport {
    /// Whether the session was new.
    pub created: bool,
    /// Number of new or changed messages that were written.
    pub messages_written: u64,
    /// The number of written messages by content type; a message may count several times or not at all.
    pub messages_by_content_type: BTreeMap<ContentType, u64>,
    /// Number of messages that were removed.
    pub messages_removed: u64,
    /// Number of messages, removed or replaced, whose lines were superseded.
    pub messages_superseded: u64,
    /// Number of stored messages whose time changed.
    pub messages_retimed: u64,
    /// Number of new or changed events that were written.
    pub events_written: u64,
    /// Number of events that were removed.
    pub events_removed: u64,
    /// Number of events, removed or replaced, whose lines were superseded.
    pub events_superseded: u64,
    /// Number of secrets that were masked in the lines that were written.
    pub secrets_masked: u64,
}

impl IngestReport {
    /// Adds the rows that were written.
    pub(super) fn with_rows(self, rows: WrittenRows) -> Self {
        Self {
            messages_written: rows.messages,
            messages_removed: rows.messages_removed,
            events_written: rows.events,
            events_removed: rows.events_removed,
            ..self
        }
    }
}
