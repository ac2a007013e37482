//! Reading events.

use std::collections::HashMap;

use amplifier_session_core::{
    Error, Result, Scope,
    backend::{EventCount, EventCounter, SequenceRange},
    model::{Digest, Event, Payload, Place, SessionKey, UserId},
    search::{EventCursor, EventFilter, EventSearchOptions},
};
use serde::Deserialize;

use crate::{
    client::{Within, page_of},
    documents::{ChunkDocument, EVENT_FIELDS, EventDocument, PayloadDocument, digest_of_hex, kind, payload},
    ids, lease, queries, sessions,
    store::Store,
};

/// The most events in a page.
const PAGE: usize = 500;

/// The most ids or sequences in a query.
const VALUES: usize = 500;

#[derive(Debug, Deserialize)]
struct DigestRow {
    digest: String,
}

pub(crate) async fn digests(store: &Store, key: &SessionKey, range: SequenceRange) -> Result<Vec<Digest>> {
    if !lease::is_there(store, key).await? {
        return Ok(Vec::new());
    }
    let partition = ids::partition(key);
    let query = queries::rows(kind::EVENT, "c.digest", range.start, Some(range.limit.min(PAGE)));
    let rows: Vec<DigestRow> = store.events.all(Within::Partition(&partition), query).await?;
    rows.into_iter().map(|row| digest_of_hex(&row.digest)).collect()
}

pub(crate) async fn read(store: &Store, key: &SessionKey, range: SequenceRange) -> Result<Vec<Event>> {
    if !lease::is_there(store, key).await? {
        return Ok(Vec::new());
    }
    let partition = ids::partition(key);
    let query = queries::rows(kind::EVENT, EVENT_FIELDS, range.start, Some(range.limit.min(PAGE)));
    let documents: Vec<EventDocument> = store.events.all(Within::Partition(&partition), query).await?;
    documents.into_iter().map(EventDocument::into_event).collect()
}

#[derive(Debug, Deserialize)]
struct PayloadRow {
    sequence: u32,
    payload: PayloadDocument,
}

pub(crate) async fn payloads(
    store: &Store,
    key: &SessionKey,
    sequences: &[u32],
) -> Result<Vec<(u32, Payload)>> {
    let partition = ids::partition(key);
    let mut payloads = Vec::new();
    for sequences in sequences.chunks(VALUES) {
        let query = queries::rows_at(kind::EVENT, "c.sequence, c.payload", sequences);
        let rows: Vec<PayloadRow> = store.events.all(Within::Partition(&partition), query).await?;
        for row in rows {
            let chunks = chunks(store, &partition, row.payload.chunks()).await?;
            payloads.push((row.sequence, payload(row.payload, chunks)?));
        }
    }
    Ok(payloads)
}

/// The chunks of these ids, in their order.
async fn chunks(store: &Store, partition: &str, ids: &[String]) -> Result<Vec<ChunkDocument>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let found: Vec<ChunkDocument> =
        store.chunks.all(Within::Partition(partition), queries::of_ids(ids)).await?;
    let mut found: HashMap<String, ChunkDocument> =
        found.into_iter().map(|chunk| (chunk.id.clone(), chunk)).collect();
    Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
}

#[derive(Debug, Deserialize)]
pub(crate) struct EventPlace {
    pub(crate) event_id: String,
    pub(crate) user_id_session_id: String,
    sequence: u32,
}

pub(crate) async fn find(store: &Store, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, Place)>> {
    let mut found = Vec::new();
    for event_ids in event_ids.chunks(VALUES) {
        let query = queries::events_of_ids(user.as_str(), event_ids);
        let rows: Vec<EventPlace> = store.events.all(Within::All, query).await?;
        for row in rows {
            let key = ids::session_of(&row.user_id_session_id)?;
            found.push((row.event_id, Place::new(key, row.sequence)));
        }
    }
    Ok(found)
}

pub(crate) async fn of_user(store: &Store, user: &UserId) -> Result<Vec<EventPlace>> {
    store.events.all(Within::All, queries::event_ids(user.as_str())).await
}

pub(crate) async fn search(store: &Store, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    let query = queries::events(scope, &options.filter, options.after.as_ref(), true);
    let query = query.in_pages_of(page_of(options.limit));
    each(store, scope, &options.filter, query, |event| {
        let cursor = EventCursor::from(&event);
        let is_left_out = options.without.contains(&cursor.place);
        if !is_left_out && options.after.as_ref().is_none_or(|after| cursor < *after) {
            events.push(event);
        }
        events.len() < options.limit
    })
    .await?;
    Ok(events)
}

#[derive(Debug, Deserialize)]
struct Answered {
    user_id_session_id: String,
}

pub(crate) async fn count(store: &Store, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>> {
    let mut counter = EventCounter::default();
    let query = queries::events(scope, filter, None, false);
    each(store, scope, filter, query, |event| {
        counter.add(&event);
        true
    })
    .await?;
    if counter.unanswered().next().is_some() {
        let rows: Vec<Answered> = store.events.all(Within::All, queries::answered_sessions(scope)).await?;
        let keys = rows.iter().map(|row| ids::session_of(&row.user_id_session_id));
        counter.set_answered(keys.collect::<Result<Vec<SessionKey>>>()?);
    }
    Ok(counter.into_counts())
}

/// Hands each event that is in scope to `take`, until that says that it is enough.
async fn each(
    store: &Store,
    scope: &Scope,
    filter: &EventFilter,
    query: crate::client::Query,
    mut take: impl FnMut(Event) -> bool,
) -> Result<(), Error> {
    let within = sessions::within(store, scope, &filter.sessions).await?;
    if within.is_empty() {
        return Ok(());
    }
    let mut pages = store.events.query::<EventDocument>(Within::All, query).await?;
    while let Some(page) = pages.next().await? {
        for document in page {
            if !within.contains_key(&document.user_id_session_id) {
                continue;
            }
            let event = document.into_event()?;
            if filter.admits(&event) && !take(event) {
                return Ok(());
            }
        }
    }
    Ok(())
}
