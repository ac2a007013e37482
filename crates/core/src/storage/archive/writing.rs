//! Writes a session that is imported.

use super::{
    ArchiveReader, Record, invalid,
    session::{IMPORTING, Reading, Stage},
    turns::ReadTurns,
};
use crate::{
    Result, SessionStorage,
    backend::{NewTurn, SessionChange, StorageBackendExt},
};

/// Number of event ids looked up at a time.
const IDS: usize = 500;
/// The size of the lines to write at a time. A larger session is read twice: it is checked before its first rows are
/// written.
const PART_BYTES: usize = 16 << 20;

impl SessionStorage {
    /// Limits the memory for rows that were read: writes them once the whole session is checked. Returns whether the
    /// session continues.
    pub(super) async fn flush_if_large(
        &self,
        reading: &mut Reading,
        archive: &mut dyn ArchiveReader,
    ) -> Result<bool> {
        if reading.bytes < PART_BYTES {
            return Ok(true);
        }
        if reading.stage == Stage::Collecting && reading.can_return {
            if !self.check_ahead(reading, archive).await? {
                return Ok(false);
            }
            archive.go_back()?;
            reading.restart(Stage::Writing);
        } else if reading.stage == Stage::Writing {
            let mut part = SessionChange::new(reading.session.clone(), None);
            std::mem::swap(&mut part, &mut reading.change);
            (part.session.message_count, part.session.event_count) = reading.rows;
            part.sync_state = Some(IMPORTING.to_owned());
            reading.bytes = 0;
            reading.change.expected = Some(self.backend.write_one(part).await?);
            self.import_vectors(reading).await?;
        }
        Ok(true)
    }

    /// Reads the session to its end, without collecting its rows. Returns false if the session is written again later
    /// in the archive.
    async fn check_ahead(&self, reading: &mut Reading, archive: &mut dyn ArchiveReader) -> Result<bool> {
        // Events that were collected are looked up together with the following ones.
        let (ids, rows) = (std::mem::take(&mut reading.ids), reading.rows);
        let superseded_lines = reading.superseded_lines;
        reading.restart(Stage::Checking);
        (reading.ids, reading.rows, reading.superseded_lines) = (ids, rows, superseded_lines);
        loop {
            match archive.next()? {
                Some(Record::Message(record)) => reading.message(*record)?,
                Some(Record::Event(record)) => reading.event(*record)?,
                Some(Record::Superseded(record)) => reading.superseded(*record)?,
                Some(Record::Again) => return Ok(false),
                Some(Record::End { messages, events, .. }) => {
                    reading.check_end((messages, events))?;
                    reading.refused = self.taken_event(reading).await?;
                    return Ok(true);
                }
                _ => {
                    // The next session begins here, and must be read too.
                    archive.go_back()?;
                    return Err(invalid("the end of the session is missing"));
                }
            }
            if reading.ids.len() >= IDS {
                reading.refused = self.taken_event(reading).await?;
                if reading.refused.is_some() {
                    return Ok(true);
                }
            }
        }
    }

    /// Writes a session, or the rest of it.
    pub(super) async fn write_whole(&self, reading: &mut Reading) -> Result<()> {
        let mut change = SessionChange::new(reading.session.clone(), None);
        std::mem::swap(&mut change, &mut reading.change);
        change.session = reading.session.clone();
        change.superseded.extend(reading.packing.finish()?);
        change.sync_state = match reading.stage {
            Stage::Writing => Some(reading.sync_state.take().unwrap_or_default()),
            _ => reading.sync_state.take(),
        };
        self.backend.write_one(change).await?;
        self.import_vectors(reading).await?;
        self.import_turns(reading).await
    }

    /// Why the session is rejected, if another session of the user has an event with the same id.
    pub(super) async fn taken_event(&self, reading: &mut Reading) -> Result<Option<String>> {
        let user = &reading.session.user_id;
        let ids = std::mem::take(&mut reading.ids);
        for ids in ids.chunks(IDS) {
            let found = self.backend.find_events(user, ids).await?;
            let other =
                found.into_iter().find(|(_, event)| event.session.session_id != reading.session.session_id);
            if let Some((id, event)) = other {
                let session = event.session.session_id;
                return Ok(Some(format!("its event {id:?} already belongs to session {session}")));
            }
        }
        Ok(None)
    }

    /// Writes the vectors of imported messages, if the store accepts their space.
    async fn import_vectors(&self, reading: &mut Reading) -> Result<()> {
        let vectors = std::mem::take(&mut reading.vectors);
        let Some(space) = reading.space.clone().filter(|_| !vectors.is_empty()) else { return Ok(()) };
        match self.claim_space(&space).await? {
            Ok(generation) => {
                let written = self.backend.write_vectors(&reading.session.key(), generation, vectors).await?;
                reading.vectors_written += written as u64;
            }
            Err(_) => {
                reading.vectors_left_out +=
                    vectors.iter().map(|vectors| vectors.records.len() as u64).sum::<u64>();
            }
        }
        Ok(())
    }

    /// Writes the turns that were read of a session: its summaries, and its embeddings if the store accepts their
    /// space.
    async fn import_turns(&self, reading: &mut Reading) -> Result<()> {
        let ReadTurns { summaries, embeddings } = std::mem::take(&mut reading.turns);
        let key = reading.session.key();
        if !summaries.is_empty() {
            reading.summaries_written = self.backend.write_summaries(&key, summaries).await? as u64;
        }
        let Some(space) = reading.space.clone().filter(|_| !embeddings.is_empty()) else { return Ok(()) };
        if self.claim_space(&space).await?.is_ok() {
            let (states, now) = (self.backend.message_states(&key).await?, self.now());
            let turns =
                embeddings.into_iter().filter_map(|of| NewTurn::of(&key, of.with_new_id(&key, now), &states));
            reading.turns_written = self.backend.write_turns(turns.collect()).await? as u64;
        }
        Ok(())
    }
}
