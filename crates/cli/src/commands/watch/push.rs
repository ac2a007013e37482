//! Sends sessions to servers while they are written.
//!
//! The feed of changes of the store says what to send, so changes by other programs are sent too, and nothing is queued:
//! after a failure, the push compares what the server has.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use amplifier_session_client::HttpStore;
use amplifier_session_storage::{
    Backoff, Error, Scope, SessionStorage,
    backend::{ChangeCursor, SessionChanged},
    model::{SessionId, UserId},
    storage::{PushOptions, PushReport, PushSelection, TransferFailure},
};
use tokio::task::JoinSet;

use super::WatchedStore;
use crate::{
    app::App,
    args::WatchedArgs,
    commands::{
        push::{Pushing, servers},
        pushed::summary,
    },
    failure::{Failure, say_with_time as say},
    render::text::{duration, one_line},
};

/// The waits after failures: the first, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// The most changed sessions that are sent together.
const TOGETHER: usize = 1_000;
/// How long one wait for changes lasts.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends what changes in a store to one server.
struct Pusher {
    open: WatchedStore,
    server: HttpStore,
    user: UserId,
    selection: PushSelection,
    json: bool,
    /// The changes after this are not sent yet; `None` if everything must be compared.
    cursor: Option<ChangeCursor>,
    backoff: Backoff,
    /// The kinds of errors that were printed since the last success.
    said: BTreeSet<&'static str>,
}

/// Begins to send what changes in the store to the servers that are named or configured, until the result is dropped.
pub(super) fn begin(
    app: &App,
    args: &WatchedArgs,
    open: &WatchedStore,
    json: bool,
) -> Result<JoinSet<()>, Failure> {
    let Pushing { servers, selection, .. } = pushing(app, args)?;
    let user = app.who()?.0.user_id;
    let mut tasks = JoinSet::new();
    for server in servers {
        let pusher = Pusher {
            open: Arc::clone(open),
            server,
            user: user.clone(),
            selection: selection.clone(),
            json,
            cursor: None,
            backoff: Backoff::new(WAITS.0, WAITS.1, u64::from(std::process::id())),
            said: BTreeSet::new(),
        };
        tasks.spawn(pusher.run());
    }
    Ok(tasks)
}

/// The servers, if the store can be used by the watcher and the pushes at the same time.
pub(super) fn pushing(app: &App, args: &WatchedArgs) -> Result<Pushing, Failure> {
    let pushing = servers(app, &args.push, false)?;
    let url = app.store_url()?;
    if !pushing.servers.is_empty() && super::is_exclusive(&url) {
        let message = format!("`watch` can't push from {url}, because only one program at a time can use it");
        return Err(Failure::wrong_use(message, "use a SQLite store, or push with `sync --push`"));
    }
    Ok(pushing)
}

impl Pusher {
    async fn run(mut self) {
        loop {
            let Err(error) = self.follow().await else { continue };
            // What was not sent is found by comparing everything.
            self.cursor = None;
            let wait = self.backoff.next(error.retry_after());
            self.say_down(&error, wait);
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends everything, and then what changes, until something fails.
    async fn follow(&mut self) -> Result<(), Error> {
        let storage = (self.open)().await?;
        let scope = Scope::User(self.user.clone());
        loop {
            let Some(cursor) = self.cursor.take() else {
                let cursor = storage.changes().begin(&scope).await?;
                self.push(&storage, None).await?;
                self.cursor = Some(cursor);
                continue;
            };
            let page = storage.changes().wait(&scope, &cursor, TOGETHER, PATIENCE).await?;
            if page.reset {
                continue;
            }
            let written = page.changes.iter().filter_map(|change| match change {
                SessionChanged::Written { session, .. } => Some(session.session_id.clone()),
                // Nothing is deleted on a server.
                SessionChanged::Removed(_) => None,
            });
            let written: BTreeSet<SessionId> = written.collect();
            if !written.is_empty() {
                self.push(&storage, Some(written)).await?;
            }
            self.cursor = Some(page.cursor);
        }
    }

    async fn push(
        &mut self,
        storage: &SessionStorage,
        sessions: Option<BTreeSet<SessionId>>,
    ) -> Result<(), Error> {
        let is_complete = sessions.is_none();
        let selection = self.selection.clone().with_sessions(sessions);
        let options = PushOptions::new(self.user.clone()).with_selection(selection);
        let report = storage.exchange().push(&self.server, &options, &|_| ()).await?;
        self.backoff.reset();
        self.said.clear();
        self.say_pushed(&report, is_complete);
        Ok(())
    }

    fn say_pushed(&self, report: &PushReport, is_complete: bool) {
        let server = self.server.address();
        for TransferFailure { session_id, reason } in &report.failed {
            if self.json {
                tracing::warn!(%server, session = %session_id, error = reason, "session_not_pushed");
            } else {
                say("failed", &format!("{session_id} to {server}: {}", one_line(reason)));
            }
        }
        if self.json {
            let (sessions, messages, events) = (report.sessions, report.messages, report.events);
            tracing::info!(%server, complete = is_complete, sessions, messages, events, "pushed");
        } else if report.sessions > 0 || is_complete {
            say("pushed", &format!("{} to {server}", summary(report)));
        }
    }

    /// Once for each kind of error, not for each attempt.
    fn say_down(&mut self, error: &Error, wait: Duration) {
        if !self.said.insert(error.kind().as_str()) {
            return;
        }
        let server = self.server.address();
        if self.json {
            let (kind, retry_seconds) = (error.kind().as_str(), wait.as_secs_f64());
            tracing::warn!(%server, %error, kind, retry_seconds, "push_failed");
            return;
        }
        let wait = duration(wait.as_secs_f64() * 1e3);
        say("down", &format!("{server}: {error}; next attempt in {wait}"));
        if let Some(hint) = error.hint() {
            say("hint", hint);
        }
    }
}
