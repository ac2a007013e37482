//! Progress bars.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use amplifier_session_storage::{
    storage::EmbedReport,
    sync::{Progress, SessionFolder, SessionOutcome, Stage},
};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// A progress bar on stderr. It is hidden if that is not a terminal, and cleared when it is dropped.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new(total: u64, template: &str) -> Self {
        let bar = Self(ProgressBar::new(total));
        bar.set_template(template);
        bar
    }

    /// A bar for a sync, with a legend.
    pub(crate) fn of_sync() -> Self {
        Self(ProgressBar::new_spinner())
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

impl Progress for Bar {
    fn begin(&self, _sessions: u64, bytes: u64) {
        self.set_template("{msg} {wide_bar} {bytes}/{total_bytes}, {eta} left");
        self.0.set_length(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.add(bytes);
    }

    fn session(&self, folder: &SessionFolder, _outcome: SessionOutcome) {
        let session: String = folder.session.as_str().chars().take(8).collect();
        self.0.set_message(format!("reading {session}"));
    }

    fn stage(&self, stage: Stage) {
        let what = match stage {
            Stage::Reading => "reading",
            Stage::Embedding => "creating vectors",
            Stage::Indexing => "indexing",
            _ => "working",
        };
        if stage != Stage::Reading {
            self.set_template("{msg} {spinner} {elapsed}");
            self.0.enable_steady_tick(Duration::from_millis(100));
        }
        self.0.set_message(what);
    }
}

/// The plan of a sync for a session.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Planned {
    pub(crate) project: String,
    pub(crate) session: String,
    pub(crate) outcome: &'static str,
    pub(crate) bytes: u64,
}

/// Collects the plan of a sync, in a dry run.
#[derive(Debug, Default)]
pub(crate) struct Plan(Mutex<Vec<Planned>>);

impl Plan {
    /// The new and changed sessions.
    pub(crate) fn into_sessions(self) -> Vec<Planned> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for Plan {
    fn session(&self, folder: &SessionFolder, outcome: SessionOutcome) {
        let outcome = match outcome {
            SessionOutcome::New => "new",
            SessionOutcome::Changed => "changed",
            SessionOutcome::Failed => "failed",
            _ => return,
        };
        let (project, session) = (folder.project.to_string(), folder.session.to_string());
        let planned = Planned { project, session, outcome, bytes: folder.bytes };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(planned);
    }
}
