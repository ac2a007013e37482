//! Continues a session without reading its settled rows again: the cost of an appended line does not depend on the
//! length of the session.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{SessionIngest, times::FoundTimes};
use crate::{
    Result,
    backend::{SequenceRange, StoredSession},
    metadata::Metadata,
    model::{Message, Timestamp},
    times::{Bounds, EventClock, LineTime, Resolved, Settled},
};

/// Sessions with fewer messages and events than this are read completely.
const FEWEST_ROWS: u32 = 1_000;
/// A session is read completely if its turns are numbered with more gaps than this.
const MOST_RUNS: usize = 32;

/// The known state of a session's stored rows, for the next ingest that appends to them. It is stored with the sync
/// state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SettledRows {
    messages: u32,
    events: u32,
    turns: Option<SettledTurns>,
    times: Settled,
}

/// The turns of all messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SettledTurns {
    /// First and last of each run of consecutive turns.
    runs: Vec<(u32, u32)>,
    last: Option<u32>,
    /// Whether later messages do not change the title of the session.
    has_title: bool,
}

impl SettledRows {
    /// The settled rows of a stored session, unless its rows have changed since. A format that this version does not know
    /// is ignored.
    fn of(stored: &StoredSession) -> Option<Self> {
        let settled = stored.sync_state.as_ref()?.settled.as_deref()?;
        let settled: Self = serde_json::from_str(settled).ok()?;
        let session = &stored.session;
        let counts = (session.message_count, session.event_count);
        ((settled.messages, settled.events) == counts).then_some(settled)
    }
}

impl SettledTurns {
    fn of((all, last, has_title): (&BTreeSet<u32>, Option<u32>, bool)) -> Option<Self> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for turn in all {
            match runs.last_mut() {
                Some((_, end)) if end.checked_add(1) == Some(*turn) => *end = *turn,
                _ => runs.push((*turn, *turn)),
            }
        }
        (runs.len() <= MOST_RUNS).then_some(Self { runs, last, has_title })
    }
}

impl SessionIngest {
    /// Uses what was settled when the session was last ingested, if it still fits the stored rows. Call this before all
    /// lines, unless everything is to be compared with the files.
    pub fn continue_settled(&mut self) {
        if self.store.backend.info().atomic_writes {
            self.settled = self.stored().and_then(SettledRows::of);
        }
    }

    /// Whether [`SessionIngest::resume_transcript`] is possible after `stored` rows.
    #[must_use]
    pub fn can_resume_transcript(&self, stored: u32) -> bool {
        self.turns_of(stored).is_some()
    }

    /// Begins the transcript after all of its `stored` rows, without reading them. Returns `false` if that is not
    /// possible; use [`SessionIngest::begin_transcript`] then.
    pub fn resume_transcript(&mut self, stored: u32) -> bool {
        let Some(SettledTurns { runs, last, .. }) = self.turns_of(stored).cloned() else { return false };
        let turns = runs.into_iter().flat_map(|(first, last)| first..=last);
        self.messages.resume(&mut self.writer, stored, turns, last);
        true
    }

    /// The turns of all `stored` messages, if nothing else must be known about them.
    fn turns_of(&self, stored: u32) -> Option<&SettledTurns> {
        let has_prompt = self.writer.session().first_prompt.is_some();
        let settled = self.settled.as_ref().filter(|settled| settled.messages == stored && !self.times.again);
        settled?.turns.as_ref().filter(|turns| turns.has_title && has_prompt)
    }

    /// Derives the times of appended messages only. Returns `false` if earlier ones may have changed.
    pub(super) async fn settle_appended(&mut self, stated: &Metadata) -> Result<bool> {
        let Some(settled) = self.settled.clone().filter(|_| self.only_appends(stated)) else {
            return Ok(false);
        };
        let before = &settled.times;
        if !self.messages.position.is_untouched_before(before.message + 1)
            || !self.events.position.is_untouched_before(before.event)
        {
            return Ok(false);
        }
        let mut clock = self.stored_clock(before.event).await?;
        clock.truncate(self.writer.session().event_count);
        clock.merge(self.events.clock.clone());
        // Unchanged events may have been read too.
        let clock = clock.from(before.event);
        let Some(lines) = self.appended_lines(before.message).await? else { return Ok(false) };
        let bounds = Bounds {
            begun: [stated.created(), None],
            ended: [stated.updated(), None],
            is_fork: stated.is_fork(),
        };
        let Some(resolved) = before.resolve(&lines, &clock, bounds) else { return Ok(false) };
        self.put_times(before.message, &lines, &resolved.times);
        self.times.found = Some(self.found_appended(stated, before, &clock, &resolved));
        self.messages.take_times();
        self.put_settled(resolved.settled);
        Ok(true)
    }

