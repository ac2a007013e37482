//! The messages of `watch`.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use amplifier_session_storage::{
    storage::EmbedReport,
    sync::{SyncReport, watch::WatchEvent},
};

use crate::{
    failure::say_with_time as say,
    render::text::{counted, duration, one_line},
};

/// At most this many failures are remembered, so as not to repeat them.
const REMEMBERED: usize = 1_000;

/// Prints what a watcher does: a line for each batch that wrote something, and one for each problem.
#[derive(Debug)]
pub(super) struct WatchMessages {
    json: bool,
    state: Mutex<WatchState>,
}

#[derive(Debug, Default)]
struct WatchState {
    /// The stores that were compared at least once.
    compared: HashSet<String>,
    /// The stores that are down, with the kinds of errors that were printed.
    down: HashSet<(String, &'static str)>,
    /// The failures that were printed.
    failed: HashSet<String>,
}

impl WatchMessages {
    pub(super) fn new(json: bool) -> Self {
        Self { json, state: Mutex::default() }
    }

    pub(super) fn add(&self, event: &WatchEvent<'_>) {
        if self.json { log(event) } else { self.say(event) }
    }

    fn say(&self, event: &WatchEvent<'_>) {
        match *event {
            WatchEvent::Following { root } => say("watching", &root.display().to_string()),
            WatchEvent::Polling { root, reason, every } => {
                let every = duration(every.as_secs_f64() * 1e3);
                say("warning", &format!("{} is compared every {every}: {reason}", root.display()));
            }
            WatchEvent::RootGone { root } => {
                say("waiting", &format!("there is currently no folder `projects` in {}", root.display()));
            }
            WatchEvent::Synced { target, root, complete, report, .. } => {
                let is_first = self.state().compared.insert(format!("{target} {}", root.display()));
                if wrote(report) || (complete && is_first) {
                    say("synced", &format!("{target}: {}", summary(report)));
                }
                self.say_failures(report);
            }
            WatchEvent::StoreDown { target, error, retry_in, .. } => {
                // Once for each kind of error, not for each attempt.
                let is_new = self.state().down.insert((target.to_owned(), error.kind().as_str()));
                if is_new {
                    let retry_in = duration(retry_in.as_secs_f64() * 1e3);
                    say("down", &format!("{target}: {error}; next attempt in {retry_in}"));
                }
            }
            WatchEvent::StoreUp { target } => {
                let mut state = self.state();
                let before = state.down.len();
                state.down.retain(|(name, _)| name != target);
                if state.down.len() < before {
                    say("back", target);
                }
            }
            WatchEvent::Embedded { target, report } => say_missing_vectors(target, report),
            WatchEvent::IndexFailed { target, error } => {
                say("warning", &format!("{target}: the search index could not be updated: {error}"));
            }
            _ => {}
        }
    }

    fn say_failures(&self, report: &SyncReport) {
        for failure in &report.failures {
            let session = failure.session.as_deref().unwrap_or_default();
            let text = format!("{}/{session}: {}", one_line(&failure.project), one_line(&failure.error));
            let mut state = self.state();
            if state.failed.len() >= REMEMBERED {
                state.failed.clear();
            }
            if state.failed.insert(text.clone()) {
                say("failed", &text);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn say_missing_vectors(target: &str, report: &EmbedReport) {
    if let Some(failure) = &report.failure {
        say("warning", &format!("{target}: some vectors are still missing: {failure}"));
    }
}

/// Whether a sync wrote or removed something.
fn wrote(report: &SyncReport) -> bool {
    report.sessions.new + report.sessions.changed > 0
}

fn summary(report: &SyncReport) -> String {
    let sessions = report.sessions.new + report.sessions.changed;
    let [sessions, messages, events] =
        [(sessions, "session"), (report.messages.written, "message"), (report.events.written, "event")]
            .map(|(count, one)| counted(count, one));
    let superseded = match report.messages.superseded + report.events.superseded {
        0 => String::new(),
        lines => format!(", {}", counted(lines, "superseded line")),
    };
    format!("{sessions}, {messages}, {events}{superseded} in {}", duration(report.seconds * 1e3))
}

/// Logs an event with its fields.
fn log(event: &WatchEvent<'_>) {
    use tracing::{info, warn};
    match *event {
        WatchEvent::Following { root } => info!(root = %root.display(), "following"),
        WatchEvent::Polling { root, reason, every } => {
            warn!(root = %root.display(), reason, every_seconds = every.as_secs_f64(), "polling");
        }
        WatchEvent::RootGone { root } => warn!(root = %root.display(), "root_gone"),
        WatchEvent::Synced { target, root, complete, report, backlog } => {
            for failure in &report.failures {
                let session = failure.session.as_deref().unwrap_or_default();
                warn!(
                    store = target,
                    project = failure.project,
                    session,
                    error = failure.error,
                    "session_failed"
                );
            }
            info!(
                store = target,
                root = %root.display(),
                complete,
                sessions = report.sessions.new + report.sessions.changed,
                failed = report.sessions.failed,
                messages = report.messages.written,
                events = report.events.written,
                seconds = report.seconds,
                backlog,
                "synced"
            );
        }
        WatchEvent::StoreDown { target, error, retry_in, backlog } => {
            let (kind, retry_seconds) = (error.kind().as_str(), retry_in.as_secs_f64());
            warn!(store = target, %error, kind, retry_seconds, backlog, "store_down");
        }
        WatchEvent::StoreUp { target } => info!(store = target, "store_up"),
        WatchEvent::Embedded { target, report } => match &report.failure {
            Some(error) => warn!(store = target, messages = report.messages, %error, "embedding_failed"),
            None => info!(store = target, messages = report.messages, "embedded"),
        },
        WatchEvent::IndexFailed { target, error } => warn!(store = target, %error, "index_failed"),
        _ => {}
    }
}
