//! The rows of the backend, and the code that its reads share.

use std::collections::{BTreeMap, BTreeSet};

use amplifier_session_core::{
    Scope,
    backend::{
        RemovedMessages, SequenceRange, StoredSession, TurnLine, TurnLines, Version, meta::Generations,
    },
    model::{
        Event, Message, MessageRef, ProjectSlug, SessionId, SessionKey, StoredEvent, SupersededPiece,
        TurnSummary, UserId, VectorRecord, VectorState,
    },
    search::{EventCursor, EventFilter, SearchFilter, SessionFilter},
};

use super::changes::ChangeLog;

/// All rows of a store.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) meta: BTreeMap<String, String>,
    pub(super) sessions: BTreeMap<SessionKey, SessionRows>,
    /// Deleted sessions, including those that exist again.
    pub(super) deleted: BTreeSet<SessionKey>,
    pub(super) log: ChangeLog,
    versions: u64,
}

/// A session with all of its rows, so that they are deleted and moved together.
#[derive(Debug, Default)]
pub(super) struct SessionRows {
    /// `None` if a first write was interrupted after it wrote rows.
    pub(super) stored: Option<StoredSession>,
    pub(super) messages: BTreeMap<u32, MessageRow>,
    pub(super) events: BTreeMap<u32, StoredEvent>,
    /// By id.
    pub(super) superseded: BTreeMap<String, SupersededPiece>,
    /// By user message.
    pub(super) summaries: BTreeMap<u32, TurnSummary>,
}

/// A message with its vectors by generation, so that replacing or removing the message removes them too.
#[derive(Debug)]
pub(super) struct MessageRow {
    pub(super) message: Message,
    pub(super) vectors: BTreeMap<u32, VectorRows>,
}

/// The vectors of a message, and the reason for missing ones.
#[derive(Debug)]
pub(super) struct VectorRows {
    pub(super) records: Vec<VectorRecord>,
    pub(super) failure: Option<String>,
}

impl Rows {
    pub(super) fn new(meta: BTreeMap<String, String>) -> Self {
        Self { meta, ..Self::default() }
    }

    pub(super) fn generations(&self) -> Generations {
        Generations::of(&self.meta)
    }

    /// Returns a version that no session of the store has had.
    pub(super) fn next_version(&mut self) -> Version {
        self.versions += 1;
        Version(self.versions.to_string())
    }

    pub(super) fn stored(&self, key: &SessionKey) -> Option<&StoredSession> {
        self.sessions.get(key)?.stored.as_ref()
    }

    pub(super) fn message(&self, message_ref: &MessageRef) -> Option<&MessageRow> {
        self.sessions.get(&message_ref.session)?.messages.get(&message_ref.sequence)
    }

    /// The sessions of a user, sorted by id.
    pub(super) fn of_user(&self, user: &UserId) -> impl Iterator<Item = &SessionRows> {
        self.sessions.iter().filter(move |(key, _)| key.user_id == *user).map(|(_, session)| session)
    }

    /// The ids of the sessions of a user, sorted.
    pub(super) fn ids(&self, user: &UserId) -> impl Iterator<Item = SessionId> {
        self.of_user(user).filter_map(|session| Some(session.stored.as_ref()?.session.session_id.clone()))
    }

    /// The sessions that a read covers. Sharing and labels can change at any time, so this checks the session itself.
    fn within<'a>(
        &'a self,
        scope: &'a Scope,
        filter: &'a SessionFilter,
    ) -> impl Iterator<Item = &'a SessionRows> {
        self.sessions.values().filter(|session| session.is_within(scope, filter))
    }

    pub(super) fn messages<'a>(
        &'a self,
        scope: &'a Scope,
        filter: &'a SearchFilter,
    ) -> impl Iterator<Item = &'a MessageRow> {
        let messages = self.within(scope, &filter.sessions).flat_map(|session| session.messages.values());
        messages.filter(|row| filter.admits_message(row.message.role, row.message.ts))
    }

    pub(super) fn events<'a>(
        &'a self,
        scope: &'a Scope,
        filter: &'a EventFilter,
    ) -> impl Iterator<Item = &'a Event> {
        let events = self.within(scope, &filter.sessions).flat_map(SessionRows::events);
        events.filter(|event| filter.admits(event))
    }

    /// The events of a user with these ids, with their positions.
    pub(super) fn find_events<'a>(
        &self,
        user: &UserId,
        ids: impl Iterator<Item = &'a String>,
    ) -> Vec<(String, MessageRef)> {
        let ids: BTreeSet<&String> = ids.collect();
        let events = self.of_user(user).flat_map(SessionRows::events);
        let found = events.filter(|event| ids.contains(&event.event_id));
        found.map(|event| (event.event_id.clone(), EventCursor::from(event).event)).collect()
    }
}

