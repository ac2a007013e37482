//! What a sync did.

use std::collections::BTreeMap;

use amplifier_session_core::{
    model::ContentType,
    storage::{EmbedReport, IngestReport},
};
use serde::Serialize;

use crate::{SessionFolder, SessionOutcome, files::EVENTS, state::Damage};

/// How many skipped lines and failures a report names; beyond it they are only counted.
const NAMED: usize = 1_000;

/// What a sync did; in a dry run, what it would do.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SyncReport {
    /// Sessions.
    pub sessions: SessionCounts,
    /// Bytes of the files that were to be read; unchanged sessions are not read.
    pub bytes: u64,
    /// Messages.
    pub messages: MessageCounts,
    /// Events.
    pub events: EventCounts,
    /// Vectors that were made, by content type; those that earlier runs owed are among them.
    pub vectors: BTreeMap<ContentType, u64>,
    /// Messages of which the embedding service refuses a text.
    pub texts_refused: u64,
    /// Secrets that were masked before a text left this machine.
    pub secrets_masked: u64,
    /// Why vectors are still owed, where making them failed. The next sync makes them.
    pub vectors_owed_reason: Option<String>,
    /// Why the search index could not be brought up to date, if so. All is stored nevertheless, and searches are right,
    /// only slower.
    pub index_problem: Option<String>,
    /// Lines, files and folders that were left out: the first 1,000.
    pub skipped: Vec<Skipped>,
    /// The number of all that was left out.
    pub skipped_count: u64,
    /// Files that are damaged, and how many stored rows were kept that are missing from them: the first 1,000.
    pub kept: Vec<Kept>,
    /// The number of all rows that were kept.
    pub kept_rows: u64,
    /// Lines that were taken although something that they say can't be read, a time or a turn: the first 1,000.
    pub warnings: Vec<Skipped>,
    /// The number of all such lines.
    pub warning_count: u64,
    /// What could not be read or stored: the first 1,000.
    pub failures: Vec<Failure>,
    /// How long it took, by the storage's clock.
    pub seconds: f64,
    /// Whether nothing was done.
    pub dry_run: bool,
}

/// Counts of sessions; every session that was found is one of the other four.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionCounts {
    /// All that were looked at.
    pub found: u64,
    /// Those that were not stored before.
    pub new: u64,
    /// Those of which something was stored or removed. In a dry run: those whose files look different.
    pub changed: u64,
    /// Those that were stored as they are.
    pub unchanged: u64,
    /// Those of which something could not be read or stored.
    pub failed: u64,
    /// Those that were passed over because they were deleted from the store; they are not among the found ones.
    pub deleted: u64,
}

/// Counts of messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MessageCounts {
    /// New or changed ones.
    pub written: u64,
    /// Those that are gone from the transcript.
    pub removed: u64,
    /// Those that were there already and got another time: events or metadata said more than before.
    pub retimed: u64,
    /// The written ones by the texts they hold; a message may hold several or none.
    pub by_content_type: BTreeMap<ContentType, u64>,
}

/// Counts of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EventCounts {
    /// New or changed ones.
    pub written: u64,
    /// Those that are gone from the log.
    pub removed: u64,
}

/// Something that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Skipped {
    /// The project folder.
    pub project: String,
    /// The session folder; none where it is about the whole project.
    pub session: Option<String>,
    /// Path within the session folder; the whole folder where there is none.
    pub file: Option<String>,
    /// 1-based number of the line; the whole file where there is none.
    pub line: Option<u64>,
    /// Why.
    pub reason: String,
}

/// A damaged file whose stored rows were kept. A sync that accepts removals removes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Kept {
    /// The project folder.
    pub project: String,
    /// The session folder.
    pub session: String,
    /// Path within the session folder.
    pub file: String,
    /// What is wrong with the file, for example "is empty".
    pub reason: String,
    /// Stored messages that are missing from the file.
    pub messages: u64,
    /// Stored events that are missing from the file.
    pub events: u64,
}

/// Something that could not be read or stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Failure {
    /// The project folder.
    pub project: String,
    /// The session folder; none where the whole project can't be read.
    pub session: Option<String>,
    /// What happened.
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
        self.messages.retimed += ingest.messages_retimed;
        add_counts(&mut self.messages.by_content_type, &ingest.messages_by_content_type);
        self.events.written += ingest.events_written;
        self.events.removed += ingest.events_removed;
    }

    /// Adds what was found in one session.
    pub(crate) fn merge(&mut self, other: Self) {
        self.messages.written += other.messages.written;
        self.messages.removed += other.messages.removed;
        self.messages.retimed += other.messages.retimed;
        add_counts(&mut self.messages.by_content_type, &other.messages.by_content_type);
        self.events.written += other.events.written;
        self.events.removed += other.events.removed;
        self.skipped_count += other.skipped_count;
        self.skipped.extend(other.skipped);
        self.skipped.truncate(NAMED);
        self.kept_rows += other.kept_rows;
        self.kept.extend(other.kept);
        self.kept.truncate(NAMED);
        self.warning_count += other.warning_count;
        self.warnings.extend(other.warnings);
        self.warnings.truncate(NAMED);
        self.failures.extend(other.failures);
        self.failures.truncate(NAMED);
    }

    /// Adds the vectors that were made; none at all is no reason, a failure is one.
    pub(crate) fn add_vectors(&mut self, embedded: EmbedReport) {
        self.texts_refused += embedded.refused;
        self.secrets_masked += embedded.secrets;
        add_counts(&mut self.vectors, &embedded.vectors);
        if let Some(failure) = embedded.failure {
            self.vectors_owed_reason.get_or_insert(failure.to_string());
        }
    }

    /// Names something that was left out, or only counts it when there is much of it.
    pub(crate) fn skip(&mut self, skipped: Skipped) {
        self.skipped_count += 1;
        if self.skipped.len() < NAMED {
            self.skipped.push(skipped);
        }
    }

    /// Names a damaged file whose rows were kept, or only counts them when there are many files.
    pub(crate) fn keep(&mut self, kept: Kept) {
        self.kept_rows += kept.messages + kept.events;
        if self.kept.len() < NAMED {
            self.kept.push(kept);
        }
    }

    /// Names a line that was taken with a doubt, or only counts it when there are many.
    pub(crate) fn warn(&mut self, warning: Skipped) {
        self.warning_count += 1;
        if self.warnings.len() < NAMED {
            self.warnings.push(warning);
        }
    }

    /// Names something that failed, unless there is much of it.
    pub(crate) fn fail(&mut self, failure: Failure) {
        if self.failures.len() < NAMED {
            self.failures.push(failure);
        }
    }

    /// Whether rows were written or removed.
    pub(crate) fn has_rows(&self) -> bool {
        let (messages, events) = (&self.messages, &self.events);
        messages.written + messages.removed + messages.retimed + events.written + events.removed > 0
    }
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

impl Failure {
    pub(crate) fn of(folder: &SessionFolder, error: String) -> Self {
        Self { project: folder.project.to_string(), session: Some(folder.session.to_string()), error }
    }
}
