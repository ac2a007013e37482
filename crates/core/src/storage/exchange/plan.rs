//! The rows of a session that another store lacks.

use super::{
    extent::SessionExtent,
    row_digests,
    send::{SendRows, all_superseded, digest_of_record, superseded_of, travelling},
};
use crate::{
    Result,
    backend::StoredSession,
    model::{Digest, LineKind},
    storage::{
        archive::{RowChain, RowChains},
        ingest::ReceivedRows,
        store::StoreContext,
    },
};

/// The rows to send to the store `target`, which has `extent` of the session; `None` if it has everything. The rows of a
/// session that was sent, or came from there, and has not changed since, are not read.
pub(super) async fn rows_to_send(
    store: &StoreContext,
    stored: &StoredSession,
    extent: Option<&SessionExtent>,
    target: &str,
) -> Result<Option<SendRows>> {
    let key = stored.session.key();
    let Some(extent) = extent else { return Ok(Some(SendRows::new(key))) };
    if ReceivedRows::of(stored).is_as_sent(target, &stored.session) {
        return Ok(None);
    }
    let about = digest_of_record(&travelling(stored.clone()))?;
    let sent = extent.sent.as_ref();
    let is_known = |version: &Option<String>| version.as_ref() == Some(&stored.version.0);
    if sent.is_some_and(|sent| is_known(&sent.version) && sent.about == about) {
        return Ok(None);
    }
    let (messages, events) = (stored.session.message_count, stored.session.event_count);
    let messages = row_digests(store, &key, LineKind::Message, messages).await?;
    let events = row_digests(store, &key, LineKind::Event, events).await?;
    let before = match sent {
        Some(sent) => RowChains {
            messages: if starts_with(&messages, sent.rows.messages) {
                sent.rows.messages
            } else {
                RowChain::default()
            },
            events: if starts_with(&events, sent.rows.events) {
                sent.rows.events
            } else {
                RowChain::default()
            },
        },
        // It may have the first rows from elsewhere, and says so if they are others.
        None => {
            RowChains { messages: first(&messages, extent.messages), events: first(&events, extent.events) }
        }
    };
    let superseded = sent.map(|sent| sent.superseded).unwrap_or_default();
    let has_rows =
        (before.messages.count as usize, before.events.count as usize) == (messages.len(), events.len());
    if let Some(sent) = sent
        && has_rows
        && sent.version.is_some()
        && sent.about == about
        && all_superseded(&superseded_of(store, &key).await?) == superseded
    {
        return Ok(None);
    }
    let may_replace = extent.messages > before.messages.count || extent.events > before.events.count;
    Ok(Some(SendRows::new(key).with_before(before).with_superseded(superseded).with_may_replace(may_replace)))
}

fn starts_with(rows: &[Digest], chain: RowChain) -> bool {
    rows.get(..chain.count as usize).is_some_and(|rows| RowChain::of(rows) == chain)
}

fn first(rows: &[Digest], count: u32) -> RowChain {
    RowChain::of(rows.get(..count as usize).unwrap_or(rows))
}