impl SessionRows {
    pub(super) fn is_within(&self, scope: &Scope, filter: &SessionFilter) -> bool {
        self.stored.as_ref().is_some_and(|of| scope.allows(&of.session) && filter.admits(&of.session))
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.values().map(|stored| &stored.event)
    }

    /// The lines of all turns.
    pub(super) fn turn_lines(&self) -> TurnLines {
        TurnLines::of(self.messages.values().map(|MessageRow { message, .. }| TurnLine {
            sequence: message.sequence,
            turn: message.turn,
            role: message.role,
            digest: message.digest,
        }))
    }

    /// Makes the vectors of these turns pending. Removes vectors and summaries that were made from `removed`.
    pub(super) fn change_turns(&mut self, turns: &BTreeSet<u32>, removed: &RemovedMessages, current: u32) {
        for first in self.turn_lines().firsts() {
            let row = self.messages.get_mut(&first);
            let Some(row) = row.filter(|row| row.message.turn.is_some_and(|of| turns.contains(&of))) else {
                continue;
            };
            row.vectors.retain(|generation, _| *generation == current);
            if row.message.vectors == VectorState::Stored {
                row.message.vectors = VectorState::TurnPending;
            }
        }
        for of in self.messages.values_mut().flat_map(|row| row.vectors.values_mut()) {
            of.records.retain(|record| {
                let answer = record.turn.as_ref().and_then(|turn| turn.assistant_sequence);
                !answer.is_some_and(|answer| removed.has(answer))
            });
        }
        self.summaries.retain(|sequence, of| !removed.has_line(*sequence, of.digest));
    }

    pub(super) fn move_to(&mut self, project: &ProjectSlug) {
        self.messages.values_mut().for_each(|row| row.message.project_slug = project.clone());
        self.events.values_mut().for_each(|stored| stored.event.project_slug = project.clone());
    }

    pub(super) fn reassign_to(&mut self, user: &UserId) {
        if let Some(stored) = &mut self.stored {
            stored.session.user_id = user.clone();
        }
        self.messages.values_mut().for_each(|row| row.message.user_id = user.clone());
        self.events.values_mut().for_each(|stored| stored.event.user_id = user.clone());
        self.superseded.values_mut().for_each(|piece| piece.session.user_id = user.clone());
        self.summaries.values_mut().for_each(|of| of.session.user_id = user.clone());
    }
}

impl MessageRow {
    pub(super) fn records(&self, generation: u32) -> &[VectorRecord] {
        self.vectors.get(&generation).map_or(&[], |of| &of.records)
    }

    /// Whether vectors are pending; with `turns`, also if only that of a turn is.
    pub(super) fn is_pending(&self, generation: u32, turns: bool, generations: &Generations) -> bool {
        if generation == generations.current_number() {
            let state = self.message.vectors;
            return state.is_pending() || turns && state == VectorState::TurnPending;
        }
        let has_text = self.message.vectors != VectorState::Nothing;
        generations.is_next(generation) && has_text && !self.vectors.contains_key(&generation)
    }
}

/// The rows in a range of sequences.
pub(super) fn in_range<R>(rows: &BTreeMap<u32, R>, range: SequenceRange) -> impl Iterator<Item = &R> {
    rows.range(range.start..).map(|(_, row)| row).take(range.limit)
}
