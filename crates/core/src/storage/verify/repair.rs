//! Derives data again that a verification found to be wrong, from rows that are right.

use std::collections::{BTreeSet, HashSet};

use super::{SessionCheck, messages::ComparedMessages};
use crate::{
    Result,
    backend::{MessagesToEmbed, SequenceRange, SessionChange, StorageBackendExt, StrayRows},
    events,
    model::{Digest, Event, HostId, Message, ProjectSlug, RowKind, Session, SessionKey, StoredEvent},
    storage::{
        damage::{Readable, SequencedRow},
        embed::EmbedReport,
        ingest::event_id_of_line,
        session_writer::SessionWriter,
        store::{StoredVectors, Verification},
    },
};

/// Data of a session that can be derived again from its rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowRepair {
    /// Whether counts of the session are wrong.
    pub counts: bool,
    /// Whether some rows belong to nothing.
    pub stray: bool,
    /// Events with an id of another event, or another one than their line states.
    pub event_ids: BTreeSet<u32>,
    /// Messages with another turn than their lines have.
    pub turns: BTreeSet<u32>,
    /// Messages that lack vectors.
    pub vectors_to_make: BTreeSet<u32>,
    /// Messages with vectors that are wrong.
    pub vectors_to_remove: BTreeSet<u32>,
    /// Messages that begin a turn whose vector is missing or wrong.
    pub turns_to_embed: BTreeSet<u32>,
}

impl RowRepair {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn changes_rows(&self) -> bool {
        let Self { counts, event_ids, turns, vectors_to_remove, .. } = self;
        *counts || !event_ids.is_empty() || !turns.is_empty() || !vectors_to_remove.is_empty()
    }
}

