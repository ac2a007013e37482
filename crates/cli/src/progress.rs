//! Progress bars.

use std::{
    io::IsTerminal as _,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use amplifier_session_storage::{
    storage::EmbedReport,
    sync::{Progress, SessionFolder, SessionOutcome, Stage},
    upgrade,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// The progress of a sync on stderr, if that is a terminal.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new() -> Self {
        let bar =
            if std::io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        Self(bar)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn begin(&self, _sessions: u64, bytes: u64) {
        let template = "{msg} {wide_bar} {bytes}/{total_bytes}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.0.set_style(style);
        }
        self.0.set_length(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    fn session(&self, folder: &SessionFolder, _outcome: SessionOutcome) {
        let session: String = folder.session.as_str().chars().take(8).collect();
        self.0.set_message(format!("reading {session}"));
    }

    fn stage(&self, stage: Stage) {
        let what = match stage {
            Stage::Reading => "reading",
            Stage::Embedding => "making vectors",
            Stage::Indexing => "indexing",
            _ => "working",
        };
        if stage != Stage::Reading
            && let Ok(style) = ProgressStyle::with_template("{msg} {spinner} {elapsed}")
        {
            self.0.set_style(style);
            self.0.enable_steady_tick(Duration::from_millis(100));
        }
        self.0.set_message(what);
    }
}

/// The progress of making vectors on stderr, if that is a terminal.
#[derive(Debug)]
pub(crate) struct VectorBar(ProgressBar);

impl VectorBar {
    /// A bar for at most this many messages.
    pub(crate) fn new(messages: u64) -> Self {
        let bar = match std::io::stderr().is_terminal() {
            true => ProgressBar::new(messages),
            false => ProgressBar::hidden(),
        };
        if let Ok(style) = ProgressStyle::with_template("making vectors {wide_bar} {pos}/{len} messages") {
            bar.set_style(style);
        }
        Self(bar)
    }

    pub(crate) fn advance(&self, report: &EmbedReport) {
        self.0.set_position(report.messages + report.refused);
    }
}

impl Drop for VectorBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The progress of an upgrade on stderr, if that is a terminal.
#[derive(Debug, Clone)]
pub(crate) struct RowBar(ProgressBar);

impl RowBar {
    pub(crate) fn new() -> Self {
        let bar = match std::io::stderr().is_terminal() {
            true => ProgressBar::new(0),
            false => ProgressBar::hidden(),
        };
        if let Ok(style) = ProgressStyle::with_template("upgrading {wide_bar} {pos}/{len} rows, {eta} left") {
            bar.set_style(style);
        }
        Self(bar)
    }

    pub(crate) fn advance(&self, progress: upgrade::Progress) {
        self.0.set_length(progress.total);
        self.0.set_position(progress.done);
    }

    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// What a sync would do with a session.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Planned {
    pub(crate) project: String,
    pub(crate) session: String,
    pub(crate) outcome: &'static str,
    pub(crate) bytes: u64,
}

/// Collects what a sync would read, in a dry run.
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
