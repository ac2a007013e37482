//! The writes of a [`SessionWriter`].

use super::{Finished, SessionWriter, event_ids::free_event_ids, superseded_bytes};
use crate::{
    Error, ErrorKind, Result,
    backend::{
        MessageVectors, SessionChange, StorageBackend, StorageBackendExt, StoredSession, StoredSyncState,
        TurnLines, Version,
    },
    model::{Retimed, Session, SessionKey, VectorText},
    storage::turn_texts::keep_stated,
};

impl SessionWriter {
    /// Writes the pending rows if they are large.
    ///
    /// # Errors
    ///
    /// `Conflict` (retryable) if another process wrote the session in the meantime; errors of the backend.
    pub async fn flush_when_full(&mut self) -> Result<()> {
        if self.is_full() { self.flush().await } else { Ok(()) }
    }

    /// Writes the pending rows, if there are any.
    ///
    /// # Errors
    ///
    /// As [`SessionWriter::flush_when_full`].
    pub async fn flush(&mut self) -> Result<()> {
        self.change.sync_state.clone_from(&self.unfinished);
        self.write().await
    }

    /// Writes superseded lines before the change that removes their rows, with this sync state. Those of a session that
    /// is not stored stay pending.
    pub(in crate::storage) async fn flush_superseded(
        &mut self,
        sync_state: Option<StoredSyncState>,
    ) -> Result<()> {
        let Some(mut change) = self.unchanged() else { return Ok(()) };
        (change.sync_state, change.superseded) = (sync_state, std::mem::take(&mut self.change.superseded));
        self.bytes -= superseded_bytes(&change.superseded);
        self.write_change(change).await
    }

    /// Writes only fields of the session.
    pub(in crate::storage) async fn write_session(&mut self, session: Session) -> Result<()> {
        match self.unchanged().filter(|stored| stored.session != session) {
            Some(stored) => self.write_change(SessionChange { session, ..stored }).await,
            None => Ok(()),
        }
    }

    /// Writes the rest of the session, and the sync state of a complete one. Returns what was written.
    ///
    /// # Errors
    ///
    /// As [`SessionWriter::flush_when_full`].
    pub async fn finish(mut self, sync_state: Option<StoredSyncState>) -> Result<Finished> {
        self.end(sync_state);
        self.write().await?;
        self.complete_turns().await?;
        Ok(self.finished())
    }

    /// [`SessionWriter::finish`] for several sessions of one store, each with its sync state. Returns a result for
    /// each, in order. For many small sessions, this is faster, because a backend may write them in one transaction.
    pub(in crate::storage) async fn finish_all(
        backend: &dyn StorageBackend,
        mut writers: Vec<(Self, Option<StoredSyncState>)>,
    ) -> Vec<Result<Finished>> {
        // A session that fails before the write does not keep the others from being written.
        let (mut changes, mut begun) = (Vec::new(), Vec::new());
        for (writer, sync_state) in &mut writers {
            writer.end(sync_state.take());
            let change = writer.take_change().await;
            begun.push(change.map(|change| {
                change.map(|change| {
                    let stored = writer.begin_write(&change);
                    changes.push(change);
                    stored
                })
            }));
        }
        let mut written = backend.write(changes).await.into_iter();
        let mut finished = Vec::with_capacity(writers.len());
        for ((mut writer, _), begun) in writers.into_iter().zip(begun) {
            finished.push(match begun {
                Ok(Some(stored)) => match written.next().unwrap_or_else(unanswered) {
                    Ok(version) => {
                        writer.stored = Some(stored(version));
                        match writer.write_beside_messages().await {
                            Ok(()) => writer.complete_turns().await.map(|()| writer.finished()),
                            Err(error) => Err(error),
                        }
                    }
                    Err(error) => Err(error),
                },
                Ok(None) => Ok(writer.finished()),
                Err(error) => Err(error),
            });
        }
        finished
    }

    /// Sets the sync state of the last write.
    fn end(&mut self, sync_state: Option<StoredSyncState>) {
        let stored = self.stored.as_ref().and_then(|stored| stored.sync_state.as_ref());
        // A stored state can't be removed. An empty one means that no files were read.
        let nothing_read = (self.unfinished.is_some() && stored.is_some()).then(StoredSyncState::default);
        self.change.sync_state = sync_state.or(nothing_read);
    }

    fn finished(self) -> Finished {
        Finished { version: self.stored.map(|stored| stored.version), rows: self.written }
    }

    async fn write(&mut self) -> Result<()> {
        let Some(change) = self.take_change().await? else { return Ok(()) };
        self.write_change(change).await?;
        self.write_beside_messages().await
    }

