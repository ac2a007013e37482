//! Recognises copies of a session: another folder than the one that the stored rows come from.
//!
//! The rows of a session come from the folder that was read last. Another folder, on this machine or another one, takes
//! its place only with a longer history: all stored messages, and more. An older copy, such as a backup, changes nothing,
//! and neither does one that went on differently: otherwise, two copies that are synced in turn would rewrite the session
//! for ever.

use std::path::Path;

use amplifier_session_core::{
    Result,
    backend::{SessionChange, StorageBackendExt, StoredSession, StoredSyncState},
    model::LineKind,
    storage::{LineDigester, SessionIngest},
};

use super::{FileError, SessionReader, open::OpenLog};
use crate::{
    files::{SessionFiles, Source},
    known_copy::{CopyKind, KnownCopy},
    state::SyncState,
};

impl SessionReader<'_> {
    /// If the folder is a copy that changes nothing, reports it, and records that it need not be read again.
    pub(super) async fn is_copy(&mut self, ingest: &SessionIngest, files: &SessionFiles) -> Result<bool> {
        let options = self.context.options;
        let (Some(stored), Some(transcript)) = (ingest.stored(), files.transcript) else { return Ok(false) };
        let Some(known) = &stored.sync_state else { return Ok(false) };
        let Some(mut state) = SyncState::parse(known) else { return Ok(false) };
        let Some(read) = state.read_elsewhere(&self.folder.path, &options.host) else { return Ok(false) };
        if options.accepts_removals() || options.mirror {
            return Ok(false);
        }
        let kind = match self.compare_copy(ingest, stored, transcript).await {
            Ok(Some(kind)) => kind,
            // A file that can't be read is reported when it is read.
            Ok(None) | Err(FileError::Unreadable(_)) => return Ok(false),
            Err(FileError::Store(error)) => return Err(error),
        };
        let is_left = read.host == options.host.as_str() && !Path::new(&read.folder).exists();
        if is_left && kind != CopyKind::Older {
            return Ok(false);
        }
        self.report.copy(self.folder, Some(transcript.name), kind.reason(&read, &options.host));
        if state.add_copy(&self.folder.path, KnownCopy { stamp: transcript.stamp, kind }) {
            let mut change = SessionChange::new(stored.session.clone(), Some(stored.version.clone()));
            change.sync_state = Some(StoredSyncState { files: state.to_json(), ..known.clone() });
            self.context.storage.backend().write_one(change).await?;
        }
        Ok(true)
    }

    /// Compares the messages of a transcript with the stored ones. `None` if it has all of them and more.
    async fn compare_copy(
        &self,
        ingest: &SessionIngest,
        stored: &StoredSession,
        transcript: Source,
    ) -> Result<Option<CopyKind>, FileError> {
        let states = self.context.storage.backend().message_states(&stored.session.key()).await?;
        let mut next = 0;
        let digester: LineDigester = ingest.line_digester();
        let mut open = OpenLog::open(self.folder.file(transcript.name), None).await?;
        while let Some(batch) = open.batch().await? {
            for line in &batch.lines {
                let Some(text) = line.text() else { continue };
                let digest = line.digest(&digester);
                let expected = states.get(next).map(|state| state.digest);
                if digest.is_some() && expected == digest {
                    next += 1;
                } else if SessionIngest::is_valid(LineKind::Message, text) {
                    return Ok(expected.map(|_| CopyKind::Diverged { line: line.number }));
                }
            }
        }
        Ok(Some(if next < states.len() { CopyKind::Older } else { CopyKind::Equal }))
    }
}
