//! The report of a sync.

use std::{collections::BTreeMap, path::PathBuf};

use amplifier_session_core::{
    model::ContentType,
    storage::{EmbedReport, IngestReport},
};
use serde::{Deserialize, Serialize};

use crate::{discover::SessionFolder, files::EVENTS, progress::SessionOutcome, state::Damage};

/// A report lists at most this many skipped lines or failures; further ones are only counted.
const LISTED: usize = 1_000;

/// The result of a sync, or in a dry run, what it would do.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SyncReport {
    /// Sessions.
    pub sessions: SessionCounts,
    /// Total size of the files to read; unchanged sessions are not read.
    pub bytes: u64,
    /// Messages.
    pub messages: MessageCounts,
    /// Events.
    pub events: EventCounts,
    /// Vectors that were made, by content type, including those that earlier runs left pending.
    pub vectors: BTreeMap<ContentType, u64>,
    /// Turns whose vectors were made.
    pub turns: u64,
    /// Messages with a text that the embedding service rejected.
    pub texts_refused: u64,
    /// Secrets that were masked before a text left this machine.
    pub secrets_masked: u64,
    /// Secrets that were masked in stored lines.
    pub secrets_masked_in_store: u64,
    /// Why vectors are still pending, if making them failed. The next sync makes them.
    #[serde(rename = "vectors_owed_reason")]
    pub vectors_pending_reason: Option<String>,
    /// Why the search index could not be updated, if it failed. All rows are stored, and searches are correct but
    /// slower.
    pub index_problem: Option<String>,
    /// The first 1,000 lines, files and folders that were skipped.
    pub skipped: Vec<Skipped>,
    /// The total number of skipped lines, files and folders.
    pub skipped_count: u64,
    /// The first 1,000 folders that are copies of a session and changed nothing.
    pub copies: Vec<PathBuf>,
    /// The first 1,000 files that end in the middle of a line, or are empty, and changed within the last hour: their
    /// writers may complete them. What is complete is stored.
    pub unfinished: Vec<Skipped>,
    /// The first 1,000 damaged files, each with the number of stored rows that it no longer contains and that were
    /// kept.
    pub kept: Vec<Kept>,
    /// The total number of rows that were kept.
    pub kept_rows: u64,
    /// The first 1,000 lines that were stored although their time or turn can't be read.
    pub warnings: Vec<Skipped>,
    /// The total number of such lines.
    pub warning_count: u64,
    /// The first 1,000 sessions and files that could not be read or stored.
    pub failures: Vec<FolderFailure>,
    /// The duration in seconds, by the storage's clock.
    pub seconds: f64,
    /// Whether this was a dry run, which changes nothing.
    pub dry_run: bool,
}

/// Counts of sessions. Each found session is new, changed, unchanged or failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionCounts {
    /// All sessions that were checked.
    pub found: u64,
    /// New sessions.
    pub new: u64,
    /// Sessions with stored or removed rows. In a dry run: sessions whose files look different.
    pub changed: u64,
    /// Sessions whose stored rows were up to date.
    pub unchanged: u64,
    /// Sessions that could not be completely read or stored.
    pub failed: u64,
    /// Sessions that were skipped because they were deleted from the store. They do not count as found.
    pub deleted: u64,
}

/// Counts of messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MessageCounts {
    /// New or changed messages.
    pub written: u64,
    /// Messages that are gone from the transcript.
    pub removed: u64,
    /// Removed or replaced messages whose lines were superseded.
    pub superseded: u64,
    /// Stored messages whose time changed because events or metadata changed.
    pub retimed: u64,
    /// The written messages by content type; a message may count several times or not at all.
    pub by_content_type: BTreeMap<ContentType, u64>,
}

/// Counts of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EventCounts {
    /// New or changed events.
    pub written: u64,
    /// Events that are gone from the log.
    pub removed: u64,
    /// Removed or replaced events whose lines were superseded.
    pub superseded: u64,
}

/// A line, file or folder that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Skipped {
    /// The project folder.
    pub project: String,
    /// The session folder; `None` for the whole project.
    pub session: Option<String>,
    /// The path within the session folder; `None` for the whole folder.
    pub file: Option<String>,
    /// The line number, from 1; `None` for the whole file.
    pub line: Option<u64>,
    /// The reason.
    pub reason: String,
}

/// A damaged file whose stored rows were kept. A sync that accepts removals removes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Kept {
    /// The project folder.
    pub project: String,
    /// The session folder.
    pub session: String,
    /// The path within the session folder.
    pub file: String,
    /// The problem of the file, for example "is empty".
    pub reason: String,
    /// Stored messages that are missing from the file.
    pub messages: u64,
    /// Stored events that are missing from the file.
    pub events: u64,
}

/// A session or file that could not be read or stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FolderFailure {
    /// The project folder.
    pub project: String,
    /// The session folder; `None` if the whole project can't be read.
    pub session: Option<String>,
    /// The error.
    pub error: String,
}

impl SyncReport {
    /// Counts a session.
    pub(crate) fn count(&mut self, outcome: SessionOutcome) {
        let count = match outcome {
            SessionOutcome::New => &mut self.sessions.new,
            SessionOutcome::Changed => &mut self.sessions.changed,
            SessionOutcome::Unchanged => &mut self.sessions.unchanged,
            SessionOutcome::Failed => &mut self.sessions.failed,
        };
        *count += 1;
        self.sessions.found += 1;
    }

