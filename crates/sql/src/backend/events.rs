//! Events.

use amplifier_session_core::{
    Result, Scope,
    backend::{CountedEvents, EventState, Events, SequenceRange},
    model::{Event, MessageRef, Payload, SessionKey, UserId},
    search::{EventFilter, EventSearchOptions},
};
use async_trait::async_trait;

use super::SqlBackend;
use crate::{
    Reader,
    backend::{DerivedIndex, Lookups},
    read,
};

#[async_trait]
impl<D: DerivedIndex> Events for SqlBackend<D> {
    async fn event_states(
        &self,
        key: &SessionKey,
        range: SequenceRange,
        with_times: bool,
    ) -> Result<Vec<EventState>> {
        let states = read::events::states(key, range, with_times);
        self.read(move |reader| reader.rows(&states)).await
    }

    async fn read_events(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Event>> {
        let events = read::events::page(key, range);
        self.read(move |reader| reader.rows(&events)).await
    }

    async fn event_payloads(&self, key: &SessionKey, sequences: &[u32]) -> Result<Vec<(u32, Payload)>> {
        let (key, sequences) = (key.clone(), sequences.to_vec());
        self.read(move |reader| read::events::of_sequences(reader, &key, &sequences)).await
    }

    async fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, MessageRef)>> {
        let (user, event_ids) = (user.clone(), event_ids.to_vec());
        self.read(move |reader| reader.find_events(&user, &event_ids)).await
    }

    async fn search_events(&self, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>> {
        let (scope, options) = (scope.clone(), options.clone());
        self.read(move |reader| read::events::search(reader, &scope, &options)).await
    }

    async fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<CountedEvents> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read(move |reader| reader.count_events(&scope, &filter)).await
    }
}
