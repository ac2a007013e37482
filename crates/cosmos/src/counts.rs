//! Counting rows: there are no aggregates across partitions, so what is counted is read, without the lines.

use std::collections::BTreeMap;

use amplifier_session_core::{
    Result, Scope,
    backend::{MessageCount, SessionRows},
    model::{Role, SessionKey, Timestamp},
    search::SearchFilter,
};
use serde::Deserialize;

use crate::{
    client::Within,
    documents::{GenerationState, kind, vector_state},
    ids, queries, schema, sessions,
    store::Store,
};

#[derive(Debug, Deserialize)]
struct MessageRow {
    sequence: u32,
    ts: Timestamp,
    synced_at: Timestamp,
    vectors: u8,
    generations: Vec<GenerationState>,
}

#[derive(Debug, Deserialize)]
struct EventRow {
    sequence: u32,
    ts: Timestamp,
}

/// What is stored of a session.
pub(crate) async fn rows_of(store: &Store, key: &SessionKey) -> Result<SessionRows> {
    let partition = ids::partition(key);
    let within = Within::Partition(&partition);
    let current = schema::generations(store).await?.current_number();
    let mut rows = SessionRows::default();
    let select = "c.sequence, c.ts, c.synced_at, c.vectors, c.generations";
    let messages = queries::rows(kind::MESSAGE, select, 0, None);
    for message in store.messages.all::<MessageRow>(within, messages).await? {
        rows.messages.add(message.sequence, message.ts);
        rows.owing_vectors += u64::from(vector_state(message.vectors)?.is_owed());
        rows.synced_at = rows.synced_at.max(Some(message.synced_at));
        let of_current = message.generations.iter().filter(|of| of.number == current);
        rows.vectors += of_current.map(|of| u64::from(of.vectors)).sum::<u64>();
    }
    let events = queries::rows(kind::EVENT, "c.sequence, c.ts", 0, None);
    for event in store.events.all::<EventRow>(within, events).await? {
        rows.events.add(event.sequence, event.ts);
    }
    Ok(rows)
}

#[derive(Debug, Deserialize)]
struct MessageTime {
    user_id_session_id: String,
    role: Role,
    ts: Timestamp,
}

/// Messages by day and role.
pub(crate) async fn messages(
    store: &Store,
    scope: &Scope,
    filter: &SearchFilter,
) -> Result<Vec<MessageCount>> {
    let within = sessions::within(store, scope, &filter.sessions).await?;
    let query = queries::message_times(scope, filter);
    let mut pages = store.messages.query::<MessageTime>(Within::All, query).await?;
    let mut counts: BTreeMap<(String, &str), (Role, u64)> = BTreeMap::new();
    while let Some(page) = pages.next().await? {
        for message in page {
            let counts_here = within.contains_key(&message.user_id_session_id)
                && filter.admits_message(message.role, message.ts);
            if counts_here {
                let place = (message.ts.day(), message.role.as_str());
                counts.entry(place).or_insert((message.role, 0)).1 += 1;
            }
        }
    }
    let counts = counts.into_iter();
    Ok(counts.map(|((day, _), (role, messages))| MessageCount { day, role, messages }).collect())
}
