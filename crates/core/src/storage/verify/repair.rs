//! Derives data again that a verification found to be wrong, from rows that are right.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::SessionCheck;
use crate::{
    Result, SessionStorage,
    backend::{MessagesToEmbed, SequenceRange, SessionChange, StorageBackendExt, StrayRows},
    events,
    model::{
        Digest, Event, HostId, Message, MessageRef, Payload, ProjectSlug, RowKind, Session, SessionKey,
        StoredEvent,
    },
    storage::{Readable, damage::SequencedRow, ingest::stated_id, session_writer::SessionWriter},
};

/// Number of messages written at a time.
const WRITTEN: usize = 64;

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
    /// Messages with another turn, and the right one.
    pub turns: BTreeMap<u32, Option<u32>>,
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
}

impl SessionStorage {
    /// Derives again what `check` found to be wrong in a session: counts, turns, and vectors, which become pending.
    /// Embeds turns at once, if there is an embedding provider. Removes rows that belong to nothing. Does not change damaged and missing rows, nor counts if rows are missing.
    ///
    /// # Errors
    ///
    /// `Conflict` (retryable) if another process writes the session at the same time; errors of the backend.
    pub async fn repair_session(&self, key: &SessionKey, check: &SessionCheck) -> Result<()> {
        let repair = &check.repair;
        if repair.is_empty() {
            return Ok(());
        }
        if repair.stray {
            self.backend.remove_stray_rows(key).await?;
        }
        // A message that is written again has no vectors.
        let written: BTreeSet<u32> = repair.turns.keys().chain(&repair.vectors_to_remove).copied().collect();
        let written: Vec<u32> = written.difference(&check.damaged[0]).copied().collect();
        for sequences in written.chunks(WRITTEN) {
            self.write_again(key, sequences, repair).await?;
        }
        let to_make: Vec<u32> =
            repair.vectors_to_make.iter().filter(|sequence| !written.contains(sequence)).copied().collect();
        if !to_make.is_empty() {
            self.backend.mark_pending(key, MessagesToEmbed::At(to_make)).await?;
        }
        let event_ids: Vec<u32> = repair.event_ids.difference(&check.damaged[1]).copied().collect();
        for sequences in event_ids.chunks(WRITTEN) {
            self.write_with_right_ids(key, sequences).await?;
        }
        if !repair.turns_to_embed.is_empty() {
            let embedded = self.embed_turns_again(key, &repair.turns_to_embed).await?;
            embedded.failure.map_or(Ok(()), Err)?;
        }
        if (repair.counts || !repair.turns.is_empty()) && check.gaps.is_empty() {
            self.count_again(key).await?;
        }
        Ok(())
    }

    /// Rewrites messages with the right turn and without vectors.
    async fn write_again(&self, key: &SessionKey, sequences: &[u32], repair: &RowRepair) -> Result<()> {
        let Some(stored) = self.backend.get_session(key).await? else { return Ok(()) };
        let mut writer = SessionWriter::of_stored(self.backend.clone(), &stored);
        for sequence in sequences {
            let range = SequenceRange { start: *sequence, limit: 1 };
            let found: Vec<Message> = self.readable_page(key, range, &mut Vec::new()).await?;
            let Some(mut message) = found.into_iter().find(|found| found.sequence == *sequence) else {
                continue;
            };
            if let Some(turn) = repair.turns.get(sequence) {
                message.turn = *turn;
            }
            writer.message(message);
            writer.flush_when_full().await?;
        }
        writer.finish(None).await.map(drop)
    }

    /// Rewrites events with the ids that their lines state, or if other events have these, with derived ids.
    async fn write_with_right_ids(&self, key: &SessionKey, sequences: &[u32]) -> Result<()> {
        let Some(stored) = self.backend.get_session(key).await? else { return Ok(()) };
        let mut payloads: BTreeMap<u32, Payload> =
            self.backend.event_payloads(key, sequences).await?.into_iter().collect();
        let mut writer = SessionWriter::of_stored(self.backend.clone(), &stored);
        for sequence in sequences {
            let range = SequenceRange { start: *sequence, limit: 1 };
            let found: Vec<Event> = self.readable_page(key, range, &mut Vec::new()).await?;
            let event = found.into_iter().find(|found| found.sequence == *sequence);
            let Some((mut event, payload)) = event.zip(payloads.remove(sequence)) else { continue };
            event.event_id = self.free_id(key, *sequence, payload.clone()).await?;
            writer.event(StoredEvent { event, payload });
            writer.flush_when_full().await?;
        }
        writer.finish(None).await.map(drop)
    }

