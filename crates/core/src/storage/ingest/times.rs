//! When the messages of a session that is taken in were written, and when the session began and last changed.

use super::SessionIngest;
use crate::{
    Result,
    backend::SequenceRange,
    metadata::Metadata,
    model::{Message, MessageState, RawJson, Retimed, Session, TimeSource, Timestamp},
    times::{Bounds, EventClock, LineTime, resolve},
};

/// How many rows are asked for at a time.
const PAGE: usize = 10_000;

/// What is known of the times of a session that is taken in.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// The session as it was stored before.
    before: Option<Session>,
    /// When its files were changed last.
    pub(super) seen: Option<Timestamp>,
    /// Whether times are looked for though nothing changed.
    pub(super) again: bool,
    /// Stored messages that get another time.
    pub(super) retimed: Vec<Retimed>,
    /// What was found of the session.
    pub(super) found: Option<Found>,
}

/// What events and messages say of a session.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) created: Timestamp,
    pub(super) updated: Timestamp,
    pub(super) model: Option<String>,
}

impl Times {
    pub(super) fn new(stored: Option<&Session>) -> Self {
        Self { before: stored.cloned(), ..Self::default() }
    }
}

/// The earliest and the latest of some times.
type Span = Option<(Timestamp, Timestamp)>;

fn span(times: impl Iterator<Item = Timestamp>) -> Span {
    times.fold(None, |span, ts| {
        Some(span.map_or((ts, ts), |(from, to): (Timestamp, Timestamp)| (from.min(ts), to.max(ts))))
    })
}

impl SessionIngest {
    /// Finds the times of all messages of the session from what is known by now, those of the session itself, and the model
    /// that its events name. To be called when all lines are taken.
    pub(super) async fn settle_times(&mut self) -> Result<()> {
        if !self.may_have_other_times() {
            return Ok(());
        }
        let stated = self.stated_metadata()?;
        let clock = self.whole_clock().await?;
        let lines = self.all_lines(&clock).await?;
        let events = clock.span();
        let bounds = Bounds {
            begun: [stated.created(), events.map(|(first, _)| first)],
            ended: [stated.updated(), events.map(|(_, last)| last)],
            is_fork: stated.is_fork(),
        };
        let times = resolve(&lines, &clock, &bounds);
        self.put_times(&lines, &times);
        self.times.found = Some(self.found(&stated, &clock, &lines, &times));
        Ok(())
    }

    /// Takes from a line of the event log what it says of times and of the model, and stores nothing of it: for stores that
    /// keep no events. To be called with every line of the log from its beginning on; a bad line counts for nothing.
    pub fn note_event(&mut self, line: &RawJson) {
        self.events.note(line);
    }

    /// Whether anything changed so far that the times of messages follow from.
    #[must_use]
    pub fn may_have_other_times(&self) -> bool {
        let files_differ = match (&self.metadata, &self.stored) {
            (Some((files, _)), Some(stored)) => *files != stored.metadata_files,
            (given, _) => given.is_some(),
        };
        self.times.before.is_none()
            || self.times.again
            || files_differ
            || self.messages.pending.touched()
            || self.events.pending.touched()
            || self.events.has_notes()
    }

    /// What the metadata files say, those that are stored where none were given.
    fn stated_metadata(&self) -> Result<Metadata> {
        match (&self.metadata, &self.stored) {
            (Some((_, metadata)), _) => Ok(metadata.clone()),
            (None, Some(stored)) => Metadata::read(&stored.metadata_files),
            (None, None) => Ok(Metadata::default()),
        }
    }

    /// What all events of the session say, the stored ones too.
    async fn whole_clock(&mut self) -> Result<EventClock> {
        let mut clock = EventClock::default();
        let noted = std::mem::take(&mut self.events.clock);
        if !self.had_no_rows() && !noted.is_whole(self.events.pending.count()) {
            let mut start = 0;
            loop {
                let range = SequenceRange { start, limit: PAGE };
                let page = self.storage.backend().event_times(&self.target.key, range).await?;
                let Some(last) = page.last() else { break };
                start = last.sequence.saturating_add(1);
                page.iter().for_each(|event| clock.note(event));
            }
            clock.truncate(self.events.pending.count());
        }
        clock.merge(noted);
        Ok(clock)
    }

    /// What the times of all messages follow from, also of those whose lines were not taken now.
    async fn all_lines(&mut self, clock: &EventClock) -> Result<Vec<LineTime>> {
        let mut lines = Vec::new();
        for (sequence, line) in self.messages.take_times() {
            lines.extend(self.stored_lines(lines.len() as u32, sequence, clock).await?);
            if lines.len() == sequence as usize {
                lines.push(line);
            }
        }
        let count = self.messages.pending.count();
        lines.extend(self.stored_lines(lines.len() as u32, count, clock).await?);
        Ok(lines)
    }

