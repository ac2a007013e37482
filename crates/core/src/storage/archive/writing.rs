//! Writes a session that is imported.

use super::{
    super::session_writer::Finished,
    ArchiveReader, ImportReport, Record, invalid,
    session::{SessionReading, WriteStage},
};
use crate::{
    Result,
    model::EmbeddingSpace,
    storage::store::{ArchiveTransfer, StoredVectors},
};

/// Number of event ids looked up at a time.
const IDS: usize = 500;

impl ArchiveTransfer<'_> {
    /// Limits the memory for rows that were read: writes them once the whole session is checked, for which it is read
    /// twice. Returns whether the session continues.
    pub(super) async fn flush_if_large(
        self,
        reading: &mut SessionReading,
        archive: &mut dyn ArchiveReader,
    ) -> Result<bool> {
        if !reading.writer.is_full() {
            return Ok(true);
        }
        if reading.stage == WriteStage::Collecting && reading.can_return {
            if !self.check_ahead(reading, archive).await? {
                return Ok(false);
            }
            archive.go_back()?;
            reading.restart(WriteStage::Writing);
        } else if reading.stage == WriteStage::Writing {
            self.accept_vectors(reading).await?;
            reading.writer.flush().await?;
        }
        Ok(true)
    }

    /// Reads the session to its end, without collecting its rows. Returns false if the session is written again later
    /// in the archive.
    async fn check_ahead(
        self,
        reading: &mut SessionReading,
        archive: &mut dyn ArchiveReader,
    ) -> Result<bool> {
        // Events that were collected are looked up together with the following ones.
        let (ids, rows) = (std::mem::take(&mut reading.ids), reading.rows);
        reading.restart(WriteStage::Checking);
        (reading.ids, reading.rows) = (ids, rows);
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
    pub(super) async fn write_whole(
        self,
        reading: &mut SessionReading,
        report: &mut ImportReport,
    ) -> Result<()> {
        reading.writer.superseded(reading.packing.finish()?);
        self.accept_vectors(reading).await?;
        let Finished { rows, .. } = reading.take_writer().finish(reading.sync_state.take()).await?;
        report.sessions += 1;
        report.messages += rows.messages;
        report.events += rows.events;
        report.superseded += rows.superseded;
        report.vectors += rows.vectors;
        report.turns += rows.turns;
        report.vectors_left_out += rows.vectors_left_out;
        let key = reading.session.key();
        report.replaced += u64::from(reading.replaces);
        report.were_deleted.extend(reading.was_deleted.then(|| key.clone()));
        let summaries = std::mem::take(&mut reading.summaries);
        if !summaries.is_empty() {
            report.summaries += self.store.backend.write_summaries(&key, summaries).await? as u64;
        }
        Ok(())
    }

    /// Why the session is rejected, if another session of the user has an event with the same id.
    pub(super) async fn taken_event(self, reading: &mut SessionReading) -> Result<Option<String>> {
        let user = &reading.session.user_id;
        let ids = std::mem::take(&mut reading.ids);
        for ids in ids.chunks(IDS) {
            let found = self.store.backend.find_events(user, ids).await?;
            let other =
                found.into_iter().find(|(_, event)| event.session.session_id != reading.session.session_id);
            if let Some((id, event)) = other {
                let session = event.session.session_id;
                return Ok(Some(format!("its event {id:?} already belongs to session {session}")));
            }
        }
        Ok(None)
    }

    /// Whether the space is that of the store or of the storage's embedding provider.
    async fn knows_space(self, space: &EmbeddingSpace) -> Result<bool> {
        let is_own = self.store.embedding.as_ref().is_some_and(|provider| provider.space() == space);
        let held = self.store.generations().await?.current;
        Ok(is_own || held.is_some_and(|held| held.space == *space))
    }

    /// Makes the space of the session's vectors that of the store, if the store has none. If it has another one, the
    /// vectors are left out.
    async fn accept_vectors(self, reading: &mut SessionReading) -> Result<()> {
        if let Some(space) = reading.space.as_ref().filter(|_| reading.writer.lacks_generation())
            && (!reading.only_known_space || self.knows_space(space).await?)
            && let Ok(generation) = StoredVectors::new(self.store).claim_space(space).await?
        {
            reading.writer.set_generation(generation);
        }
        Ok(())
    }
}
