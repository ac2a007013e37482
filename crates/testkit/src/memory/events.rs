//! Events.

use std::cmp::Reverse;

use amplifier_session_core::{
    Result, Scope,
    backend::{CountedEvents, EventCounter, EventState, Events, RESPONSE, SequenceRange, Usage},
    model::{Event, MessageRef, Payload, SessionKey, UserId},
    search::{EventCursor, EventFilter, EventSearchOptions},
};
use async_trait::async_trait;

use super::{MemoryBackend, page, rows::in_range};

#[async_trait]
impl Events for MemoryBackend {
    async fn event_states(
        &self,
        key: &SessionKey,
        range: SequenceRange,
        with_times: bool,
    ) -> Result<Vec<EventState>> {
        let events = self.read_events(key, range).await?.into_iter();
        Ok(events.map(|event| EventState::of(event, with_times)).collect())
    }

    async fn read_events(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Event>> {
        let rows = self.rows();
        let session = rows.sessions.get(key).into_iter();
        let page = session.flat_map(|of| in_range(&of.events, page(range)));
        Ok(page.map(|stored| stored.event.clone()).collect())
    }

    async fn event_payloads(&self, key: &SessionKey, sequences: &[u32]) -> Result<Vec<(u32, Payload)>> {
        let rows = self.rows();
        let Some(session) = rows.sessions.get(key) else { return Ok(Vec::new()) };
        let payload = |sequence: &u32| Some((*sequence, session.events.get(sequence)?.payload.clone()));
        Ok(sequences.iter().filter_map(payload).collect())
    }

    async fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, MessageRef)>> {
        Ok(self.rows().find_events(user, event_ids.iter()))
    }

    async fn search_events(&self, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>> {
        let rows = self.rows();
        let mut events: Vec<&Event> = rows.events(scope, &options.filter).collect();
        events.retain(|event| {
            let cursor = EventCursor::from(*event);
            options.after.as_ref().is_none_or(|after| cursor < *after)
                && !options.without.contains(&cursor.event)
        });
        events.sort_by_key(|event| Reverse(EventCursor::from(*event)));
        Ok(events.into_iter().take(options.limit).cloned().collect())
    }

    async fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<CountedEvents> {
        let (rows, mut counter) = (self.rows(), EventCounter::default());
        rows.events(scope, filter).for_each(|event| counter.add(event));
        // A model call counts once, so the counter must know which sessions have responses.
        let responses = EventFilter::default().with_event_type(RESPONSE.to_owned());
        let answers = rows.events(scope, &responses).filter(|event| Usage::of(&event.summary).calls > 0);
        counter.set_answered(answers.map(|event| event.key()));
        Ok(counter.into_counts())
    }
}
