//! Searches events, and stores and reads event lines.

use std::collections::HashMap;

use serde::Serialize;

use super::{
    damage::{Readable, SequencedRow as _, damaged_event, damaged_payload},
    ingest::{IngestReport, IngestTarget},
    read_meter::fitting,
    store::{Ingestion, RowReading, StoreContext},
    transcript::{SyncLines, all_good},
};
use crate::{
    Error, ErrorKind, Result, Scope,
    backend::{SequenceRange, StorageBackendExt},
    events::assemble,
    model::{DamagedRow, Digest, Event, Payload, RawJson, SessionId, SessionKey},
    search::EventSearchOptions,
};

/// Which events of a session to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventLines {
    /// Only events after this sequence. Default: all.
    pub after_sequence: Option<u32>,
    /// Maximum number of events. Default: 1,000.
    pub limit: usize,
    /// Whether to read the original lines too. Default: no.
    pub with_payload: bool,
    /// Stops before the payloads exceed this size in bytes, but after at least one event. So a page with fewer events
    /// than `limit` need not be the last one; only an empty page means the end. Default: no maximum.
    pub max_bytes: Option<u64>,
}

impl Default for EventLines {
    fn default() -> Self {
        Self { after_sequence: None, limit: 1_000, with_payload: false, max_bytes: None }
    }
}

impl EventLines {
    setters! {
        /// Continues after a sequence.
        after(after_sequence: Option<u32>);
        /// Sets the maximum number of events.
        with_limit(limit: usize);
        /// Sets whether to read the original lines.
        with_payload(with_payload: bool);
        /// Sets the maximum size of the payloads.
        with_max_bytes(max_bytes: Option<u64>);
    }
}

impl EventLines {
    /// The approximate size of these events in memory.
    fn bytes(&self, page: &[Event]) -> usize {
        let size = |event: &Event| {
            let payload = if self.with_payload { in_memory(event.data_size_bytes) } else { 0 };
            event.bytes().saturating_add(payload)
        };
        page.iter().map(size).fold(0, usize::saturating_add)
    }
}

/// A size as far as memory can have it.
fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// An event, with its original line if requested.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventLine {
    /// The fields.
    #[serde(flatten)]
    pub event: Event,
    /// The original line, if requested and stored.
    #[serde(skip)]
    pub raw: Option<RawJson>,
}

