//! Reads all rows of a session, some at a time.

use std::collections::HashMap;

use super::{super::salvage::checked, digest::Digester};
use crate::{
    Error, ErrorKind, Result, Scope,
    backend::{SequenceRange, StorageBackend, StoredSession, SupersededQuery},
    model::{Event, Message, Payload, SessionKey, StoredEvent, SupersededPiece, SupersededRef},
    search::SessionFilter,
};

/// The maximum number of rows read at a time, and of messages read first: few, because lines may be long.
const ROWS: usize = 200;
const FIRST: usize = 16;
/// The approximate size of the lines to read at a time.
const BYTES: usize = 4 << 20;
/// The maximum number of event payloads read at a time, because their size is only approximately known.
const PAYLOADS: usize = 64;

/// The rows of one session in a store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    backend: &'a dyn StorageBackend,
    key: &'a SessionKey,
}

impl<'a> Rows<'a> {
    pub(super) fn new(backend: &'a dyn StorageBackend, key: &'a SessionKey) -> Self {
        Self { backend, key }
    }

    /// The messages from `start` on.
    pub(super) fn messages(self, start: u32) -> Messages<'a> {
        Messages { rows: self, range: SequenceRange { start, limit: FIRST } }
    }

    /// The events from `start` on.
    pub(super) fn events(self, start: u32) -> Events<'a> {
        Events { rows: self, start, read: Vec::new() }
    }

    /// The superseded lines.
    pub(super) fn superseded(self, with_data: bool) -> Superseded<'a> {
        Superseded { rows: self, with_data, after: None }
    }

    /// The digest of all rows and the record of the session.
    pub(super) async fn digest(self, stored: &StoredSession) -> Result<String> {
        let mut digester = Digester::default();
        digester.session(&stored.session)?;
        digester.files(&stored.metadata_files);
        digester.skipped(&stored.skipped)?;
        let mut messages = self.messages(0);
        while let Some(page) = messages.next().await? {
            page.iter().for_each(|message| digester.message(message));
        }
        let mut events = self.events(0);
        while let Some(page) = events.next().await? {
            page.iter().try_for_each(|event| digester.event(event))?;
        }
        let mut superseded = self.superseded(true);
        while let Some(page) = superseded.next().await? {
            page.iter().for_each(|piece| digester.superseded(piece));
        }
        Ok(digester.digits())
    }
}

/// Reads messages.
pub(super) struct Messages<'a> {
    rows: Rows<'a>,
    range: SequenceRange,
}

impl Messages<'_> {
    /// The next messages; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Message>>> {
        let page = self.rows.backend.read_messages(self.rows.key, self.range).await?;
        let bytes: usize = page.iter().map(|message| message.raw.as_bytes().len()).sum();
        for message in &page {
            follows("message", &mut self.range.start, message.sequence)?;
        }
        // The next lines are probably as long as these.
        let of_one = (bytes / page.len().max(1)).max(1);
        self.range.limit = (BYTES / of_one).clamp(1, ROWS);
        Ok(Some(page).filter(|page| !page.is_empty()))
    }
}

/// Reads events with their lines.
pub(super) struct Events<'a> {
    rows: Rows<'a>,
    start: u32,
    /// Events whose lines are not read yet, in reverse order.
    read: Vec<Event>,
}

impl Events<'_> {
    /// The next events; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<StoredEvent>>> {
        let Rows { backend, key } = self.rows;
        if self.read.is_empty() {
            self.read = backend.read_events(key, SequenceRange { start: self.start, limit: ROWS }).await?;
            for event in &self.read {
                follows("event", &mut self.start, event.sequence)?;
            }
            self.read.reverse();
        }
        let events = self.some();
        if events.is_empty() {
            return Ok(None);
        }
        let sequences: Vec<u32> = events.iter().map(|event| event.sequence).collect();
        let mut payloads: HashMap<u32, Payload> =
            backend.event_payloads(key, &sequences).await?.into_iter().collect();
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
pub(super) struct Superseded<'a> {
    rows: Rows<'a>,
    with_data: bool,
    after: Option<SupersededRef>,
}

impl Superseded<'_> {
    /// The next pieces; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<SupersededPiece>>> {
        /// A piece has at most about a megabyte.
        const WITH_DATA: usize = 8;
        let Rows { backend, key } = self.rows;
        let query = SupersededQuery::new(Scope::User(key.user_id.clone()))
            .with_filter(SessionFilter::default().with_session(key.session_id.clone()))
            .with_data(self.with_data)
            .with_limit(if self.with_data { WITH_DATA } else { ROWS })
            .with_after(self.after.clone());
        let page = backend.list_superseded(&query).await?;
        self.after = page.last().map(SupersededPiece::piece_ref);
        Ok(Some(page).filter(|page| !page.is_empty()))
    }
}

/// Checks that no row is missing before the one with this sequence.
fn follows(what: &str, next: &mut u32, sequence: u32) -> Result<()> {
    if *next != sequence {
        return Err(missing(format!("{what} {next} is missing")));
    }
    *next = sequence.saturating_add(1);
    Ok(())
}

/// The error for a row that is missing in the source.
pub(super) fn missing(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Damaged, message)
}

/// The error for a session that changed while it was read.
pub(super) fn changing(key: &SessionKey) -> Error {
    let message = "the session changes faster than it can be copied";
    Error::new(ErrorKind::Conflict, message).with("session", &key.session_id).retryable()
}
