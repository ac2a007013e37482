//! Finding and counting rows by what they are.

use std::{cmp::Reverse, collections::BTreeMap};

use amplifier_session_core::{
    Scope,
    backend::{EventCount, EventCounter, MessageCount, RESPONSE, SessionRows, Usage, meta::Generations},
    model::{ContentType, ContentTypes, Event, Role, SessionKey},
    search::{EventCursor, EventFilter, EventSearchOptions, SearchFilter},
};

use super::{MemoryBackend, documents::Documents};

impl MemoryBackend {
    pub(super) fn newest_events(&self, scope: &Scope, options: &EventSearchOptions) -> Vec<Event> {
        let mut found = Vec::new();
        self.each_event_within(scope, &options.filter, |event| {
            let cursor = EventCursor::from(&event);
            let is_left_out = options.without.contains(&cursor.place);
            if !is_left_out && options.after.as_ref().is_none_or(|after| cursor < *after) {
                found.push(event);
            }
        });
        found.sort_by_cached_key(|event| Reverse(EventCursor::from(event)));
        found.truncate(options.limit);
        found
    }

    pub(super) fn counted_events(&self, scope: &Scope, filter: &EventFilter) -> Vec<EventCount> {
        let mut counter = EventCounter::default();
        self.each_event_within(scope, filter, |event| counter.add(&event));
        if counter.unanswered().next().is_some() {
            let responses = EventFilter::default().with_event_type(RESPONSE.to_owned());
            let mut answered = Vec::new();
            self.each_event_within(scope, &responses, |event| {
                if Usage::of(&event.summary).calls > 0 {
                    answered.push(SessionKey::new(event.user_id.clone(), event.session_id.clone()));
                }
            });
            counter.set_answered(answered);
        }
        counter.into_counts()
    }

    pub(super) fn counted_messages(&self, scope: &Scope, filter: &SearchFilter) -> Vec<MessageCount> {
        let sessions = self.sessions_within(scope, &filter.sessions);
        let mut counts: BTreeMap<(String, &str), (Role, u64)> = BTreeMap::new();
        self.each_message(|message| {
            let role = message.role;
            if sessions.contains(&message.place().session) && filter.admits_message(role, message.ts) {
                counts.entry((message.ts.day(), role.as_str())).or_insert((role, 0)).1 += 1;
            }
        });
        let counts = counts.into_iter();
        counts.map(|((day, _), (role, messages))| MessageCount { day, role, messages }).collect()
    }

    fn each_event_within(&self, scope: &Scope, filter: &EventFilter, mut each: impl FnMut(Event)) {
        let sessions = self.sessions_within(scope, &filter.sessions);
        self.each_event(|event| {
            let key = SessionKey::new(event.user_id.clone(), event.session_id.clone());
            if sessions.contains(&key) && filter.admits(&event) {
                each(event);
            }
        });
    }
}

impl Documents {
    /// What is stored of a session.
    pub(super) fn rows_of(&self, key: &SessionKey) -> SessionRows {
        let mut rows = SessionRows::default();
        for (sequence, message) in self.messages.page(key, .., usize::MAX) {
            rows.messages.add(sequence, message.ts);
            rows.owing_vectors += u64::from(message.vectors.is_owed());
            rows.synced_at = rows.synced_at.max(Some(message.synced_at));
        }
        for (sequence, document) in self.events.page(key, .., usize::MAX) {
            rows.events.add(sequence, document.event.ts);
        }
        let current = Generations::of(&self.meta).current_number();
        rows.vectors = self.vectors.ids(key, ..).into_iter().filter(|id| id.1 == current).count() as u64;
        rows
    }

    /// The texts that have vectors of a generation, of messages from `start` on.
    pub(super) fn vector_types(
        &self,
        key: &SessionKey,
        generation: u32,
        start: u32,
    ) -> Vec<(u32, ContentTypes)> {
        let mut types: BTreeMap<u32, Vec<ContentType>> = BTreeMap::new();
        let ids = self.vectors.ids(key, (start, 0, ContentType::ALL[0], 0)..).into_iter();
        for (sequence, _, content_type, _) in ids.filter(|id| id.1 == generation) {
            types.entry(sequence).or_default().push(content_type);
        }
        types.into_iter().map(|(sequence, of)| (sequence, of.into_iter().collect())).collect()
    }
}