impl RowReading<'_> {
    /// Returns a page of matching events, newest first. [`Self::get_event_lines`] returns their payloads.
    ///
    /// # Errors
    ///
    /// `Validation` if an option is out of range; errors of the backend.
    pub async fn search_events(self, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>> {
        self.readable_events(scope, options).await?.whole()
    }

    /// [`Self::search_events`] without the events that can't be read.
    ///
    /// # Errors
    ///
    /// As [`Self::search_events`], except `Damaged`.
    pub async fn readable_events(
        self,
        scope: &Scope,
        options: &EventSearchOptions,
    ) -> Result<Readable<Event>> {
        options.validate()?;
        let (mut options, mut damaged) = (options.clone(), Vec::new());
        loop {
            let error = match self.store.backend.search_events(scope, &options).await {
                Ok(rows) => return self.store.masked_events(Readable { rows, damaged }),
                Err(error) => error,
            };
            let new = damaged_event(&error).filter(|(event, _)| !options.without.contains(event));
            let Some((event, row)) = new else { return Err(error) };
            options.without.push(event);
            damaged.push(row);
        }
    }

    /// Events of a session, in order.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`; `Damaged` if one can't be read; errors of the backend.
    pub async fn get_event_lines(
        self,
        scope: &Scope,
        session_id: &SessionId,
        lines: EventLines,
    ) -> Result<Vec<EventLine>> {
        self.readable_event_lines(scope, session_id, lines).await?.whole()
    }

    /// [`Self::get_event_lines`] without the events that can't be read. An event whose line can't be read is
    /// left out if lines are requested. There may be fewer than `limit` if the storage
    /// [counts them](crate::SessionStorage::with_read_meter).
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`; errors of the backend.
    pub async fn readable_event_lines(
        self,
        scope: &Scope,
        session_id: &SessionId,
        lines: EventLines,
    ) -> Result<Readable<EventLine>> {
        let key = self.store.existing_session(scope, session_id).await?.key();
        let most = self.store.page_bytes() as u64;
        let max_bytes = if lines.with_payload && most < lines.max_bytes.unwrap_or(u64::MAX) {
            Some(most)
        } else {
            lines.max_bytes
        };
        let lines = EventLines { max_bytes, ..lines };
        let mut found: Readable<EventLine> = Readable::default();
        let mut start = lines.after_sequence.map_or(0, |sequence| sequence.saturating_add(1));
        let (mut taken, mut is_full) = (0, false);
        while found.rows.len() < lines.limit && !is_full {
            let range = SequenceRange { start, limit: lines.limit - found.rows.len() };
            let mut page: Vec<Event> = self.store.readable_page(&key, range, &mut found.damaged).await?;
            let sizes = page.iter().map(|event| in_memory(event.data_size_bytes));
            let count = fitting(sizes, &mut taken, lines.max_bytes.map_or(usize::MAX, in_memory));
            is_full = count < page.len();
            page.truncate(count);
            let Some(last) = page.last() else { break };
            start = last.sequence.saturating_add(1);
            self.store.count_read(lines.bytes(&page))?;
            if !lines.with_payload {
                found.rows.extend(page.into_iter().map(|event| EventLine { event, raw: None }));
                continue;
            }
            let mut payloads = self.store.readable_payloads(&key, &page, &mut found.damaged).await?;
            let with_line = |event: Event| Some(EventLine { raw: payloads.remove(&event.sequence)?, event });
            found.rows.extend(page.into_iter().filter_map(with_line));
        }
        self.store.masked_event_lines(found).await
    }

    /// The line of an event in `scope`, if it is stored, or the damaged row if it can't be read.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if its session is not in `scope`; errors of the backend.
    pub async fn readable_event_payload(
        self,
        scope: &Scope,
        event: &Event,
    ) -> Result<Result<Option<RawJson>, DamagedRow>> {
        let key = self.store.existing_session(scope, &event.session_id).await?.key();
        let mut damaged = Vec::new();
        self.store.count_read(in_memory(event.data_size_bytes))?;
        let mut line = self.store.readable_payloads(&key, std::slice::from_ref(event), &mut damaged).await?;
        if let Some(row) = damaged.pop() {
            return Ok(Err(row));
        }
        let raw = line.remove(&event.sequence).flatten();
        let found = Readable { rows: vec![EventLine { event: event.clone(), raw }], damaged };
        let masked = self.store.masked_event_lines(found).await?.rows.pop();
        Ok(Ok(masked.and_then(|line| line.raw)))
    }
}

impl Ingestion<'_> {
    /// Stores event lines. Either all of them are stored or nothing.
    ///
    /// # Errors
    ///
    /// `Validation` with the line number if a line is invalid, or if `start_sequence` is beyond the end; errors of
    /// the backend.
    pub async fn sync_event_lines(self, target: &IngestTarget, lines: SyncLines) -> Result<IngestReport> {
        self.store
            .retry_conflicts(|| async {
                let mut ingest = self.ingest(target.clone()).await?.all_at_once();
                ingest.begin_events(lines.start_sequence).await?;
                let seen = lines.seen.unwrap_or_else(|| self.store.now());
                for (index, line) in lines.lines.iter().enumerate() {
                    all_good(index, ingest.event_line(line.clone(), seen).await?)?;
                }
                ingest.end_events(lines.extent);
                ingest.commit().await
            })
            .await
            .map_err(|error| error.with_operation("sync_event_lines"))
    }
}

impl StoreContext {
    /// The stored lines of these events, without those that can't be read.
    pub(super) async fn readable_payloads(
        &self,
        key: &SessionKey,
        events: &[Event],
        damaged: &mut Vec<DamagedRow>,
    ) -> Result<HashMap<u32, Option<RawJson>>> {
        match self.payloads(key, events).await {
            Err(error) if error.kind() == ErrorKind::Damaged => {}
            payloads => return payloads,
        }
        let mut readable = HashMap::new();
        for event in events {
            match self.payloads(key, std::slice::from_ref(event)).await {
                Ok(payload) => readable.extend(payload),
                Err(error) => {
                    let row = SequenceRange { start: event.sequence, limit: 1 };
                    let digests = self.backend.event_digests(key, row).await;
                    if digests.is_ok_and(|digests| digests.first() != Some(&event.digest)) {
                        // It was replaced after it was read, and is another event now.
                        continue;
                    }
                    damaged.push(damaged_payload(key, event.sequence, &error).ok_or(error)?);
                }
            }
        }
        Ok(readable)
    }

    /// The stored lines of these events.
    async fn payloads(&self, key: &SessionKey, events: &[Event]) -> Result<HashMap<u32, Option<RawJson>>> {
        let sequences: Vec<u32> = events.iter().map(|event| event.sequence).collect();
        let mut payloads: HashMap<u32, Payload> =
            self.backend.event_payloads(key, &sequences).await?.into_iter().collect();
        let mut lines = HashMap::new();
        for event in events {
            let line = payloads.remove(&event.sequence).map(assemble).transpose()?.flatten();
            if line.as_ref().is_some_and(|line| Digest::of(line.as_bytes()) != event.digest) {
                return Err(Error::new(
                    ErrorKind::Damaged,
                    "the stored line of an event is not what was written",
                ));
            }
            lines.insert(event.sequence, line);
        }
        Ok(lines)
    }
}
