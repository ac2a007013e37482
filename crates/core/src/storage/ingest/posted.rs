//! Events that a program posted as they happened, before their log came.
//!
//! They are the last events of a session, and are replaced by the lines of a log: lines that the log has, whatever they look
//! like there, are the same events. Those that it lacks stay after its lines.

use std::collections::VecDeque;

use super::{Extent, ReceivedRows, SessionIngest};
use crate::{
    ErrorKind, Result,
    backend::{SequenceRange, StoredSession},
    events::{LoggedEvent, assemble},
    model::{Event, HostId, RawJson, StoredEvent},
    storage::session_rows::SessionRows,
};

/// The number of lines read at a time.
const ROWS: usize = 64;
const UNKNOWN_HOST: &str = "unknown";

impl SessionIngest {
    /// A line as it will be stored: without secrets, if they are masked.
    pub(in crate::storage) async fn masked(&self, line: RawJson) -> Result<RawJson> {
        Ok(self.masker.mask(line).await?.0)
    }

    /// A text as it will be stored.
    pub(in crate::storage) fn masked_text(&self, text: String) -> Result<String> {
        Ok(self.masker.mask_text(Some(text))?.unwrap_or_default())
    }

    /// Finds the posted events from the row `start` on. Lines are not compared with them, but replace them.
    pub(super) async fn find_posted(&mut self, start: u32) -> Result<()> {
        self.posted = PostedEvents::default();
        let count = self.writer.session().event_count;
        let first = self.received.posted.map(|first| first.max(start)).filter(|first| *first < count);
        let Some(first) = first else { return Ok(()) };
        let rows = match self.posted_rows(first).await {
            // They are events like others until they are repaired.
            Err(error) if error.kind() == ErrorKind::Damaged && self.repair.is_some() => return Ok(()),
            rows => rows?,
        };
        self.posted = PostedEvents { first: Some(first), rows, ..PostedEvents::default() };
        self.events.position.hide(first);
        Ok(())
    }

    async fn posted_rows(&self, first: u32) -> Result<VecDeque<PostedRow>> {
        let mut rows = VecDeque::new();
        let mut pages = SessionRows::new(&self.store, &self.target.key).stored_events(first);
        while let Some(page) = pages.next().await? {
            for StoredEvent { event, payload } in page {
                // Only its line tells which event it is.
                let line = assemble(payload)?;
                if let Some(event_of_line) = line.and_then(|line| LoggedEvent::of(&line).ok()) {
                    rows.push_back(PostedRow { row: event.sequence, event: event_of_line, line: None });
                }
            }
        }
        Ok(rows)
    }

    /// Moves the posted events that the next write replaces, and that no line had yet, to the end of the rows, with the same
    /// write: the process may be killed after it.
    pub(super) async fn keep_posted(&mut self) -> Result<()> {
        let next = self.events.position.next();
        let mut end = self.writer.session().event_count.max(next);
        for at in 0..self.posted.rows.len() {
            let replaced = self.posted.rows.get(at).map(|row| row.row).filter(|row| *row < next);
            let Some(row) = replaced else { continue };
            let Some(moved) = self.event_at_row(row, end).await? else { continue };
            self.writer.event(moved);
            if let Some(posted) = self.posted.rows.get_mut(at) {
                posted.row = end;
            }
            end += 1;
            self.events.position.expect_unknown_rows();
        }
        Ok(())
    }

    /// The stored event of a row, as it will be at another one.
    async fn event_at_row(&self, row: u32, to: u32) -> Result<Option<StoredEvent>> {
        let (backend, key) = (&self.store.backend, &self.target.key);
        let event = backend.read_events(key, SequenceRange { start: row, limit: 1 }).await?.pop();
        let payload = backend.event_payloads(key, &[row]).await?.pop();
        Ok(event.zip(payload).map(|(mut event, (_, payload))| {
            if event.has_derived_id() {
                event.event_id = Event::derived_id(&key.session_id, to);
            }
            event.sequence = to;
            StoredEvent::new(event, payload)
        }))
    }

