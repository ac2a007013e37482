//! Derives the times of the messages of a session that is being ingested, and of the session itself.

use super::SessionIngest;
use crate::{
    Result,
    backend::{EventTime, SequenceRange, StorageBackendExt},
    metadata::Metadata,
    model::{Message, MessageState, RawJson, Retimed, Session, TimeSource, Timestamp},
    storage::store::StoreStatistics,
    times::{Bounds, EventClock, LineTime, Resolved, Span, resolve_all},
};

/// Number of rows read at a time.
const PAGE: usize = 10_000;

/// The basis for the times of a session that is being ingested.
#[derive(Debug, Default)]
pub(super) struct IngestTimes {
    /// The session as it was stored before.
    pub(super) before: Option<Session>,
    /// When its files last changed.
    pub(super) seen: Option<Timestamp>,
    /// Whether to derive times even if nothing changed.
    pub(super) again: bool,
    /// The derived data of the session.
    pub(super) found: Option<FoundTimes>,
}

/// The data of a session from its events and messages.
#[derive(Debug)]
pub(super) struct FoundTimes {
    pub(super) created: Timestamp,
    pub(super) updated: Timestamp,
    pub(super) model: Option<String>,
}

impl IngestTimes {
    pub(super) fn new(before: Option<Session>) -> Self {
        Self { before, ..Self::default() }
    }
}

fn span(times: impl Iterator<Item = Timestamp>) -> Span {
    times.fold(None, |span, ts| {
        Some(span.map_or((ts, ts), |(from, to): (Timestamp, Timestamp)| (from.min(ts), to.max(ts))))
    })
}

impl SessionIngest {
    /// Derives the times of all messages and of the session, and the model that its events name. Call this after all
    /// lines.
    pub(super) async fn assign_times(&mut self) -> Result<()> {
        if !self.may_have_other_times() {
            self.keep_settled();
            return Ok(());
        }
        let stated = self.stated_metadata()?;
        if self.settle_appended(&stated).await? {
            return Ok(());
        }
        let mut clock = self.whole_clock().await?;
        let is_shortened = self.add_lost_times(&mut clock).await?;
        let lines = self.all_lines(&clock).await?;
        let events = clock.span();
        let bounds = Bounds {
            begun: [stated.created(), events.map(|(first, _)| first)],
            ended: [stated.updated(), events.map(|(_, last)| last)],
            is_fork: stated.is_fork(),
        };
        let Resolved { times, settled, .. } = resolve_all(&lines, &clock, &bounds);
        self.put_times(0, &lines, &times);
        self.times.found = Some(self.found(&stated, &clock, &lines, &times));
        // Its events are numbered without the superseded ones.
        self.put_settled(settled.filter(|_| !is_shortened));
        Ok(())
    }

    /// Adds the times in the events that the log lost when it was shortened. Returns whether there are any.
    async fn add_lost_times(&self, clock: &mut EventClock) -> Result<bool> {
        if self.had_no_rows() || self.events.has_notes() {
            return Ok(false);
        }
        let superseded = StoreStatistics::new(&self.store).compacted_events(&self.target.key).await?;
        let mut lost: Vec<EventTime> = superseded.into_iter().map(|(event, _)| event.into()).collect();
        lost.extend(self.superseding_times().await?);
        Ok(clock.precede(lost))
    }

    /// Records the time and the model in a line of the event log without storing the event, for stores that keep no
    /// events. Call this with every line of the log, from its beginning. Invalid lines are ignored.
    pub fn note_event(&mut self, line: &RawJson) {
        // Prompts are recognised by their text, which is masked in the messages.
        let masked = self.masker.mask_now(line.clone());
        self.events.note(masked.as_ref().map_or(line, |(masked, _)| masked));
    }

    /// Whether anything changed that affects the times of messages.
    #[must_use]
    pub fn may_have_other_times(&self) -> bool {
        self.times.before.is_none()
            || self.times.again
            || self.writer.has_other_files()
            || self.messages.position.touched()
            || self.events.position.touched()
            || self.events.has_notes()
    }

    /// The metadata: the given files, or else the stored ones.
    pub(super) fn stated_metadata(&self) -> Result<Metadata> {
        match (&self.metadata, self.stored()) {
            (Some(metadata), _) => Ok(metadata.clone()),
            (None, Some(stored)) => Metadata::read(&stored.metadata_files),
            (None, None) => Ok(Metadata::default()),
        }
    }

    /// The times of all events of the session, including the stored ones.
    async fn whole_clock(&mut self) -> Result<EventClock> {
        let mut clock = EventClock::default();
        let noted = std::mem::take(&mut self.events.clock);
        if !self.had_no_rows() && !noted.is_whole(self.writer.session().event_count) {
            clock = self.stored_clock(0).await?;
            clock.truncate(self.writer.session().event_count);
        }
        clock.merge(noted);
        Ok(clock)
    }

    /// The times of the stored events of the session from `start` on.
    pub(super) async fn stored_clock(&self, mut start: u32) -> Result<EventClock> {
        let mut clock = EventClock::default();
        loop {
            let range = SequenceRange { start, limit: PAGE };
            let page = self.store.backend.event_times(&self.target.key, range).await?;
            let Some(last) = page.last() else { return Ok(clock) };
            start = last.sequence.saturating_add(1);
            page.iter().for_each(|event| clock.note(event));
        }
    }

