//! Checks the events of a session.

use super::{Checking, Sequences};
use crate::{
    Result,
    backend::SequenceRange,
    model::{DifferenceKind, Event, RawJson, RowKind},
    storage::ingest::{event_id_of_line, looks_derived},
};

/// Number of events read at a time.
const PAGE: usize = 1_000;
/// The payloads of events are read up to this many bytes at a time.
const PAYLOAD_BYTES: u64 = 4 << 20;

impl Checking<'_> {
    pub(super) async fn events(&mut self) -> Result<()> {
        let mut sequences = Sequences::default();
        let mut range = SequenceRange { start: 0, limit: PAGE };
        loop {
            let mut damaged = Vec::new();
            let page = self.store.readable_page::<Event>(&self.key, range, &mut damaged).await;
            for sequence in self.find_damaged(damaged) {
                sequences.add(sequence);
            }
            let Some(page) = self.unless_damaged(RowKind::Event, page)? else { return Ok(()) };
            let Some(last) = page.last() else { break };
            range.start = last.sequence.saturating_add(1);
            for event in &page {
                sequences.add(event.sequence);
                self.event_id(event);
            }
            self.payloads(&page).await?;
            self.store.backend.yield_to_searches().await;
        }
        self.find_gaps(RowKind::Event, &sequences, self.stored.session.event_count);
        self.check.gaps.events = sequences.gaps;
        Ok(())
    }

    /// Reads the lines of events and compares them with their digests.
    async fn payloads(&mut self, mut events: &[Event]) -> Result<()> {
        self.check.events += events.len() as u64;
        while !events.is_empty() {
            let mut bytes = 0_u64;
            let fit = events.iter().take_while(|event| {
                bytes = bytes.saturating_add(event.data_size_bytes);
                bytes <= PAYLOAD_BYTES
            });
            let (some, rest) = events.split_at(fit.count().max(1));
            events = rest;
            let mut damaged = Vec::new();
            let lines = self.store.readable_payloads(&self.key, some, &mut damaged).await;
            self.find_damaged(damaged);
            if let Some(lines) = self.unless_damaged(RowKind::Event, lines)? {
                for event in some {
                    if let Some(Some(line)) = lines.get(&event.sequence) {
                        self.stated_id(event, line);
                    }
                }
                self.check.events_without_line += lines.values().filter(|line| line.is_none()).count() as u64;
            }
        }
        Ok(())
    }

    /// Compares the id of an event with its address. An id from a line can be anything but a derived id.
    fn event_id(&mut self, event: &Event) {
        if event.has_derived_id() {
            return;
        }
        let own = Event::derived_id(&event.session_id, event.sequence);
        if looks_derived(&event.event_id) || is_one_byte_off(&event.event_id, &own) {
            let reason = format!("its id is {} instead of {own}", event.event_id);
            self.find_at(DifferenceKind::Damaged, RowKind::Event, event.sequence, reason);
            self.check.repair.event_ids.insert(event.sequence);
        }
    }

    /// Compares an id that is not derived with the one in the line of the event.
    fn stated_id(&mut self, event: &Event, line: &RawJson) {
        // In a session that was not synced, the ids that the library was given are right.
        let is_synced = self.stored.sync_state.is_some();
        if !is_synced || event.has_derived_id() || self.check.repair.event_ids.contains(&event.sequence) {
            return;
        }
        let stated = event_id_of_line(Some(line), &event.session_id, event.sequence);
        if stated != event.event_id && !looks_derived(&stated) {
            let reason = format!("its id is {}; its line states {stated}", event.event_id);
            self.find_at(DifferenceKind::Damaged, RowKind::Event, event.sequence, reason);
            self.check.repair.event_ids.insert(event.sequence);
        }
    }
}

/// Whether two texts differ in a single byte.
fn is_one_byte_off(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).filter(|(a, b)| a != b).count() == 1
}
