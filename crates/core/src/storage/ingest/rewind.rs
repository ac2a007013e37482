//! Removes the last turns of a session.

use super::SessionIngest;
use crate::{
    Error, ErrorKind, ErrorOption, Result,
    backend::{RewoundTo, SequenceRange, StoredSyncState},
    model::{Message, MessageState, Session},
    storage::{
        ingest::{RewindOptions, RewindReport},
        session_rows::SessionRows,
        store::Ingestion,
    },
    times::{Cut, EventClock, LineTime, cut},
};

impl SessionIngest {
    /// Determines what to remove. Nothing is written before [`SessionIngest::commit_rewind`].
    pub(in crate::storage) async fn rewind(&mut self, options: &RewindOptions) -> Result<RewindReport> {
        let key = self.target.key.clone();
        let states = self.store.backend.message_states(&key).await?;
        // Rows beyond the counts are left over from an interrupted write.
        let (messages_before, events_before) = self.complete_rows();
        let later =
            first_later(&states, options.to_turn).map_err(|error| error.with("session", &key.session_id))?;
        let first = later.unwrap_or(states.len()).min(messages_before);
        let is_later = first < states.len().min(messages_before);
        let mut report = RewindReport {
            last_turn: states.iter().filter_map(|state| state.turn).max(),
            messages: (states.len() - first) as u64,
            turns: turns_from(first, &states),
            ..RewindReport::default()
        };
        let mut clock = EventClock::default();
        if !options.keep_events && (report.messages > 0 || events_before < u32::MAX) {
            clock = self.stored_clock(0).await?;
            let events = if is_later { self.first_event(first, &states, &clock).await? } else { u32::MAX };
            let events = events.min(events_before);
            report.events = clock.count_from(events) as u64;
            if report.events > 0 {
                self.events.position.cut(events);
                self.writer.truncate_events(events);
            }
        }
        if !report.is_empty() {
            self.forget_derived_update(&states, &clock);
        }
        if report.messages > 0 {
            report.messages_with_vectors =
                Ingestion::new(&self.store).count_with_vectors(&key, first as u32).await?;
            let title = SessionRows::new(&self.store, &key).title(first as u32).await?;
            self.messages.cut(&mut self.writer, first as u32, states, title);
        }
        Ok(report)
    }

    /// Writes the changes that [`SessionIngest::rewind`] determined.
    pub(in crate::storage) async fn commit_rewind(mut self) -> Result<()> {
        if !self.store.backend.info().atomic_writes {
            self.write_counts().await?;
        }
        let Session { message_count, event_count, .. } = self.session_after();
        let rewound = Some(RewoundTo { messages: message_count, events: event_count });
        let state = self.stored().and_then(|stored| stored.sync_state.clone());
        self.sync_state = state.map(|state| StoredSyncState { settled: None, rewound, ..state });
        // The stores that sent the removed rows do not send them again, unless they have new ones.
        self.keeps_received = true;
        self.commit().await.map(drop)
    }

    /// Writes the counts that the session will have. If the following write is interrupted, the counts show where to
    /// continue, even if the rows that showed it are gone. If all rows are gone, nothing continues, so all counts must be
    /// right by then.
    async fn write_counts(&mut self) -> Result<()> {
        let Some(stored) = self.stored() else { return Ok(()) };
        let Session { message_count, event_count, .. } = *self.writer.session();
        let mut session = Session { message_count, event_count, ..stored.session.clone() };
        self.messages.describe(&self.writer.derived, &mut session);
        self.writer.write_session(session).await
    }

    /// The number of messages and events that are certainly complete: all of them if writes are atomic.
    fn complete_rows(&self) -> (usize, u32) {
        match self.stored() {
            Some(stored) if !self.store.backend.info().atomic_writes => {
                (stored.session.message_count as usize, stored.session.event_count)
            }
            _ => (usize::MAX, u32::MAX),
        }
    }

    /// The sequence of the first event that belongs to message `first` or is later; `u32::MAX` if there is none.
    pub(super) async fn first_event(
        &self,
        first: usize,
        states: &[MessageState],
        clock: &EventClock,
    ) -> Result<u32> {
        let key = &self.target.key;
        let mut lines = self.stored_lines(0, states.len() as u32, clock).await?;
        let range = SequenceRange { start: first as u32, limit: 1 };
        let found: Vec<Message> = self.store.readable_page(key, range, &mut Vec::new()).await?;
        let message = found.first().filter(|message| message.sequence as usize == first);
        if let (Some(message), Some(line)) = (message, lines.get_mut(first)) {
            let stored = (message.ts, message.ts_source);
            *line = LineTime::of(&message.line(), message.ts).with_stored(stored);
        }
        match cut(first, &lines, clock, self.stated_metadata()?.is_fork()) {
            Cut::At(sequence) => Ok(sequence),
            Cut::Nowhere => Ok(u32::MAX),
            Cut::Unknown => {
                let reason = "can't tell which events to remove: no message has a known time";
                Err(impossible(reason).with("session", &key.session_id).with_option(ErrorOption::KeepEvents))
            }
        }
    }

    /// Forgets the time of the last change unless it is later than all rows: only then was it certainly stated when the
    /// session was created.
    fn forget_derived_update(&mut self, states: &[MessageState], clock: &EventClock) {
        let last = states.iter().map(|state| state.ts).max().max(clock.span().map(|(_, last)| last));
        if let Some(before) = self.times.before.as_mut().filter(|before| Some(before.updated) <= last) {
            before.updated = before.created;
        }
    }
}

/// The position of the first message of a turn after `turn`. All messages after it must be later, too.
fn first_later(states: &[MessageState], turn: u32) -> Result<Option<usize>> {
    let later = |state: &MessageState| state.turn.is_some_and(|of| of > turn);
    let Some(first) = states.iter().position(later) else { return Ok(None) };
    let earlier = (first..).zip(states.iter().skip(first)).find_map(|(sequence, state)| {
        let of = state.turn.filter(|of| *of <= turn)?;
        Some((sequence, of))
    });
    match earlier {
        None => Ok(Some(first)),
        Some((sequence, of)) => Err(impossible(format!(
            "message {sequence} belongs to turn {of}, but comes after message {first} of a later turn"
        ))),
    }
}

/// The number of turns whose messages all come from position `first` on.
fn turns_from(first: usize, states: &[MessageState]) -> u64 {
    let (before, from) = states.split_at(first.min(states.len()));
    let turns = |states: &[MessageState]| -> std::collections::BTreeSet<u32> {
        states.iter().filter_map(|state| state.turn).collect()
    };
    turns(from).difference(&turns(before)).count() as u64
}

fn impossible(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::Rewind, reason)
}
