//! A refresh: before a read, reads what changed since the last sync, if that is fast.

use std::{collections::HashSet, sync::Mutex, time::Duration};

use amplifier_session_core::{
    Result, SessionStorage,
    backend::SyncGuard,
    model::{SessionId, Timestamp},
    storage::EventDetail,
};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::{
    discover::SessionFolder,
    last::LastSyncs,
    options::SyncOptions,
    plan::{Plan, ReadingCost},
    progress::{Progress, SessionOutcome},
    report::{Kept, SyncReport},
    repository::RepositoryCache,
    run::ingest,
    session::Context,
    unchanged::Unchanged,
};

/// Bytes of new transcript lines per second, with vectors of the local model and without: the figures of
/// `docs/performance.md` for a complete sync on two cores.
const LINES_PER_SECOND: [f64; 2] = [7e6, 13e6];
/// Bytes per second of lines that are only compared with the store, and of event logs.
const OTHER_PER_SECOND: f64 = 80e6;
/// The time for a session with almost nothing to read.
const SECONDS_PER_SESSION: f64 = 0.004;
/// How often to try again if another process reads changes.
const ATTEMPTS: u32 = 20;
/// The time between attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// The maximum cost of a refresh.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct RefreshLimits {
    /// If the estimated time in seconds is longer than this, nothing is done. Default: 1.
    pub seconds: f64,
    /// Whether vectors will be made for the new messages. Default: false.
    pub embeds: bool,
    /// How much of event logs to store. Default: as much as in the last sync.
    pub events: Option<EventDetail>,
}

impl Default for RefreshLimits {
    fn default() -> Self {
        Self { seconds: 1.0, embeds: false, events: None }
    }
}

impl RefreshLimits {
    /// Sets the seconds.
    #[must_use]
    pub fn with_seconds(mut self, seconds: f64) -> Self {
        self.seconds = seconds;
        self
    }

    /// Sets whether vectors will be made.
    #[must_use]
    pub fn with_embeds(mut self, embeds: bool) -> Self {
        self.embeds = embeds;
        self
    }

    /// Sets how much of event logs to store.
    #[must_use]
    pub fn with_events(mut self, events: Option<EventDetail>) -> Self {
        self.events = events;
        self
    }
}

/// The outcome of a refresh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Refreshed {
    /// The changes were read.
    Taken {
        /// The sessions that changed. Their vectors are not made yet.
        sessions: Vec<SessionId>,
        /// Damaged files whose stored rows were kept.
        kept: Vec<Kept>,
    },
    /// Reading the changes would take too long. The number of sessions that changed.
    TooMuch(u64),
    /// A sync is running and reads the changes.
    Busy,
}

/// The turn to write. Another reader that looks for changes has it for milliseconds; a sync has it for longer.
async fn turn(storage: &SessionStorage) -> Option<SyncGuard> {
    for _ in 0..ATTEMPTS {
        if let Some(turn) = storage.backend().begin_sync() {
            return Some(turn);
        }
        sleep(PAUSE).await;
    }
    storage.backend().begin_sync()
}

/// Reads what changed in roots since their last sync, if the estimated time is within `limits`.
///
/// Leaves out the sessions that the last sync left out: sessions that it excluded, and sessions that it did not reach
/// if their files have not changed since. Makes no vectors, and does not update the index.
///
/// # Errors
///
/// As [`crate::sync`].
pub async fn refresh(
    storage: &SessionStorage,
    options: &SyncOptions,
    limits: RefreshLimits,
) -> Result<Refreshed> {
    let Some(_turn) = turn(storage).await else { return Ok(Refreshed::Busy) };
    let last = LastSyncs::read(storage, options).await?;
    let events = limits.events.or_else(|| last.events()).unwrap_or_default();
    let settings = storage.settings().clone().with_events(events);
    let storage = &storage.clone().with_settings(settings).with_embedding(None);
    let mut options = options.clone();
    options.exclude.extend(last.exclude());
    let mut report = SyncReport::default();
    let unchanged = Unchanged::read(storage, &options, &last, events).await?;
    let known = unchanged.fingerprints.clone();
    let (mut plan, mut found) = Plan::without(storage, &options, known, &mut report).await?;
    let is_news = |folder: &SessionFolder| last.is_older_than(&folder.root, folder.modified);
    plan.sessions.retain(|planned| planned.bytes.is_some() && (planned.is_known || is_news(&planned.folder)));
    let to_read: HashSet<u64> = plan.sessions.iter().map(|planned| planned.folder.fingerprint).collect();
    found.retain(|fingerprint| !to_read.contains(fingerprint));
    unchanged.keep(storage, found).await;
    let is_too_much = |plan: &Plan| {
        let seconds = plan.sessions.iter().map(|planned| seconds(planned.cost, limits.embeds));
        seconds.sum::<f64>() > limits.seconds
    };
    if is_too_much(&plan) {
        // Sessions that look unchanged can wait for the next sync.
        plan.sessions.retain(|planned| planned.is_changed);
        if is_too_much(&plan) {
            return Ok(Refreshed::TooMuch(plan.sessions.len() as u64));
        }
    }
    // Known damage has been reported before.
    report.kept.clear();
    let changed = ChangedSessions::default();
    let context =
        Context { storage, options: &options, progress: &changed, repositories: &RepositoryCache::default() };
    // The estimate may be wrong, so the rest is left to the next refresh after twice the time.
    let until = storage.now().as_micros().saturating_add((limits.seconds * 2e6) as i64);
    let until = Timestamp::from_micros(until);
    ingest(context, &plan, &mut report, &|| storage.now() < until).await?;
    Ok(Refreshed::Taken { sessions: changed.0.into_inner().unwrap_or_default(), kept: report.kept })
}

fn seconds(cost: ReadingCost, embeds: bool) -> f64 {
    let [with_vectors, without] = LINES_PER_SECOND;
    let lines = if embeds { with_vectors } else { without };
    cost.new_lines as f64 / lines + cost.other as f64 / OTHER_PER_SECOND + SECONDS_PER_SESSION
}

/// Collects the sessions that changed.
#[derive(Default)]
struct ChangedSessions(Mutex<Vec<SessionId>>);

impl Progress for ChangedSessions {
    fn session(&self, folder: &SessionFolder, outcome: SessionOutcome) {
        let is_changed = matches!(outcome, SessionOutcome::New | SessionOutcome::Changed);
        if let Ok(mut changed) = self.0.lock()
            && is_changed
        {
            changed.push(folder.session.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_depends_on_what_must_be_read() {
        let cost = |new_lines, other| ReadingCost { new_lines, other };
        assert!(seconds(cost(10_000, 5_000_000), true) < 0.1);
        assert!(seconds(cost(20_000_000, 0), true) > 1.0 && seconds(cost(1_000_000_000, 0), false) > 10.0);
        assert!(seconds(cost(0, 200_000_000), false) > 1.0);
        assert!(seconds(cost(10_000_000, 0), true) > seconds(cost(10_000_000, 0), false));
    }
}