    /// Whether the metadata states the same beginning of the session as before, and nothing is derived again.
    fn only_appends(&self, stated: &Metadata) -> bool {
        let stored = || Metadata::read(&self.stored()?.metadata_files).ok();
        let is_same =
            |before: Metadata| before.created() == stated.created() && before.is_fork() == stated.is_fork();
        !self.times.again
            && !self.events.has_notes()
            && self.sync_state.is_some()
            && (!self.writer.has_other_files() || stored().is_some_and(is_same))
    }

    /// The basis for the times of the messages from `first` on; `None` if one of them can't be read.
    async fn appended_lines(&self, first: u32) -> Result<Option<Vec<LineTime>>> {
        let mut lines = Vec::new();
        for (sequence, line) in self.messages.times_from(first) {
            if !self.add_stored_lines(&mut lines, first, *sequence).await? {
                return Ok(None);
            }
            lines.push(line.clone());
        }
        let count = self.writer.session().message_count;
        Ok(self.add_stored_lines(&mut lines, first, count).await?.then_some(lines))
    }

    /// Adds the basis for the times of the stored messages up to `end`, so that `lines` has those of `first..end`.
    /// Returns `false` if one of them can't be read.
    async fn add_stored_lines(&self, lines: &mut Vec<LineTime>, first: u32, end: u32) -> Result<bool> {
        loop {
            let start = first + lines.len() as u32;
            if start >= end {
                return Ok(start == end);
            }
            let range = SequenceRange { start, limit: (end - start) as usize };
            let page: Vec<Message> =
                self.store.readable_page(&self.target.key, range, &mut Vec::new()).await?;
            if page.first().is_none_or(|message| message.sequence != start) {
                return Ok(false);
            }
            for (message, sequence) in page.iter().zip(start..) {
                if message.sequence != sequence {
                    break;
                }
                let time = LineTime::of(&message.line(), message.ts);
                lines.push(time.with_stored((message.ts, message.ts_source)));
            }
        }
    }

    /// As `found`, for a session with settled messages. Their times are known, and the session was certainly synced.
    fn found_appended(
        &self,
        stated: &Metadata,
        before: &Settled,
        clock: &EventClock,
        resolved: &Resolved,
    ) -> FoundTimes {
        let spans = || resolved.known.into_iter().chain(resolved.logged);
        let from = spans().map(|(from, _)| from).min();
        let to: Option<Timestamp> = spans().map(|(_, to)| to).max();
        let created = stated.created().or(from).unwrap_or_else(|| self.store.now());
        let updated = stated.updated().max(to).map_or(created, |updated| updated.max(created));
        let names = |model: &str| before.names(model, clock);
        FoundTimes { created, updated, model: self.model(stated, names, || before.model(clock)) }
    }

    /// Stores again what was settled before: nothing has changed.
    pub(super) fn keep_settled(&mut self) {
        let settled = self.settled.take();
        self.store_settled(settled);
    }

    /// Stores what is settled with the sync state.
    pub(super) fn put_settled(&mut self, times: Option<Settled>) {
        let rows = self.writer.session();
        let (messages, events) = (rows.message_count, rows.event_count);
        let is_stored = !self.events.has_notes() && messages.saturating_add(events) >= FEWEST_ROWS;
        let Some(times) = times.filter(|_| is_stored) else { return };
        let turns = if self.messages.position.begun() {
            self.messages.all_turns(&self.writer.derived).and_then(SettledTurns::of)
        } else {
            self.settled.take().and_then(|settled| settled.turns)
        };
        self.store_settled(Some(SettledRows { messages, events, turns, times }));
    }

    fn store_settled(&mut self, settled: Option<SettledRows>) {
        // After a rewind, the files do not continue the stored rows.
        let state = self.sync_state.as_mut().filter(|state| state.rewound.is_none());
        if let Some(state) = state {
            state.settled = settled.and_then(|settled| serde_json::to_string(&settled).ok());
        }
    }
}