    /// Takes the next write; `None` if nothing changes.
    async fn take_change(&mut self) -> Result<Option<SessionChange>> {
        self.write_most_times().await?;
        self.bytes = 0;
        let next = SessionChange::new(self.change.session.clone(), None);
        let mut change = std::mem::replace(&mut self.change, next);
        change.retimed = std::mem::take(&mut self.retimed).into_iter().map(|(retimed, _)| retimed).collect();
        if let Some(stored) = &self.stored {
            change.metadata_files.take_if(|files| *files == stored.metadata_files);
            change.skipped.take_if(|skipped| *skipped == stored.skipped);
            change.sync_state.take_if(|state| stored.sync_state.as_ref() == Some(state));
            change.expected = Some(stored.version.clone());
        }
        if self.unchanged().is_some_and(|unchanged| change == unchanged) {
            return Ok(None);
        }
        if self.frees_event_ids {
            free_event_ids(&*self.backend, &change.session.key(), &mut change.events).await?;
        }
        Ok(Some(change))
    }

    /// Writes new times of stored messages until few are left for the next write, so that the log of a database does
    /// not grow with the session. If the process is killed meanwhile, the next ingest finds the same differences,
    /// because nothing else is written here.
    async fn write_most_times(&mut self) -> Result<()> {
        loop {
            let mut bytes = 0_usize;
            let is_within = |(_, line_bytes): &&(Retimed, usize)| {
                bytes = bytes.saturating_add(*line_bytes);
                bytes <= self.part_bytes
            };
            let count = self.retimed.iter().take_while(is_within).count().max(1);
            let Some(mut change) = self.unchanged().filter(|_| self.retimed.len() > count) else {
                return Ok(());
            };
            change.retimed = self.retimed.drain(..count).map(|(retimed, _)| retimed).collect();
            self.write_change(change).await?;
        }
    }

    /// A write that changes nothing; `None` if the session is not stored.
    fn unchanged(&self) -> Option<SessionChange> {
        let stored = self.stored.as_ref()?;
        Some(SessionChange::new(stored.session.clone(), Some(stored.version.clone())))
    }

    async fn write_change(&mut self, change: SessionChange) -> Result<()> {
        let stored = self.begin_write(&change);
        self.backend.yield_to_searches().await;
        self.stored = Some(stored(self.backend.write_one(change).await?));
        Ok(())
    }

    /// Counts the rows of a write. Returns the session after it, as a function of its version.
    fn begin_write(&mut self, change: &SessionChange) -> impl FnOnce(Version) -> StoredSession + use<> {
        let SessionChange { session, metadata_files, skipped, sync_state, .. } = change;
        self.written.count(change, self.stored.as_ref().map(|stored| &stored.session));
        let (files, lines, state) = match self.stored.clone() {
            Some(stored) => (stored.metadata_files, stored.skipped, stored.sync_state),
            None => Default::default(),
        };
        let session = session.clone();
        let metadata_files = metadata_files.clone().unwrap_or(files);
        let (skipped, sync_state) = (skipped.clone().unwrap_or(lines), sync_state.clone().or(state));
        move |version| StoredSession { session, version, metadata_files, skipped, sync_state }
    }

    /// Writes the stated summaries and the vectors of messages that were written.
    async fn write_beside_messages(&mut self) -> Result<()> {
        let key = self.session().key();
        keep_stated(&*self.backend, &key, std::mem::take(&mut self.stated)).await?;
        if self.write_vectors(&key).await? {
            // The session may have another version now.
            let now = self.backend.get_session(&key).await?;
            let with_version =
                |(stored, now): (_, StoredSession)| StoredSession { version: now.version, ..stored };
            self.stored = self.stored.take().zip(now).map(with_version);
        }
        Ok(())
    }

    /// Writes the pending vectors. Returns whether there are any.
    async fn write_vectors(&mut self, key: &SessionKey) -> Result<bool> {
        let vectors = std::mem::take(&mut self.vectors);
        if vectors.is_empty() {
            return Ok(false);
        }
        let records = || vectors.iter().flat_map(MessageVectors::records);
        let turns = records().filter(|record| record.text == VectorText::Turn).count() as u64;
        let Some(generation) = self.generation else {
            self.written.vectors_left_out += records().count() as u64 - turns;
            return Ok(false);
        };
        let stored = self.backend.write_vectors(key, generation, vectors).await? as u64;
        self.written.turns += turns.min(stored);
        self.written.vectors += stored - turns.min(stored);
        Ok(true)
    }

    /// Turns whose vectors were written are not pending after all of their lines are.
    async fn complete_turns(&mut self) -> Result<()> {
        let Some(generation) = self.generation else { return Ok(()) };
        let lines = TurnLines::of(std::mem::take(&mut self.lines));
        let mut turns = std::mem::take(&mut self.embedded_turns);
        if turns.is_empty() {
            return Ok(());
        }
        turns.iter_mut().for_each(|of| of.turn = lines.begun_by(of.sequence));
        self.backend.write_vectors(&self.session().key(), generation, turns).await.map(drop)
    }
}

fn unanswered<T>() -> Result<T> {
    Err(Error::new(ErrorKind::StorageIo, "the backend returned no result for the session"))
}