    /// The id that the line of an event states, or a derived one if another event has that or the line can't be read.
    async fn free_id(&self, key: &SessionKey, sequence: u32, payload: Payload) -> Result<String> {
        let derived = Event::derived_id(&key.session_id, sequence);
        let line = events::assemble(payload).ok().flatten();
        let Some(stated) = line.as_ref().and_then(stated_id) else { return Ok(derived) };
        let owners = self.backend.find_events(&key.user_id, std::slice::from_ref(&stated)).await?;
        let own = MessageRef::new(key.clone(), sequence);
        Ok(if owners.iter().all(|(_, owner)| *owner == own) { stated } else { derived })
    }

    /// Gives rows without a session a session again, so that they can be read. If `others` have all of them, with the
    /// same sequences and lines, they are copies that damage made, and are removed. A session that was created here is in
    /// no project.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn adopt_rows(&self, key: &SessionKey, host: &HostId, others: &[SessionKey]) -> Result<()> {
        self.backend.remove_stray_rows(key).await?;
        let stray = self.backend.stray_rows(&key.user_id, None).await?;
        if !stray.contains(&StrayRows::Session(key.clone())) {
            return Ok(());
        }
        self.recreate_session(key, host, &ProjectSlug::unnamed()).await?;
        let mut copies = (self.lines_of::<Message>(key).await?, self.lines_of::<Event>(key).await?);
        let rows = self.backend.session_rows(key).await?;
        let is_readable =
            (rows.messages.count, rows.events.count) == (copies.0.len() as u64, copies.1.len() as u64);
        for other in others.iter().filter(|other| *other != key) {
            let (messages, events) =
                (self.lines_of::<Message>(other).await?, self.lines_of::<Event>(other).await?);
            copies.0.retain(|line| !messages.contains(line));
            copies.1.retain(|line| !events.contains(line));
        }
        if is_readable && copies.0.is_empty() && copies.1.is_empty() {
            self.backend.delete_session(key).await?;
        }
        Ok(())
    }

    /// The sequences and digests of the readable rows of a session.
    async fn lines_of<T: SequencedRow>(&self, key: &SessionKey) -> Result<HashSet<(u32, Digest)>> {
        let rows: Readable<T> = self.readable_rows(key, 0, usize::MAX).await?;
        Ok(rows.rows.iter().map(|row| (row.sequence(), row.digest())).collect())
    }

    /// Counts the rows of a session and its turns.
    async fn count_again(&self, key: &SessionKey) -> Result<()> {
        let Some(stored) = self.backend.get_session(key).await? else { return Ok(()) };
        let rows = self.backend.session_rows(key).await?;
        let states = self.backend.message_states(key).await?;
        let turns: BTreeSet<u32> = states.into_iter().filter_map(|state| state.turn).collect();
        let mut session = stored.session.clone();
        session.message_count = u32::try_from(rows.messages.count).unwrap_or(u32::MAX);
        session.event_count = u32::try_from(rows.events.count).unwrap_or(u32::MAX);
        session.turn_count = turns.len() as u32;
        if session != stored.session {
            self.backend.write_one(SessionChange::new(session, Some(stored.version))).await?;
        }
        Ok(())
    }

    /// Creates the record of a session that has stored rows but no record. A sync of its files completes it.
    ///
    /// # Errors
    ///
    /// `Conflict` if it exists; errors of the backend.
    pub async fn recreate_session(
        &self,
        key: &SessionKey,
        host: &HostId,
        project: &ProjectSlug,
    ) -> Result<()> {
        let session = Session::new(key.clone(), host.clone(), project.clone(), self.now());
        self.backend.write_one(SessionChange::new(session, None)).await?;
        self.count_again(key).await
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
