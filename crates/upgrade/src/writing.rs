//! A session that is being written.

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{MessageVectors, StoredSession},
    model::{Session, StoredEvent, Timestamp},
    storage::SessionWriter,
};

use crate::{
    messages::OldMessage,
    sessions::OldSession,
    target::{TargetStore, UPGRADING},
};

/// A session that is being written, or whose rows are only counted.
pub(crate) struct SessionUpgrade {
    pub(crate) session: Session,
    created: Option<Timestamp>,
    updated: Option<Timestamp>,
    writer: Option<SessionWriter>,
    pub(crate) messages: u32,
    pub(crate) events: u32,
    pub(crate) vectors: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    /// The time of the previous row.
    before: Option<Timestamp>,
}

impl SessionUpgrade {
    /// Begins to write a session to a target, in place of the stored one. Without a target, counts.
    pub(crate) fn new(
        old: OldSession,
        target: Option<&TargetStore>,
        replaced: Option<&StoredSession>,
        now: Timestamp,
    ) -> Self {
        let mut session = old.session;
        session.created = old.created.unwrap_or(now);
        session.updated = old.updated.unwrap_or(session.created);
        let writer = target.map(|target| {
            SessionWriter::new(target.backend.clone(), session.clone(), replaced, UPGRADING)
                .with_files(old.files, Vec::new())
                .with_generation(Some(target.generation))
                .with_frees_event_ids(true)
        });
        Self {
            session,
            created: old.created,
            updated: old.updated,
            writer,
            messages: 0,
            events: 0,
            vectors: 0,
            first: None,
            last: None,
            before: None,
        }
    }

    /// The time for a row without one.
    pub(crate) fn last_ts(&self) -> Timestamp {
        self.before.unwrap_or(self.session.created)
    }

    pub(crate) fn message(&mut self, old: OldMessage, vectors: Option<MessageVectors>) {
        self.seen(old.message.ts, old.message.ts_estimated());
        self.messages += 1;
        self.vectors += vectors.as_ref().map_or(0, |vectors| vectors.records().len() as u64);
        if let Some(writer) = &mut self.writer {
            writer.line(old.message, old.line.fields(), &old.texts);
            vectors.into_iter().for_each(|vectors| writer.vectors(vectors));
        }
    }

    pub(crate) fn event(&mut self, event: StoredEvent) {
        self.seen(event.event.ts, event.event.ts_estimated);
        self.events += 1;
        if let Some(writer) = &mut self.writer {
            writer.event(event);
        }
    }

    fn seen(&mut self, ts: Timestamp, estimated: bool) {
        self.before = Some(ts);
        if !estimated {
            self.first = Some(self.first.map_or(ts, |first| first.min(ts)));
            self.last = self.last.max(Some(ts));
        }
    }

    /// Writes the rows if they are large.
    pub(crate) fn flush_when_full(&mut self, target: Option<&TargetStore>) -> Result<()> {
        match (target, &mut self.writer) {
            (Some(target), Some(writer)) => target.wait(writer.flush_when_full()),
            _ => Ok(()),
        }
    }

    /// Writes the rest of the session, with the fields that depend on all rows, and checks that the store contains all.
    pub(crate) fn finish(&mut self, target: Option<&TargetStore>) -> Result<()> {
        let created = self.created.or(self.first).unwrap_or(self.session.created);
        let updated = self.updated.or(self.last).unwrap_or(created).max(created);
        let (Some(target), Some(mut writer)) = (target, self.writer.take()) else { return Ok(()) };
        let (turns, title) = (writer.turns(), writer.title().map(str::to_owned));
        let session = writer.session_mut();
        (session.created, session.updated) = (created, updated);
        if session.first_prompt.is_none() {
            session.first_prompt = title;
        }
        // Messages may not state their turns, although the session states their number.
        if turns > 0 {
            session.turn_count = turns;
        }
        target.wait(writer.finish(None))?;
        self.check(target)
    }

    fn check(&self, target: &TargetStore) -> Result<()> {
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
}