impl Verification<'_> {
    /// Derives again what `check` found to be wrong in a session: counts, turns, and vectors, which become pending.
    /// Embeds turns at once, if there is an embedding provider. Removes rows that belong to nothing. Does not change
    /// damaged and missing rows, nor counts if rows are missing.
    ///
    /// # Errors
    ///
    /// `Conflict` (retryable) if another process writes the session at the same time; errors of the backend.
    pub async fn repair_session(self, key: &SessionKey, check: &SessionCheck) -> Result<()> {
        let repair = &check.repair;
        if repair.is_empty() {
            return Ok(());
        }
        if repair.stray {
            self.store.backend.remove_stray_rows(key).await?;
        }
        // A message that is written again has no vectors.
        let is_written = |sequence: &u32| {
            let repaired = repair.turns.contains(sequence) || repair.vectors_to_remove.contains(sequence);
            repaired && !check.damaged[0].contains(sequence)
        };
        if repair.changes_rows() {
            self.write_again(key, check, is_written).await?;
        }
        let to_make: Vec<u32> =
            repair.vectors_to_make.iter().copied().filter(|sequence| !is_written(sequence)).collect();
        if !to_make.is_empty() {
            self.store.backend.mark_pending(key, MessagesToEmbed::At(to_make)).await?;
        }
        if !repair.turns_to_embed.is_empty() {
            let users = repair.turns_to_embed.iter().copied().collect();
            self.store.backend.mark_pending(key, MessagesToEmbed::TurnsAt(users)).await?;
            let mut report = EmbedReport::default();
            let session = Some(&key.session_id);
            StoredVectors::new(self.store)
                .embed_current(&key.user_id, session, true, &mut report, &mut |_| {})
                .await?;
            report.failure.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Writes what an ingest of the stored lines would write: the turns of these messages, which lose their vectors,
    /// the ids of events, and if no row is missing, the counts.
    async fn write_again(
        self,
        key: &SessionKey,
        check: &SessionCheck,
        is_written: impl Fn(&u32) -> bool,
    ) -> Result<()> {
        let Some(stored) = self.store.backend.get_session(key).await? else { return Ok(()) };
        let mut writer =
            SessionWriter::of_stored(self.store.backend.clone(), &stored).with_frees_event_ids(true);
        let mut rows = ComparedMessages::new(self.store, key, &stored);
        while let Some(page) = rows.next().await? {
            for (mut message, derived) in page {
                let is_written = is_written(&message.sequence);
                if is_written {
                    message.turn = derived.turn;
                }
                writer.derived.turns.extend(message.turn);
                if is_written {
                    writer.message(message);
                    writer.flush_when_full().await?;
                }
            }
        }
        let event_ids = check.repair.event_ids.difference(&check.damaged[1]);
        self.write_event_ids(key, event_ids, &mut writer).await?;
        if check.gaps.is_empty() {
            let counts = self.store.backend.session_rows(key).await?;
            // The turns of messages that can't be read are unknown.
            let turns = Some(writer.turns()).filter(|_| rows.pages.damaged.is_empty());
            let session = writer.session_mut();
            session.message_count = u32::try_from(counts.messages.count).unwrap_or(u32::MAX);
            session.event_count = u32::try_from(counts.events.count).unwrap_or(u32::MAX);
            session.turn_count = turns.unwrap_or(session.turn_count);
        }
        writer.finish(None).await.map(drop)
    }

    /// Writes events with the ids that their lines state, or if other events have these, with derived ids.
    async fn write_event_ids(
        self,
        key: &SessionKey,
        sequences: impl Iterator<Item = &u32>,
        writer: &mut SessionWriter,
    ) -> Result<()> {
        for sequence in sequences {
            let range = SequenceRange { start: *sequence, limit: 1 };
            let found: Vec<Event> = self.store.readable_page(key, range, &mut Vec::new()).await?;
            let payload = self.store.backend.event_payloads(key, &[*sequence]).await?.pop();
            let event = found.into_iter().find(|found| found.sequence == *sequence);
            let Some((mut event, (_, payload))) = event.zip(payload) else { continue };
            let line = events::assemble(payload.clone()).ok().flatten();
            event.event_id = event_id_of_line(line.as_ref(), &key.session_id, *sequence);
            writer.event(StoredEvent { event, payload });
            writer.flush_when_full().await?;
        }
        Ok(())
    }

    /// Gives rows without a session a session again, so that they can be read. If `others` have all of them, with the
    /// same sequences and lines, they are copies that damage made, and are removed. A session that was created here is
    /// in no project.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn adopt_rows(self, key: &SessionKey, host: &HostId, others: &[SessionKey]) -> Result<()> {
        self.store.backend.remove_stray_rows(key).await?;
        let stray = self.store.backend.stray_rows(&key.user_id, None).await?;
        if !stray.contains(&StrayRows::Session(key.clone())) {
            return Ok(());
        }
        self.recreate_session(key, host, &ProjectSlug::unnamed()).await?;
        let mut copies = (self.lines_of::<Message>(key).await?, self.lines_of::<Event>(key).await?);
        let rows = self.store.backend.session_rows(key).await?;
        let is_readable =
            (rows.messages.count, rows.events.count) == (copies.0.len() as u64, copies.1.len() as u64);
        for other in others.iter().filter(|other| *other != key) {
            let (messages, events) =
                (self.lines_of::<Message>(other).await?, self.lines_of::<Event>(other).await?);
            copies.0.retain(|line| !messages.contains(line));
            copies.1.retain(|line| !events.contains(line));
        }
        if is_readable && copies.0.is_empty() && copies.1.is_empty() {
            self.store.backend.delete_session(key).await?;
        }
        Ok(())
    }

    /// The sequences and digests of the readable rows of a session.
    async fn lines_of<T: SequencedRow>(self, key: &SessionKey) -> Result<HashSet<(u32, Digest)>> {
        let rows: Readable<T> = self.store.readable_rows(key, 0, usize::MAX).await?;
        Ok(rows.rows.iter().map(|row| (row.sequence(), row.digest())).collect())
    }

    /// Creates the record of a session that has stored rows but no record. A sync of its files completes it.
    ///
    /// # Errors
    ///
    /// `Conflict` if it exists; errors of the backend.
    pub async fn recreate_session(
        self,
        key: &SessionKey,
        host: &HostId,
        project: &ProjectSlug,
    ) -> Result<()> {
        let session = Session::new(key.clone(), host.clone(), project.clone(), self.store.now());
        self.store.backend.write_one(SessionChange::new(session, None)).await?;
        self.write_again(key, &SessionCheck::default(), |_| false).await
    }
}

impl SessionCheck {
    /// The damaged rows of a kind.
    #[must_use]
    pub fn damaged_of(&self, row: RowKind) -> &BTreeSet<u32> {
        let [messages, events] = &self.damaged;
        if row == RowKind::Message { messages } else { events }
    }
}
