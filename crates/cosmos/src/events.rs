//! Events: reading, searching and counting.

use std::future::ready;

use amplifier_session_core::{
    Result, Scope,
    backend::{CountedEvents, EventCounter, EventState, Events, RESPONSE, SequenceRange},
    model::{Event, MessageRef, Payload, SessionKey, UserId},
    search::{EventCursor, EventFilter, EventSearchOptions},
};
use async_trait::async_trait;
use futures_util::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::{
    containers::order,
    documents::{ChunkDocument, EVENT_FIELDS, EventDocument, PayloadDocument, kind},
    ids,
    query::{CosmosQuery, Select, VALUES},
    scope,
    store::{CosmosBackend, Store},
};

#[async_trait]
impl Events for CosmosBackend {
    async fn event_states(
        &self,
        key: &SessionKey,
        range: SequenceRange,
        with_times: bool,
    ) -> Result<Vec<EventState>> {
        if with_times {
            let events = self.read_events(key, range).await?.into_iter();
            return Ok(events.map(|event| EventState::of(event, true)).collect());
        }
        let digests = page(&self.0, key, range, "VALUE c.digest").await?.into_iter();
        Ok(digests.map(|digest| EventState { digest, time: None }).collect())
    }

    async fn read_events(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Event>> {
        let documents: Vec<EventDocument> = page(&self.0, key, range, EVENT_FIELDS).await?;
        Ok(documents.into_iter().map(|document| document.into_event()).collect())
    }

    async fn event_payloads(&self, key: &SessionKey, sequences: &[u32]) -> Result<Vec<(u32, Payload)>> {
        let partition = ids::partition(key);
        let mut payloads = Vec::new();
        for sequences in sequences.chunks(VALUES) {
            let select = Select::rows(kind::EVENT, &partition).at(sequences);
            let query = select.fields("VALUE [c.sequence, c.payload]");
            let stored: Vec<(u32, PayloadDocument)> = self.0.events.all(query).await?;
            for (sequence, payload) in stored {
                let ids =
                    if let PayloadDocument::Chunks { ids } = &payload { ids.clone() } else { Vec::new() };
                let chunks: Vec<ChunkDocument> = self.0.chunks.read_all(&partition, ids).await?;
                payloads.push((sequence, payload.into_payload(chunks)?));
            }
        }
        Ok(payloads)
    }

    async fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, MessageRef)>> {
        let mut found = Vec::new();
        for event_ids in event_ids.chunks(VALUES) {
            for (id, partition, sequence) in self.0.events.all(event_refs(user, Some(event_ids))).await? {
                found.push((id, MessageRef::new(ids::session_of(&partition)?, sequence)));
            }
        }
        Ok(found)
    }

    async fn search_events(&self, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>> {
        // Events with the same time as `after` are skipped below.
        let select = matching(scope, &options.filter)
            .with_some("c.ts <= @", options.after.as_ref().map(|after| after.ts))
            .ordered(order::EVENTS);
        let query = select.fields(EVENT_FIELDS).for_about(options.limit);
        let events = found(&self.0, scope, &options.filter, query).await?;
        let events = events.try_filter(|event| {
            let cursor = EventCursor::from(event);
            let is_on_page_before = options.after.as_ref().is_some_and(|after| cursor >= *after);
            ready(!is_on_page_before && !options.without.contains(&cursor.event))
        });
        events.take(options.limit).try_collect().await
    }

    async fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<CountedEvents> {
        let query = matching(scope, filter).fields(EVENT_FIELDS);
        let mut events = found(&self.0, scope, filter, query).await?;
        let mut counter = EventCounter::default();
        while let Some(event) = events.try_next().await? {
            counter.add(&event);
        }
        if !counter.unanswered().is_empty() {
            let select = Select::of(kind::EVENT).of_user(scope).with("c.event_type = @", RESPONSE);
            let select = select.and("IS_OBJECT(c.summary.usage)");
            let answered: Vec<String> =
                self.0.events.all(select.fields("VALUE c.user_id_session_id")).await?;
            let keys = answered.iter().map(|partition| ids::session_of(partition));
            counter.set_answered(keys.collect::<Result<Vec<SessionKey>>>()?);
        }
        Ok(counter.into_counts())
    }
}

/// The id, partition and sequence of a user's events: of those in `event_ids`, or of all.
pub(crate) fn event_refs(user: &UserId, event_ids: Option<&[String]>) -> CosmosQuery<(String, String, u32)> {
    let select = Select::of(kind::EVENT).with("c.user_id = @", user);
    let select = select.with_some("ARRAY_CONTAINS(@, c.event_id)", event_ids);
    select.fields("VALUE [c.event_id, c.user_id_session_id, c.sequence]")
}

/// A page of a session's events, with these fields.
async fn page<T: DeserializeOwned + Send + 'static>(
    store: &Store,
    key: &SessionKey,
    range: SequenceRange,
    fields: &str,
) -> Result<Vec<T>> {
    let select = Select::rows(kind::EVENT, &ids::partition(key)).from(range.start);
    store.rows(&store.events, key, select.top(range.limit.min(VALUES), fields)).await
}

/// Events that `filter` admits. The caller checks their sessions and their words.
fn matching(scope: &Scope, filter: &EventFilter) -> Select {
    let select = Select::of(kind::EVENT)
        .of_user(scope)
        .with_some("c.session_id = @", filter.sessions.session.as_ref())
        .with_some("c.event_type = @", filter.event_type.as_ref())
        .with_some("c.tool_name = @", filter.tool.as_ref())
        .with_some("c.model = @", filter.model.as_ref())
        .with_some("c.provider = @", filter.provider.as_ref())
        .with_some("c.error_type = @", filter.error_type.as_ref())
        .with_some("c.level = @", filter.level)
        .with_some("c.ts >= @", filter.since)
        .with_some("c.ts < @", filter.until);
    let Some(category) = &filter.category else { return select };
    let is_of_category = "(c.event_type = @0 OR STARTSWITH(c.event_type, @1))";
    select.with_all(is_of_category, [json!(category), json!(format!("{category}:"))])
}

/// The events of a query that are in scope and that `filter` admits.
async fn found<'a>(
    store: &Store,
    scope: &Scope,
    filter: &'a EventFilter,
    query: CosmosQuery<EventDocument>,
) -> Result<BoxStream<'a, Result<Event>>> {
    let sessions = scope::sessions(store, scope, &filter.sessions).await?;
    if sessions.is_empty() {
        return Ok(stream::empty().boxed());
    }
    let documents = store.events.query(query).await?;
    let events = documents.try_filter_map(move |document| {
        let is_in_scope = sessions.contains_key(&document.user_id_session_id);
        ready(Ok(Some(document.into_event()).filter(|event| is_in_scope && filter.admits(event))))
    });
    Ok(events.boxed())
}
