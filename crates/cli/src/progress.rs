//! Progress bars.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use amplifier_session_storage::{
    model::SessionSource,
    storage::EmbedReport,
    sync::{Progress, SessionFolder, SessionOutcome, Stage},
};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::{
    environment::Environment,
    out::understands_escapes,
    render::text::{counted, grouped},
};

/// A progress bar on stderr. It is hidden if that is not a terminal, and cleared when it is dropped.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new(total: u64, template: &str) -> Self {
        let bar = Self::on_terminal();
        bar.0.set_length(total);
        bar.set_template(template);
        bar
    }

    /// A bar that is redrawn with escape sequences.
    fn on_terminal() -> Self {
        let environment = Environment::current();
        let is_shown = environment.stderr.is_terminal() && understands_escapes(&environment);
        Self(if is_shown { ProgressBar::new_spinner() } else { ProgressBar::hidden() })
    }

    /// A bar for the vectors of at most this many messages.
    pub(crate) fn of_vectors(messages: u64) -> Self {
        Self::new(messages, "creating vectors {wide_bar} {pos}/{len} messages")
    }

    pub(crate) fn add(&self, done: u64) {
        self.0.inc(done);
    }

    pub(crate) fn embedded(&self, report: &EmbedReport) {
        self.0.set_position(report.messages + report.refused);
    }

    pub(crate) fn set(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    fn set_template(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.0.set_style(style);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The progress of a sync.
#[derive(Debug)]
pub(crate) struct Syncing {
    bar: Bar,
    /// The number of sessions to read; 0 before the sync knows it.
    sessions: AtomicU64,
    /// The number of sessions that are stored completely.
    stored: AtomicU64,
}

impl Default for Syncing {
    fn default() -> Self {
        Self { bar: Bar::on_terminal(), sessions: AtomicU64::new(0), stored: AtomicU64::new(0) }
    }
}

impl Syncing {
    /// Says how many sessions are stored so far, for a sync that is interrupted.
    pub(crate) fn stored(&self) -> String {
        match (self.stored.load(Ordering::Relaxed), self.sessions.load(Ordering::Relaxed)) {
            (_, 0) => "no session was read yet".to_owned(),
            (stored, all) if stored == all => {
                format!("{} stored, but not all vectors", are(all))
            }
            (stored, all) => format!("{} of {} stored", grouped(stored), are(all)),
        }
    }
}

fn are(sessions: u64) -> String {
    format!("{} {}", counted(sessions, "session"), if sessions == 1 { "is" } else { "are" })
}

impl Progress for Syncing {
    fn begin(&self, sessions: u64, bytes: u64) {
        self.sessions.store(sessions, Ordering::Relaxed);
        self.bar.set_template("{msg} {wide_bar} {bytes}/{total_bytes}, {eta} left");
        self.bar.0.set_length(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.bar.add(bytes);
    }

    fn session(&self, folder: &SessionFolder, outcome: SessionOutcome) {
        if outcome != SessionOutcome::Failed {
            self.stored.fetch_add(1, Ordering::Relaxed);
        }
        let session: String = folder.session.as_str().chars().take(8).collect();
        self.bar.0.set_message(format!("reading {session}"));
    }

    fn stage(&self, stage: Stage) {
        let what = match stage {
            Stage::Reading => "reading",
            Stage::Embedding => "creating vectors",
            Stage::Indexing => "indexing",
            _ => "working",
        };
        if stage != Stage::Reading {
            self.bar.set_template("{msg} {spinner} {elapsed}");
            self.bar.0.enable_steady_tick(Duration::from_millis(100));
        }
        self.bar.0.set_message(what);
    }
}

/// The plan of a sync for a session.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PlannedSession {
    pub(crate) project: String,
    pub(crate) session: String,
    /// The program that writes it.
    pub(crate) source: SessionSource,
    pub(crate) outcome: &'static str,
    pub(crate) bytes: u64,
}

/// Collects the plan of a sync, in a dry run.
#[derive(Debug, Default)]
pub(crate) struct SyncPlan(Mutex<Vec<PlannedSession>>);

impl SyncPlan {
    /// The new and changed sessions.
    pub(crate) fn into_sessions(self) -> Vec<PlannedSession> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for SyncPlan {
    fn session(&self, folder: &SessionFolder, outcome: SessionOutcome) {
        let outcome = match outcome {
            SessionOutcome::New => "new",
            SessionOutcome::Changed => "changed",
            SessionOutcome::Failed => "failed",
            _ => return,
        };
        let (project, session) = (folder.project.to_string(), folder.session.to_string());
        let (source, bytes) = (folder.source, folder.bytes);
        let planned = PlannedSession { project, session, source, outcome, bytes };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(planned);
    }
}
