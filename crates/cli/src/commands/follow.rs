//! Keeps a store equal to that of a server: `copy --from https://… --follow`.
//!
//! The feed of the server says which sessions changed, and a pull takes what this store lacks of them. The cursor of the
//! feed is kept in this store, after the sessions before it: whatever ends the program, the next one goes on from there.

use std::{collections::BTreeSet, time::Duration};

use amplifier_session_client::{HttpStore, ServerAddress, ServerChanges};
use amplifier_session_storage::{
    Backoff, Error, ErrorKind, SessionStorage, StoreUrl,
    model::SessionId,
    storage::{PullOptions, PullReport, TransferFailure},
};
use jiff::Timestamp;
use serde::Serialize;

use super::pull::pull;
use crate::{
    app::{App, check_writable},
    args::CopyArgs,
    failure::{Failure, Outcome, say, say_with_time},
    out::Out,
    render::text::{counted, duration, one_line},
    server_store::connect,
    stopping::stop_signal,
};

/// The time in which a server answers that waits for changes.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause after changes, so that those that follow soon are taken together.
const PAUSE: Duration = Duration::from_millis(200);
/// The waits after failures: the first, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Something that happened, as JSON.
#[derive(Serialize)]
struct FollowEvent<'a> {
    time: Timestamp,
    from: String,
    #[serde(flatten)]
    what: Happened<'a>,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Happened<'a> {
    /// Sessions were taken: all of them were compared, or those that changed.
    Pulled {
        complete: bool,
        #[serde(flatten)]
        report: &'a PullReport,
    },
    /// The server does not answer.
    Down { kind: &'static str, error: &'a str, retry_seconds: f64 },
    /// It answers again.
    Back,
    /// The command was told to end.
    Stopped,
}

/// Takes what changes on a server.
struct ServerFollower<'a> {
    server: &'a HttpStore,
    storage: &'a SessionStorage,
    options: PullOptions,
    out: &'a mut Out,
    /// The place in the feed up to which everything is here; `None` if everything must be compared.
    cursor: Option<String>,
    backoff: Backoff,
    is_down: bool,
}

/// Copies the sessions of a server, and then what changes there, until the command is told to end.
pub(super) async fn follow(app: &mut App, from: ServerAddress, args: &CopyArgs) -> Result<Outcome, Failure> {
    let server = connect(app, from, true)?;
    let to = StoreUrl::parse(&args.to, app.home.as_deref())?;
    let writer = app.writer_on(&to, app.settings_of_secrets()?).await?;
    check_writable(&writer.storage)?;
    let stop = stop_signal()?;
    let address = server.address().to_string();
    let mut follower = ServerFollower {
        server: &server,
        storage: &writer.storage,
        cursor: writer.storage.exchange().followed(&address, &writer.user).await?,
        options: PullOptions::new(writer.user)
            .with_include_deleted(args.include_deleted)
            .with_follow(true)
            .with_mirror_deletes(args.mirror_deletes),
        out: &mut app.out,
        backoff: Backoff::new(WAITS.0, WAITS.1, u64::from(std::process::id())),
        is_down: false,
    };
    let ended = tokio::select! {
        ended = follower.run() => ended,
        () = stop => follower.print(Happened::Stopped),
    };
    // Also of sessions that were taken when it was told to end.
    let indexed = writer.storage.update_index().await;
    ended?;
    indexed?;
    Ok(Outcome::Done)
}