    async fn read_posted(&mut self, rows: &[u32]) -> Result<()> {
        for some in rows.chunks(ROWS) {
            for (sequence, payload) in self.store.backend.event_payloads(&self.target.key, some).await? {
                let found = self.posted.rows.iter_mut().find(|row| row.row == sequence);
                if let Some(row) = found {
                    row.line = assemble(payload)?;
                }
            }
        }
        Ok(())
    }

    /// Ends the events. If the lines have reached the posted ones, writes those that they lack again, after the lines.
    pub(super) async fn end_posted(&mut self) -> Result<()> {
        let (Some(first), Some(mut extent)) = (self.posted.first, self.posted.extent.take()) else {
            return Ok(());
        };
        self.posted.is_ended = true;
        self.events.position.show_hidden();
        let end = self.events.position.next();
        if end >= first || extent == Extent::Whole {
            let posted = self.posted.lines.map_or(end, |first| first.min(end));
            self.received.posted = Some(posted);
            self.write_posted().await?;
            self.received.posted = Some(posted).filter(|first| *first < self.events.position.next());
            extent = Extent::Whole;
        }
        self.end_event_rows(extent);
        Ok(())
    }

    async fn write_posted(&mut self) -> Result<()> {
        let now = self.store.now();
        loop {
            let rows = self.posted.rows.iter().take(ROWS).filter(|row| row.line.is_none());
            let unread: Vec<u32> = rows.map(|row| row.row).collect();
            if self.posted.rows.front().is_some_and(|row| row.line.is_none()) {
                self.read_posted(&unread).await?;
            }
            let Some(row) = self.posted.rows.pop_front() else { return Ok(()) };
            if let Some(line) = row.line {
                self.event_line(line, now).await?;
            }
        }
    }

    /// Lines from this row on were posted to the store that sends them. They replace posted events as the lines of a log do,
    /// and are posted ones themselves.
    pub(in crate::storage) fn set_posted_lines(&mut self, first: Option<u32>) {
        self.posted.lines = first;
    }

    /// If rows after posted events have changed, fewer of them are left.
    pub(super) fn forget_posted(&mut self) {
        if self.posted.first.is_none() && self.events.position.touched() {
            let (end, count) = (self.events.position.next(), self.writer.session().event_count);
            self.received.posted =
                self.received.posted.map(|first| first.max(end)).filter(|first| *first < count);
        }
    }
}

impl StoredSession {
    /// The number of its events, not counting the posted ones at the end that no log has replaced yet.
    #[must_use]
    pub fn events_of_logs(&self) -> u32 {
        let count = self.session.event_count;
        ReceivedRows::of(self).posted.map_or(count, |first| first.min(count))
    }
}

/// Posted events that have not appeared among the lines yet.
#[derive(Debug, Default)]
pub(super) struct PostedEvents {
    /// The row of the first one; `None` if lines are not compared with them.
    pub(super) first: Option<u32>,
    /// The row from which on the lines were posted too.
    lines: Option<u32>,
    /// How the lines of the log ended.
    pub(super) extent: Option<Extent>,
    rows: VecDeque<PostedRow>,
    is_ended: bool,
}

#[derive(Debug)]
struct PostedRow {
    row: u32,
    event: LoggedEvent,
    /// Its line, if it is about to be written again.
    line: Option<RawJson>,
}

impl PostedEvents {
    /// Removes the event of this line of a log, if it is there: the same one, or else one of the same time that was
    /// written by another program.
    pub(super) fn take(&mut self, line: &RawJson) {
        if self.is_ended || self.rows.is_empty() {
            return;
        }
        let Ok(event) = LoggedEvent::of(line) else { return };
        let at = self.rows.iter().position(|posted| posted.event.is(&event));
        let at = at.or_else(|| self.rows.iter().position(|posted| posted.event.is_in_other_log(&event)));
        if let Some(at) = at {
            self.rows.remove(at);
        }
    }
}

/// The host of a session of which only events were posted, until its machine sends it.
///
/// # Errors
///
/// None: the name is valid.
pub(in crate::storage) fn unknown_host() -> Result<HostId> {
    HostId::new(UNKNOWN_HOST)
}

/// Whether this host is only that of posted events.
pub(in crate::storage) fn is_unknown(host: &HostId) -> bool {
    host.as_str() == UNKNOWN_HOST
}