    /// The basis for the times of all messages, including those whose lines were not processed now.
    async fn all_lines(&mut self, clock: &EventClock) -> Result<Vec<LineTime>> {
        let mut lines = Vec::new();
        for (sequence, line) in self.messages.take_times() {
            lines.extend(self.stored_lines(lines.len() as u32, sequence, clock).await?);
            if lines.len() == sequence as usize {
                lines.push(line);
            }
        }
        let count = self.writer.session().message_count;
        lines.extend(self.stored_lines(lines.len() as u32, count, clock).await?);
        Ok(lines)
    }

    /// The basis for the times of the stored messages `start..end`.
    pub(super) async fn stored_lines(
        &self,
        start: u32,
        end: u32,
        clock: &EventClock,
    ) -> Result<Vec<LineTime>> {
        if start >= end || self.had_no_rows() {
            return Ok(Vec::new());
        }
        let key = &self.target.key;
        let states = self.store.backend.message_states(key).await?;
        let states = states.get(start as usize..states.len().min(end as usize)).unwrap_or_default();
        let is_plain = |state: &MessageState| match state.ts_source {
            TimeSource::Stated => true,
            // Without events, the line itself does not matter.
            _ => clock.is_empty(),
        };
        if states.iter().all(is_plain) {
            return Ok(states.iter().map(LineTime::without_line).collect());
        }
        let mut lines = Vec::with_capacity(states.len());
        while lines.len() < states.len() {
            let range =
                SequenceRange { start: start + lines.len() as u32, limit: states.len() - lines.len() };
            let page: Vec<Message> = self.store.readable_page(key, range, &mut Vec::new()).await?;
            if page.is_empty() {
                break;
            }
            for message in &page {
                // Fill in for messages before it that can't be read.
                let (done, before) = (lines.len(), message.sequence.saturating_sub(start) as usize);
                lines.extend(states.iter().take(before).skip(done).map(LineTime::without_line));
                let time = LineTime::of(&message.line(), message.ts);
                lines.push(time.with_stored((message.ts, message.ts_source)));
            }
        }
        lines.truncate(states.len());
        lines.extend(states.iter().skip(lines.len()).map(LineTime::without_line));
        Ok(lines)
    }

    /// Sets the times of pending messages, and records stored messages whose time changes. `lines` begins with message
    /// `first`.
    pub(super) fn put_times(&mut self, first: u32, lines: &[LineTime], times: &[(Timestamp, TimeSource)]) {
        // Messages that this ingest wrote in an earlier part are new.
        let before = self.times.before.as_ref().map_or(0, |session| session.message_count);
        for (sequence, (line, time)) in (first..).zip(lines.iter().zip(times)) {
            if line.stored == *time {
                continue;
            }
            let (ts, ts_source) = *time;
            let line_bytes = self.messages.line_bytes(sequence);
            let is_stored = self.writer.retime(Retimed { sequence, ts, ts_source }, line_bytes);
            self.report.messages_retimed += u64::from(is_stored && sequence < before);
        }
    }

    /// When the session began and last changed: from its metadata, else from events and lines, else from the estimates
    /// of its messages, else from its files.
    fn found(
        &self,
        stated: &Metadata,
        clock: &EventClock,
        lines: &[LineTime],
        times: &[(Timestamp, TimeSource)],
    ) -> FoundTimes {
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
        // If a session was not synced from files, its creator may have stated its time.
        let is_synced =
            self.sync_state.is_some() || self.stored().is_some_and(|stored| stored.sync_state.is_some());
        let said = before.filter(|_| !is_synced);
        let said_created = said.map(|session| session.created).filter(|ts| !is_guess(*ts));
        let said_updated = said.map(|session| session.updated).filter(|ts| !is_guess(*ts));
        let first_seen = || {
            let earlier = before.map(|session| session.created);
            earlier.or(files.map(|(from, _)| from)).or(self.times.seen).unwrap_or_else(|| self.store.now())
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
        let logged = || clock.model().map(str::to_owned);
        FoundTimes { created, updated, model: self.model(stated, |model| clock.names(model), logged) }
    }

    /// The model in the metadata, or else the model that most events name, which is `logged`. `names` says whether an
    /// event names a model.
    pub(super) fn model(
        &self,
        stated: &Metadata,
        names: impl Fn(&str) -> bool,
        logged: impl FnOnce() -> Option<String>,
    ) -> Option<String> {
        let before = self.times.before.as_ref().and_then(|session| session.model.as_deref());
        let has_files = self.stored().is_some_and(|stored| !stored.metadata_files.is_empty());
        // If a session has no files, its creator may have stated the model.
        let said = before.filter(|model| !has_files && !names(model));
        stated.model().or_else(|| said.map(str::to_owned).or_else(logged))
    }

    /// Whether the session is new in the store.
    fn had_no_rows(&self) -> bool {
        self.times.before.is_none() && self.store.backend.info().atomic_writes
    }
}
