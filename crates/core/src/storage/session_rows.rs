//! Reads the rows of one session, some at a time: the memory does not grow with the session.

use std::{collections::HashMap, marker::PhantomData};

use super::{damage::SequencedRow, store::StoreContext};
use crate::{
    Error, ErrorKind, Result, Scope,
    backend::{SequenceRange, StorageBackendExt, SupersededQuery},
    content::TitleFinder,
    events::assemble,
    model::{
        DamagedRow, Digest, Event, Message, Payload, SessionKey, StoredEvent, SupersededPiece, SupersededRef,
    },
    search::SessionFilter,
};

/// The maximum number of rows read at a time.
const ROWS: usize = 1_000;
/// The approximate size of the lines to read at a time.
const BYTES: usize = 4 << 20;
/// The maximum number of event payloads read at a time, because their size is only approximately known.
const PAYLOADS: usize = 64;

/// The rows of one session in a store.
#[derive(Clone, Copy)]
pub(super) struct SessionRows<'a> {
    store: &'a StoreContext,
    key: &'a SessionKey,
}

impl<'a> SessionRows<'a> {
    pub(super) fn new(store: &'a StoreContext, key: &'a SessionKey) -> Self {
        Self { store, key }
    }

    /// The messages from `start` on.
    pub(super) fn messages(self, start: u32) -> RowPages<'a, Message> {
        self.pages(start)
    }

    /// The title as far as the first `count` messages determine it. Messages that can't be read are skipped.
    pub(super) async fn title(self, count: u32) -> Result<TitleFinder> {
        let mut title = TitleFinder::default();
        let mut messages = self.messages(0);
        while !title.is_final() && messages.range.start < count {
            let Some(page) = messages.next().await? else { break };
            let before = page.iter().filter(|message| message.sequence < count);
            before.for_each(|message| title.observe(message.line().fields()));
        }
        Ok(title)
    }

    /// The events from `start` on, without their lines.
    pub(super) fn events(self, start: u32) -> RowPages<'a, Event> {
        self.pages(start)
    }

    /// The messages or events from `start` on.
    pub(super) fn pages<T: SequencedRow>(self, start: u32) -> RowPages<'a, T> {
        let range = SequenceRange { start, limit: T::FIRST };
        RowPages { rows: self, range, is_strict: false, damaged: Vec::new(), row: PhantomData }
    }

    /// The events from `start` on, with their lines.
    pub(super) fn stored_events(self, start: u32) -> StoredEvents<'a> {
        StoredEvents { events: self.events(start).strict(), read: Vec::new() }
    }

    /// The superseded lines.
    pub(super) fn superseded(self, with_data: bool) -> SupersededPages<'a> {
        SupersededPages { rows: self, with_data, after: None }
    }
}

/// Reads messages or events.
pub(super) struct RowPages<'a, T> {
    rows: SessionRows<'a>,
    range: SequenceRange,
    is_strict: bool,
    /// The rows that were skipped because they can't be read.
    pub(super) damaged: Vec<DamagedRow>,
    row: PhantomData<T>,
}

impl<T: SequencedRow> RowPages<'_, T> {
    /// Fails if a row is missing or can't be read. By default, it is skipped.
    pub(super) fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// The next rows; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<T>>> {
        let SessionRows { store, key } = self.rows;
        let page: Vec<T> = if self.is_strict {
            T::read(&*store.backend, key, self.range).await?
        } else {
            store.readable_page(key, self.range, &mut self.damaged).await?
        };
        if self.is_strict {
            self.check(&page)?;
        }
        let Some(last) = page.last() else { return Ok(None) };
        self.range.start = last.sequence().saturating_add(1);
        // The next rows are probably as large as these.
        let bytes: usize = page.iter().map(SequencedRow::bytes).sum();
        self.range.limit = (BYTES / (bytes / page.len()).max(1)).clamp(1, ROWS);
        Ok(Some(page))
    }

    fn check(&self, page: &[T]) -> Result<()> {
        for (row, expected) in page.iter().zip(self.range.start..) {
            if row.sequence() != expected {
                return Err(missing(format!("{} {expected} is missing", T::KIND.as_str())));
            }
        }
        Ok(())
    }
}

/// Reads events with their lines.
pub(super) struct StoredEvents<'a> {
    events: RowPages<'a, Event>,
    /// Events whose lines are not read yet, in reverse order.
    read: Vec<Event>,
}

impl StoredEvents<'_> {
    /// The next events; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<StoredEvent>>> {
        if self.read.is_empty() {
            self.read = self.events.next().await?.unwrap_or_default();
            self.read.reverse();
        }
        let events = self.some();
        if events.is_empty() {
            return Ok(None);
        }
        let SessionRows { store, key } = self.events.rows;
        let sequences: Vec<u32> = events.iter().map(|event| event.sequence).collect();
        let mut payloads: HashMap<u32, Payload> =
            store.backend.event_payloads(key, &sequences).await?.into_iter().collect();
        let stored = |event: Event| {
            // It existed a moment ago.
            let payload = payloads.remove(&event.sequence).ok_or_else(|| changing(key))?;
            let sequence = event.sequence;
            checked(StoredEvent { event, payload }).map_err(|error| error.with("event", sequence))
        };
        events.into_iter().map(stored).collect::<Result<_>>().map(Some)
    }

    /// Takes as many events as have lines of about [`BYTES`] in total, but at least one.
    fn some(&mut self) -> Vec<Event> {
        let (mut events, mut bytes) = (Vec::new(), 0);
        while bytes < BYTES as u64 && events.len() < PAYLOADS {
            let Some(event) = self.read.pop() else { break };
            bytes = bytes.saturating_add(event.data_size_bytes);
            events.push(event);
        }
        events
    }
}

/// Reads superseded lines.
pub(super) struct SupersededPages<'a> {
    rows: SessionRows<'a>,
    with_data: bool,
    after: Option<SupersededRef>,
}

impl SupersededPages<'_> {
    /// The next pieces; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<SupersededPiece>>> {
        /// A piece has at most about a megabyte.
        const WITH_DATA: usize = 8;
        let SessionRows { store, key } = self.rows;
        let query = SupersededQuery::new(Scope::User(key.user_id.clone()))
            .with_filter(SessionFilter::default().with_session(key.session_id.clone()))
            .with_data(self.with_data)
            .with_limit(if self.with_data { WITH_DATA } else { ROWS })
            .with_after(self.after.clone());
        let page = store.backend.list_superseded(&query).await?;
        self.after = page.last().map(SupersededPiece::piece_ref);
        Ok(Some(page).filter(|page| !page.is_empty()))
    }
}

/// The error for a row that is missing.
pub(super) fn missing(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Damaged, message)
}

/// The error for a session that changed while it was read.
pub(super) fn changing(key: &SessionKey) -> Error {
    let message = "the session changes faster than it can be copied";
    Error::new(ErrorKind::Conflict, message).with("session", &key.session_id).retryable()
}

/// The event, if its line is unchanged since it was stored.
pub(super) fn checked(stored: StoredEvent) -> Result<StoredEvent> {
    let StoredEvent { event: Event { digest, .. }, payload } = &stored;
    let line = assemble(payload.clone())?;
    if line.is_some_and(|line| Digest::of(line.as_bytes()) != *digest) {
        return Err(Error::new(
            ErrorKind::Damaged,
            "the stored line of the event is not the one that was written",
        ));
    }
    Ok(stored)
}
