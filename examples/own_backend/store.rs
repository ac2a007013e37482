//! What the backend keeps, and what its reads and writes have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use amplifier_session_core::{
    Scope,
    backend::{meta::Generations, *},
    model::*,
    search::*,
};

#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) meta: BTreeMap<String, String>,
    pub(crate) sessions: BTreeMap<SessionKey, Kept>,
    /// Sessions that were deleted, also those that have come again.
    pub(crate) deleted: BTreeSet<SessionKey>,
    /// Counts for the whole store: a session that is deleted and made again must not get an old version back.
    pub(crate) writes: u64,
}

/// A session with everything that belongs to it, which goes and moves with it.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) stored: StoredSession,
    pub(crate) messages: BTreeMap<u32, KeptMessage>,
    pub(crate) events: BTreeMap<u32, StoredEvent>,
}

/// A message with its vectors, by generation: whoever puts it anew or removes it can't forget them.
#[derive(Debug)]
pub(crate) struct KeptMessage {
    pub(crate) message: Message,
    pub(crate) vectors: BTreeMap<u32, KeptVectors>,
}

/// The vectors of a message, and why some are missing.
#[derive(Debug)]
pub(crate) struct KeptVectors {
    pub(crate) records: Vec<VectorRecord>,
    pub(crate) failure: Option<String>,
}

impl KeptMessage {
    pub(crate) fn records(&self, generation: u32) -> &[VectorRecord] {
        self.vectors.get(&generation).map_or(&[], |kept| &kept.records)
    }

    pub(crate) fn owes(&self, generation: u32, held: &Generations) -> bool {
        if generation == held.current_number() {
            return self.message.vectors.is_owed();
        }
        let has_text = self.message.vectors != VectorState::Nothing;
        held.is_next(generation) && has_text && !self.vectors.contains_key(&generation)
    }
}

impl Store {
    pub(crate) fn of_user(&self, user: &UserId) -> impl Iterator<Item = &Kept> {
        self.sessions.values().filter(move |kept| kept.stored.session.user_id == *user)
    }

    pub(crate) fn message(&self, place: &Place) -> Option<&KeptMessage> {
        self.sessions.get(&place.session)?.messages.get(&place.sequence)
    }

    /// The messages that a read looks at. Whom a session is shared with and how it is labelled can change at any time:
    /// the session itself is asked.
    pub(crate) fn messages<'a>(
        &'a self,
        scope: &'a Scope,
        filter: &'a SearchFilter,
    ) -> impl Iterator<Item = &'a KeptMessage> {
        let sessions = self.sessions.values().filter(|kept| kept.is_within(scope, &filter.sessions));
        let messages = sessions.flat_map(|kept| kept.messages.values());
        messages.filter(|kept| filter.admits_message(kept.message.role, kept.message.ts))
    }

    pub(crate) fn events<'a>(
        &'a self,
        scope: &'a Scope,
        filter: &'a EventFilter,
    ) -> impl Iterator<Item = &'a Event> {
        let sessions = self.sessions.values().filter(|kept| kept.is_within(scope, &filter.sessions));
        sessions.flat_map(Kept::events).filter(|event| filter.admits(event))
    }

    /// Where a user's events of these ids stand.
    pub(crate) fn places_of<'a>(
        &self,
        user: &UserId,
        ids: impl Iterator<Item = &'a String>,
    ) -> Vec<(String, Place)> {
        let ids: BTreeSet<&String> = ids.collect();
        let found = self.of_user(user).flat_map(Kept::events).filter(|event| ids.contains(&event.event_id));
        found.map(|event| (event.event_id.clone(), EventCursor::from(event).place)).collect()
    }
}

impl Kept {
    pub(crate) fn new(session: Session) -> Self {
        let version = Version(String::new());
        let stored =
            StoredSession { session, version, metadata_files: vec![], skipped: vec![], sync_state: None };
        Self { stored, messages: BTreeMap::new(), events: BTreeMap::new() }
    }

    pub(crate) fn is_within(&self, scope: &Scope, filter: &SessionFilter) -> bool {
        scope.allows(&self.stored.session) && filter.admits(&self.stored.session)
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.values().map(|stored| &stored.event)
    }

    pub(crate) fn change(&mut self, change: SessionChange, version: Version) {
        let kept = &mut self.stored;
        (kept.session, kept.version) = (change.session, version);
        kept.metadata_files = change.metadata_files.unwrap_or(take(&mut kept.metadata_files));
        kept.skipped = change.skipped.unwrap_or(take(&mut kept.skipped));
        kept.sync_state = change.sync_state.or(take(&mut kept.sync_state));

        let anew = |message: Message| (message.sequence, KeptMessage { message, vectors: BTreeMap::new() });
        change_rows(&mut self.messages, change.messages, anew);
        for Retimed { sequence, ts, ts_source } in change.retimed {
            if let Some(kept) = self.messages.get_mut(&sequence) {
                (kept.message.ts, kept.message.ts_source) = (ts, ts_source);
            }
        }
        change_rows(&mut self.events, change.events, |stored| (stored.event.sequence, stored));

        let project = &self.stored.session.project_slug;
        self.messages.values_mut().for_each(|kept| kept.message.project_slug = project.clone());
        self.events.values_mut().for_each(|stored| stored.event.project_slug = project.clone());
    }

    pub(crate) fn give_to(&mut self, user: &UserId) {
        self.stored.session.user_id = user.clone();
        self.messages.values_mut().for_each(|kept| kept.message.user_id = user.clone());
        self.events.values_mut().for_each(|stored| stored.event.user_id = user.clone());
    }
}

/// Cuts first and puts then, also at and beyond the length that was cut to.
fn change_rows<T, R>(rows: &mut BTreeMap<u32, R>, change: RowChange<T>, row: impl Fn(T) -> (u32, R)) {
    if let Some(length) = change.truncate {
        rows.retain(|sequence, _| *sequence < length);
    }
    rows.extend(change.put.into_iter().map(row));
}

pub(crate) fn rows<R>(rows: &BTreeMap<u32, R>, range: SequenceRange) -> impl Iterator<Item = &R> {
    rows.range(range.start..).map(|(_, row)| row).take(range.limit)
}