impl ServerFollower<'_> {
    /// Goes on until something fails that does not pass by itself.
    async fn run(&mut self) -> Result<(), Failure> {
        loop {
            let error = match self.step().await {
                Ok(taken) => {
                    self.reached()?;
                    if let Some((report, complete)) = taken {
                        self.print(Happened::Pulled { complete, report: &report })?;
                        tokio::time::sleep(PAUSE).await;
                    }
                    continue;
                }
                Err(error) => error,
            };
            if !passes(&error) {
                return Err(error.into());
            }
            let wait = self.backoff.next(error.retry_after());
            if !self.is_down {
                self.is_down = true;
                self.say_down(&error, wait)?;
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Takes what changed after the cursor, or everything. Returns what was taken, and whether everything was compared.
    async fn step(&mut self) -> Result<Option<(PullReport, bool)>, Error> {
        let changes = self.server.changes(self.cursor.as_deref(), PATIENCE).await?;
        let ServerChanges { sessions, cursor, is_reset } = changes;
        let is_complete = is_reset || self.cursor.is_none();
        let taken = if is_complete {
            Some(self.take(None).await?)
        } else if sessions.is_empty() {
            None
        } else {
            Some(self.take(Some(sessions)).await?)
        };
        if self.cursor.as_deref() != Some(&cursor) {
            let address = self.server.address().to_string();
            self.storage.exchange().set_followed(&address, &self.options.user_id, &cursor).await?;
        }
        self.cursor = Some(cursor);
        Ok(taken.map(|report| (report, is_complete)))
    }

    /// Takes what this store lacks of these sessions, or of all, and makes it findable.
    async fn take(&self, sessions: Option<BTreeSet<SessionId>>) -> Result<PullReport, Error> {
        // A server that was restored from a backup lacks sessions that nobody has deleted: they are only hidden.
        let mirrors_deletes = self.options.mirror_deletes && sessions.is_some();
        let options = self.options.clone().with_sessions(sessions).with_mirror_deletes(mirrors_deletes);
        let report = pull(self.server, self.storage, &options).await?;
        let changed = report.sessions + (report.hidden.len() + report.removed.len()) as u64;
        if changed > 0 {
            let made = self.storage.vectors().embed_pending(&options.user_id, None).await;
            if let Some(reason) = made.map_or_else(Some, |made| made.failure) {
                say("warning", &format!("some vectors are still missing: {reason}"));
            }
            self.storage.update_index().await?;
        }
        Ok(report)
    }

    fn reached(&mut self) -> Result<(), Failure> {
        self.backoff.reset();
        if !std::mem::take(&mut self.is_down) {
            return Ok(());
        }
        if !self.out.is_json() {
            say_with_time("back", &self.server.address().to_string());
        }
        self.print(Happened::Back)
    }

    fn say_down(&mut self, error: &Error, wait: Duration) -> Result<(), Failure> {
        if self.out.is_json() {
            let (kind, retry_seconds) = (error.kind().as_str(), wait.as_secs_f64());
            return self.print(Happened::Down { kind, error: &error.to_string(), retry_seconds });
        }
        let wait = duration(wait.as_secs_f64() * 1e3);
        say_with_time("down", &format!("{error}; next attempt in {wait}"));
        if let Some(hint) = error.hint() {
            say("hint", hint);
        }
        Ok(())
    }

    /// Prints an event as JSON, or what was taken.
    fn print(&mut self, what: Happened<'_>) -> Result<(), Failure> {
        let from = self.server.address().to_string();
        if self.out.is_json() {
            self.out.json(&FollowEvent { time: Timestamp::now(), from, what })?;
            return Ok(self.out.finish()?);
        }
        let Happened::Pulled { complete, report } = what else { return Ok(()) };
        for TransferFailure { session_id, reason } in &report.failed {
            say_with_time("failed", &format!("{session_id}: {}", one_line(reason)));
        }
        if let Some(summary) = summary(report, complete) {
            say_with_time("pulled", &format!("{summary} from {from}"));
        }
        Ok(())
    }
}

/// Whether an error passes by itself, such as a server that is restarted.
fn passes(error: &Error) -> bool {
    error.is_retryable() || error.kind() == ErrorKind::StorageConnection
}

/// `2 sessions, 5 messages, 9 events, 1 session hidden`; `None` if nothing happened and not everything was compared.
fn summary(report: &PullReport, complete: bool) -> Option<String> {
    let has_removed = !report.hidden.is_empty() || !report.removed.is_empty();
    if report.sessions == 0 && !has_removed && !complete {
        return None;
    }
    let counts = [(report.sessions, "session"), (report.messages, "message"), (report.events, "event")];
    let mut parts = counts.map(|(count, one)| counted(count, one)).to_vec();
    if !report.hidden.is_empty() {
        parts.push(format!("{} hidden", counted(report.hidden.len() as u64, "removed session")));
    }
    if !report.removed.is_empty() {
        parts.push(format!("{} deleted", counted(report.removed.len() as u64, "removed session")));
    }
    Some(parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_happened_is_said() {
        let mut report = PullReport::default();
        assert_eq!(summary(&report, false), None);
        assert_eq!(summary(&report, true).unwrap(), "0 sessions, 0 messages, 0 events");
        (report.sessions, report.messages) = (1, 2);
        report.hidden.push(SessionId::new("a").unwrap());
        let said = summary(&report, false).unwrap();
        assert_eq!(said, "1 session, 2 messages, 0 events, 1 removed session hidden");
    }

    #[test]
    fn a_wrong_token_ends_and_a_server_that_is_down_does_not() {
        assert!(passes(&Error::new(ErrorKind::StorageConnection, "connection refused")));
        assert!(!passes(&Error::new(ErrorKind::Authentication, "the server does not know the token")));
    }
}