    /// What the times of the stored messages of sequence `start` up to `end` follow from.
    async fn stored_lines(&self, start: u32, end: u32, clock: &EventClock) -> Result<Vec<LineTime>> {
        if start >= end || self.had_no_rows() {
            return Ok(Vec::new());
        }
        let key = &self.target.key;
        let states = self.storage.backend().message_states(key).await?;
        let states = states.get(start as usize..states.len().min(end as usize)).unwrap_or_default();
        let is_plain = |state: &MessageState| match state.ts_source {
            TimeSource::Stated => true,
            // Without events there is nothing in its line that matters.
            _ => clock.is_empty(),
        };
        if states.iter().all(is_plain) {
            return Ok(states.iter().map(LineTime::without_line).collect());
        }
        let mut lines = Vec::with_capacity(states.len());
        while lines.len() < states.len() {
            let range =
                SequenceRange { start: start + lines.len() as u32, limit: states.len() - lines.len() };
            let page: Vec<Message> = self.storage.readable_page(key, range, &mut Vec::new()).await?;
            if page.is_empty() {
                break;
            }
            for message in &page {
                // In the place of those before it that can't be read.
                let (done, before) = (lines.len(), message.sequence.saturating_sub(start) as usize);
                lines.extend(states.iter().take(before).skip(done).map(LineTime::without_line));
                let line = message.raw.parse_object().unwrap_or_default();
                let time = LineTime::of(&line, message.role, message.ts);
                lines.push(time.with_stored((message.ts, message.ts_source)));
            }
        }
        lines.truncate(states.len());
        lines.extend(states.iter().skip(lines.len()).map(LineTime::without_line));
        Ok(lines)
    }

    /// Gives messages that wait their times, and notes the stored ones that get another.
    fn put_times(&mut self, lines: &[LineTime], times: &[(Timestamp, TimeSource)]) {
        let waiting = self.messages.pending.waiting();
        for (sequence, (line, time)) in (0..).zip(lines.iter().zip(times)) {
            if line.stored == *time {
                continue;
            }
            let (ts, ts_source) = *time;
            let found = waiting.binary_search_by_key(&sequence, |message| message.sequence).ok();
            match found.and_then(|at| waiting.get_mut(at)) {
                Some(message) => (message.ts, message.ts_source) = (ts, ts_source),
                None => self.times.retimed.push(Retimed { sequence, ts, ts_source }),
            }
        }
    }

    /// When the session began and last changed: as its metadata state it, else by the times that events and lines state,
    /// else by the estimates of its messages, else by its files.
    fn found(
        &self,
        stated: &Metadata,
        clock: &EventClock,
        lines: &[LineTime],
        times: &[(Timestamp, TimeSource)],
    ) -> Found {
        let of = |wanted: fn(TimeSource) -> bool| {
            span(times.iter().filter(|(_, source)| wanted(*source)).map(|(ts, _)| *ts))
        };
        let events = clock.span();
        let known = span(
            of(|source| !source.is_estimated()).into_iter().chain(events).flat_map(|(from, to)| [from, to]),
        );
        let files = of(|source| source == TimeSource::File);
        let estimated = known.or_else(|| of(|source| source != TimeSource::File));
        let before = self.times.before.as_ref();
        let is_guess = |ts: Timestamp| lines.iter().any(|line| line.stored == (ts, TimeSource::File));
        // Of a session that was not synced from files, somebody may have said when it began.
        let is_synced = self.sync_state.is_some()
            || self.stored.as_ref().is_some_and(|stored| stored.sync_state.is_some());
        let said = before.filter(|_| !is_synced);
        let said_created = said.map(|session| session.created).filter(|ts| !is_guess(*ts));
        let said_updated = said.map(|session| session.updated).filter(|ts| !is_guess(*ts));
        let first_seen = || {
            let earlier = before.map(|session| session.created);
            earlier.or(files.map(|(from, _)| from)).or(self.times.seen).unwrap_or_else(|| self.storage.now())
        };
        let created = stated
            .created()
            .or_else(|| estimated.map(|(from, _)| said_created.map_or(from, |said| said.min(from))))
            .or_else(|| stated.updated())
            .unwrap_or_else(first_seen);
        let last_stated = stated.updated().max(known.map(|(_, to)| to));
        let last_seen = || {
            let earlier = before.map(|session| session.updated);
            let nothing = stated.created().is_none().then_some(self.times.seen).flatten();
            let last = files.map(|(_, to)| to).max(earlier);
            last.or(nothing)
        };
        let updated = last_stated
            .or(estimated.map(|(_, to)| to))
            .or_else(|| stated.created().is_none().then(last_seen).flatten())
            .max(said_updated)
            .map_or(created, |updated| updated.max(created));
        Found { created, updated, model: self.model(stated, clock) }
    }

    /// The model that the metadata name, else the one that events name most often.
    fn model(&self, stated: &Metadata, clock: &EventClock) -> Option<String> {
        let before = self.times.before.as_ref().and_then(|session| session.model.as_deref());
        let has_files = self.stored.as_ref().is_some_and(|stored| !stored.metadata_files.is_empty());
        // Somebody may have said it of a session that has no files.
        let said = before.filter(|model| !has_files && !clock.names(model));
        stated.model().or_else(|| said.or(clock.model()).map(str::to_owned))
    }

    /// Whether nothing was stored of the session before it was taken in.
    fn had_no_rows(&self) -> bool {
        self.times.before.is_none() && self.storage.backend().info().atomic_writes
    }
}