    /// Adds the rows of one session.
    pub(crate) fn add(&mut self, ingest: &IngestReport) {
        self.messages.written += ingest.messages_written;
        self.messages.removed += ingest.messages_removed;
        self.messages.superseded += ingest.messages_superseded;
        self.events.superseded += ingest.events_superseded;
        self.messages.retimed += ingest.messages_retimed;
        add_counts(&mut self.messages.by_content_type, &ingest.messages_by_content_type);
        self.events.written += ingest.events_written;
        self.events.removed += ingest.events_removed;
        self.secrets_masked_in_store += ingest.secrets_masked;
    }

    /// Adds the report of one session.
    pub(crate) fn merge(&mut self, other: Self) {
        self.messages.written += other.messages.written;
        self.messages.removed += other.messages.removed;
        self.messages.superseded += other.messages.superseded;
        self.events.superseded += other.events.superseded;
        self.messages.retimed += other.messages.retimed;
        add_counts(&mut self.messages.by_content_type, &other.messages.by_content_type);
        self.events.written += other.events.written;
        self.events.removed += other.events.removed;
        self.secrets_masked_in_store += other.secrets_masked_in_store;
        self.skipped_count += other.skipped_count;
        self.kept_rows += other.kept_rows;
        self.warning_count += other.warning_count;
        list(&mut self.skipped, other.skipped);
        list(&mut self.copies, other.copies);
        list(&mut self.unfinished, other.unfinished);
        list(&mut self.kept, other.kept);
        list(&mut self.warnings, other.warnings);
        list(&mut self.failures, other.failures);
    }

    /// Adds the vectors that were made, and the reason if making them failed.
    pub(crate) fn add_vectors(&mut self, embedded: EmbedReport) {
        self.texts_refused += embedded.refused;
        self.secrets_masked += embedded.secrets;
        self.turns += embedded.turns;
        add_counts(&mut self.vectors, &embedded.vectors);
        if let Some(failure) = embedded.failure {
            self.vectors_pending_reason.get_or_insert(failure.to_string());
        }
    }

    /// Adds a skipped line, file or folder; it is only counted if the list is full.
    pub(crate) fn skip(&mut self, skipped: Skipped) {
        self.skipped_count += 1;
        list(&mut self.skipped, [skipped]);
    }

    /// Adds a folder that is a copy of a session, unless the list is full.
    pub(crate) fn copy(&mut self, folder: &SessionFolder, file: Option<&str>, reason: String) {
        list(&mut self.copies, [folder.path.clone()]);
        self.skip(Skipped::file(folder, file, reason));
    }

    /// Adds a file that its writer may complete, unless the list is full.
    pub(crate) fn unfinished(&mut self, file: Skipped) {
        list(&mut self.unfinished, [file]);
    }

    /// Adds a damaged file whose rows were kept; they are only counted if the list is full.
    pub(crate) fn keep(&mut self, kept: Kept) {
        self.kept_rows += kept.messages + kept.events;
        list(&mut self.kept, [kept]);
    }

    /// Adds a warning about a line; it is only counted if the list is full.
    pub(crate) fn warn(&mut self, warning: Skipped) {
        self.warning_count += 1;
        list(&mut self.warnings, [warning]);
    }

    /// Adds a failure, unless the list is full.
    pub(crate) fn fail(&mut self, failure: FolderFailure) {
        list(&mut self.failures, [failure]);
    }

    /// Whether rows were written or removed.
    pub(crate) fn has_rows(&self) -> bool {
        let (messages, events) = (&self.messages, &self.events);
        messages.written + messages.removed + messages.retimed + events.written + events.removed > 0
    }
}

/// Adds items to a list, unless it is full.
fn list<T>(items: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    let room = LISTED.saturating_sub(items.len());
    items.extend(more.into_iter().take(room));
}

fn add_counts(counts: &mut BTreeMap<ContentType, u64>, more: &BTreeMap<ContentType, u64>) {
    for (content_type, count) in more {
        *counts.entry(*content_type).or_default() += count;
    }
}

impl Skipped {
    pub(crate) fn line(folder: &SessionFolder, file: &str, line: u64, reason: String) -> Self {
        Self { line: Some(line), ..Self::file(folder, Some(file), reason) }
    }

    /// A file, or the whole folder.
    pub(crate) fn file(folder: &SessionFolder, file: Option<&str>, reason: String) -> Self {
        Self {
            project: folder.project.to_string(),
            session: Some(folder.session.to_string()),
            file: file.map(str::to_owned),
            line: None,
            reason,
        }
    }
}

impl Kept {
    pub(crate) fn of(folder: &SessionFolder, file: &str, damage: &Damage) -> Self {
        let rows = u64::from(damage.missing);
        let (messages, events) = if EVENTS.contains(&file) { (0, rows) } else { (rows, 0) };
        Self {
            project: folder.project.to_string(),
            session: folder.session.to_string(),
            file: file.to_owned(),
            reason: damage.reason.clone(),
            messages,
            events,
        }
    }
}

impl FolderFailure {
    pub(crate) fn of(folder: &SessionFolder, error: String) -> Self {
        Self { project: folder.project_folder(), session: Some(folder.session.to_string()), error }
    }
}
