//! A session that is being written.

use std::collections::BTreeSet;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{MessageVectors, SessionChange, StorageBackendExt, Version},
    model::{Session, StoredEvent, Timestamp},
};

use crate::{messages::OldMessage, sessions::OldSession, target::Target};

/// The approximate size of the rows in one write, in bytes.
const FLUSH_BYTES: usize = 16 * 1024 * 1024;
/// The maximum number of messages in one write.
const FLUSH_MESSAGES: usize = 256;

/// A session that is being written.
pub(crate) struct Writing {
    pub(crate) session: Session,
    created: Option<Timestamp>,
    updated: Option<Timestamp>,
    version: Option<Version>,
    change: SessionChange,
    pending_vectors: Vec<MessageVectors>,
    bytes: usize,
    pub(crate) messages: u32,
    pub(crate) events: u32,
    pub(crate) vectors: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    /// The time of the previous row.
    before: Option<Timestamp>,
    turns: BTreeSet<u32>,
}

impl Writing {
    /// Begins to write a session. If it has a `version`, only its sync state remains.
    pub(crate) fn new(old: OldSession, version: Option<Version>, now: Timestamp) -> Self {
        let mut session = old.session;
        session.created = old.created.unwrap_or(now);
        session.updated = old.updated.unwrap_or(session.created);
        let mut change = SessionChange::new(session.clone(), None);
        change.metadata_files = Some(old.files);
        if version.is_some() {
            (change.messages.truncate, change.events.truncate) = (Some(0), Some(0));
        }
        Self {
            session,
            created: old.created,
            updated: old.updated,
            version,
            change,
            pending_vectors: Vec::new(),
            bytes: 0,
            messages: 0,
            events: 0,
            vectors: 0,
            first: None,
            last: None,
            before: None,
            turns: BTreeSet::new(),
        }
    }

    /// The time for a row without one.
    pub(crate) fn last_ts(&self) -> Timestamp {
        self.before.unwrap_or(self.session.created)
    }

    pub(crate) fn message(&mut self, old: OldMessage, vectors: Option<MessageVectors>) {
        self.seen(old.message.ts, old.message.ts_estimated());
        self.turns.extend(old.message.turn);
        if self.session.first_prompt.is_none() {
            self.session.first_prompt = old.first_prompt;
        }
        self.messages += 1;
        self.bytes += old.message.raw.as_bytes().len();
        self.bytes += vectors.as_ref().map_or(0, MessageVectors::vector_bytes);
        self.vectors += vectors.as_ref().map_or(0, |vectors| vectors.records.len() as u64);
        self.change.messages.put.push(old.message);
        self.pending_vectors.extend(vectors);
    }

    pub(crate) fn event(&mut self, event: StoredEvent) {
        self.seen(event.event.ts, event.event.ts_estimated);
        self.events += 1;
        self.bytes += usize::try_from(event.event.data_size_bytes).unwrap_or(usize::MAX / 2) + 512;
        self.change.events.put.push(event);
    }

    fn seen(&mut self, ts: Timestamp, estimated: bool) {
        self.before = Some(ts);
        if !estimated {
            self.first = Some(self.first.map_or(ts, |first| first.min(ts)));
            self.last = self.last.max(Some(ts));
        }
    }

    /// Sets the fields that depend on all rows.
    pub(crate) fn describe(&mut self) {
        let session = &mut self.session;
        session.created = self.created.or(self.first).unwrap_or(session.created);
        session.updated = self.updated.or(self.last).unwrap_or(session.created).max(session.created);
        (session.message_count, session.event_count) = (self.messages, self.events);
        // Messages may not state their turns, although the session states their number.
        if !self.turns.is_empty() {
            session.turn_count = self.turns.len() as u32;
        }
    }

    /// Checks that the store contains what was written.
    pub(crate) fn check(&self, target: &Target) -> Result<()> {
        let rows = target.wait(target.backend.session_rows(&self.session.key()))?;
        let expected = (u64::from(self.messages), u64::from(self.events), self.vectors);
        let found = (rows.messages.count, rows.events.count, rows.vectors);
        if found == expected {
            return Ok(());
        }
        let message =
            format!("the new store does not contain what was written: {found:?} rows, expected {expected:?}");
        Err(Error::new(ErrorKind::StorageIo, message).with("session", &self.session.session_id))
    }

    /// [`flush`](Self::flush) if the buffer is full.
    pub(crate) fn flush_when_full(&mut self, target: Option<&Target>) -> Result<()> {
        let is_full = self.bytes >= FLUSH_BYTES || self.change.messages.put.len() >= FLUSH_MESSAGES;
        if is_full { self.flush(target) } else { Ok(()) }
    }

    /// Writes the buffered rows, or drops them if there is no target.
    pub(crate) fn flush(&mut self, target: Option<&Target>) -> Result<()> {
        let mut session = self.session.clone();
        (session.message_count, session.event_count) = (self.messages, self.events);
        let mut change = SessionChange::new(session, self.version.take());
        let waiting = SessionChange::new(self.session.clone(), None);
        let waiting = std::mem::replace(&mut self.change, waiting);
        (change.metadata_files, change.messages, change.events) =
            (waiting.metadata_files, waiting.messages, waiting.events);
        let vectors = std::mem::take(&mut self.pending_vectors);
        self.bytes = 0;
        let Some(target) = target else { return Ok(()) };
        let key = self.session.key();
        self.version = Some(target.wait(target.backend.write_one(change))?);
        if !vectors.is_empty() {
            target.wait(target.backend.write_vectors(&key, target.generation, vectors))?;
            // The session may have a new version now.
            let stored = target.wait(target.backend.get_session(&key))?;
            self.version = stored.map(|stored| stored.version);
        }
        Ok(())
    }
}
