//! Taking in what changed since the last sync before a read, where that takes but a moment.

use std::sync::Mutex;

use amplifier_session_core::{
    Result, SessionStorage,
    model::{SessionId, Timestamp},
    storage::EventDetail,
};

use crate::{
    Kept, Progress, SessionFolder, SessionOutcome, SyncOptions, SyncReport,
    last::LastSync,
    plan::{Cost, Plan},
    run::take_in,
    session::Context,
};

/// Bytes of new transcript lines a second, with the vectors of `local` and without: the figures of
/// `docs/performance.md` for a whole sync, on two cores.
const LINES_A_SECOND: [f64; 2] = [7e6, 13e6];
/// Bytes a second of what is only compared with the store, and of event logs.
const OTHER_A_SECOND: f64 = 80e6;
/// What a session costs that has next to nothing to read.
const SECONDS_A_SESSION: f64 = 0.004;

/// How much a refresh may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct RefreshLimits {
    /// The estimated seconds beyond which nothing is done. Default: 1.
    pub seconds: f64,
    /// Whether vectors will be made of what is taken in. Default: false.
    pub embeds: bool,
    /// How much of event logs is kept. Default: as much as the last sync kept.
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

    /// Sets how much of event logs is kept.
    #[must_use]
    pub fn with_events(mut self, events: Option<EventDetail>) -> Self {
        self.events = events;
        self
    }
}

/// What became of a refresh.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Refreshed {
    /// What changed was taken in.
    Taken {
        /// These sessions; none when nothing has changed. Their vectors are still to be made.
        sessions: Vec<SessionId>,
        /// Damaged files among what was read, whose stored rows were kept.
        kept: Vec<Kept>,
    },
    /// The number of sessions that changed, where taking them in would take too long.
    TooMuch(u64),
    /// A sync is running: it takes in what changed.
    Busy,
}

/// Takes in what changed below a root since its last sync, if that is estimated to take no longer than `limits` say.
///
/// What the last sync left out is left out again: sessions that it excluded, and those that it did not reach and whose
/// files have not changed since. Makes no vectors, and does not bring the index up.
///
/// # Errors
///
/// As [`crate::sync`].
pub async fn refresh(
    storage: &SessionStorage,
    options: &SyncOptions,
    limits: RefreshLimits,
) -> Result<Refreshed> {
    let Some(_turn) = storage.backend().begin_sync() else { return Ok(Refreshed::Busy) };
    let last = LastSync::read(storage, options).await?;
    let events = limits.events.or_else(|| Some(last.as_ref()?.events())).unwrap_or_default();
    let settings = storage.settings().clone().with_events(events);
    let storage = &storage.clone().with_settings(settings).with_embedding(None);
    let mut options = options.clone();
    options.exclude.extend(last.iter().flat_map(|last| last.exclude.clone()));
    let mut report = SyncReport::default();
    let mut plan = Plan::new(storage, &options, &mut report).await?;
    let is_news =
        |folder: &SessionFolder| last.as_ref().is_none_or(|last| last.is_older_than(folder.modified));
    plan.sessions.retain(|planned| planned.bytes.is_some() && (planned.is_known || is_news(&planned.folder)));
    let is_too_much = |plan: &Plan| {
        let seconds = plan.sessions.iter().map(|planned| seconds(planned.cost, limits.embeds));
        seconds.sum::<f64>() > limits.seconds
    };
    if is_too_much(&plan) {
        // What looks as it did can wait for the next sync.
        plan.sessions.retain(|planned| planned.is_changed);
        if is_too_much(&plan) {
            return Ok(Refreshed::TooMuch(plan.sessions.len() as u64));
        }
    }
    // Known damage has been reported before.
    report.kept.clear();
    let taken = Taken::default();
    let context = Context { storage, options: &options, progress: &taken };
    // An estimate may be wrong: what is left after twice the time is for the next look.
    let until = storage.now().as_micros().saturating_add((limits.seconds * 2e6) as i64);
    take_in(context, &plan, &mut report, Some(Timestamp::from_micros(until))).await?;
    Ok(Refreshed::Taken { sessions: taken.0.into_inner().unwrap_or_default(), kept: report.kept })
}

fn seconds(cost: Cost, embeds: bool) -> f64 {
    let [with_vectors, without] = LINES_A_SECOND;
    let lines = if embeds { with_vectors } else { without };
    cost.new_lines as f64 / lines + cost.other as f64 / OTHER_A_SECOND + SECONDS_A_SESSION
}

/// Remembers which sessions changed.
#[derive(Default)]
struct Taken(Mutex<Vec<SessionId>>);

impl Progress for Taken {
    fn session(&self, folder: &SessionFolder, outcome: SessionOutcome) {
        let is_changed = matches!(outcome, SessionOutcome::New | SessionOutcome::Changed);
        if let Ok(mut taken) = self.0.lock()
            && is_changed
        {
            taken.push(folder.session.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_goes_by_what_has_to_be_read() {
        let cost = |new_lines, other| Cost { new_lines, other };
        assert!(seconds(cost(10_000, 5_000_000), true) < 0.1);
        assert!(seconds(cost(20_000_000, 0), true) > 1.0 && seconds(cost(1_000_000_000, 0), false) > 10.0);
        assert!(seconds(cost(0, 200_000_000), false) > 1.0);
        assert!(seconds(cost(10_000_000, 0), true) > seconds(cost(10_000_000, 0), false));
    }
}
