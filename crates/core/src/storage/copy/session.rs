//! Writes the rows of one session to the target.

use super::digest::Digester;
use crate::{
    Result,
    backend::{SessionChange, StorageBackendExt, StoredSession, StoredSyncState, Version},
    model::SupersededRef,
    storage::{
        session_rows::{SessionRows, changing, missing},
        session_writer::{Finished, SessionWriter},
        store::StoreContext,
    },
};

/// The beginning of the sync state of a session until it is verified. No sync recognises it, so a sync would read the
/// files again.
const COPYING: &str = "copying";

/// Whether a copy of a session into this store was interrupted.
pub(super) fn is_unfinished(stored: &StoredSession) -> bool {
    stored.sync_state.as_ref().is_some_and(|state| state.files.starts_with(COPYING))
}

/// The copied rows of a session.
#[derive(Debug)]
pub(super) struct Written {
    /// The digest of its rows in the source, if all of them were read.
    pub(super) digest: Option<String>,
    /// The number of superseded lines.
    pub(super) superseded: u64,
}

/// A session that is being copied.
pub(super) struct Copying<'a> {
    pub(super) from: &'a StoreContext,
    pub(super) to: &'a StoreContext,
    /// The session in the source.
    pub(super) source: &'a StoredSession,
    /// The identity of the source.
    pub(super) source_id: &'a str,
}

impl Copying<'_> {
    /// The sync state while this version of the session is copied.
    fn state(&self) -> StoredSyncState {
        StoredSyncState::of(format!("{COPYING} {} {}", self.source_id, self.source.version.0))
    }

    /// Writes all rows. If `held` was left by an interrupted copy of the same version, continues after its rows;
    /// otherwise, replaces it.
    pub(super) async fn rows(&self, held: Option<&StoredSession>, on_rows: impl Fn(u64)) -> Result<Written> {
        let StoredSession { session, metadata_files, skipped, version, .. } = self.source;
        let continued = held.filter(|held| held.sync_state.as_ref() == Some(&self.state()));
        let start = continued.map_or((0, 0), |held| (held.session.message_count, held.session.event_count));
        let mut digester = Digester::default();
        digester.session(session)?;
        digester.files(metadata_files);
        digester.skipped(skipped)?;
        let mut writer =
            SessionWriter::new(self.to.backend.clone(), session.clone(), held, self.state().files)
                .after(start.0, start.1)
                .with_files(metadata_files.clone(), skipped.clone());
        let key = session.key();
        let source = SessionRows::new(self.from, &key);
        let mut messages = source.messages(start.0).strict();
        while let Some(page) = messages.next().await? {
            on_rows(page.len() as u64);
            for message in page {
                digester.message(&message);
                writer.message(message);
                writer.flush_when_full().await?;
            }
        }
        let mut events = source.stored_events(start.1);
        while let Some(page) = events.next().await? {
            on_rows(page.len() as u64);
            for event in page {
                digester.event(&event)?;
                writer.event(event);
                writer.flush_when_full().await?;
            }
        }
        let mut superseded = source.superseded(true);
        while let Some(page) = superseded.next().await? {
            page.iter().for_each(|piece| digester.superseded(piece));
            writer.superseded(page);
            writer.flush_when_full().await?;
        }
        let now = self.from.backend.get_session(&key).await?;
        if now.is_none_or(|now| now.version != *version) {
            return Err(changing(&key));
        }
        let rows = (writer.session().message_count, writer.session().event_count);
        if rows != (session.message_count, session.event_count) {
            return Err(missing("rows at the end of the session are missing"));
        }
        // Complete only after its vectors are copied and everything is compared.
        let Finished { rows, .. } = writer.finish(Some(self.state())).await?;
        let digest = (start == (0, 0)).then(|| digester.digits());
        Ok(Written { digest, superseded: rows.superseded })
    }

    /// Removes superseded lines of the replaced session.
    pub(super) async fn prune(&self) -> Result<()> {
        let key = self.source.session.key();
        let (mut wanted, mut extra) = (SessionRows::new(self.from, &key).superseded(false), Vec::new());
        let mut ids = std::collections::BTreeSet::new();
        while let Some(page) = wanted.next().await? {
            ids.extend(page.into_iter().map(|piece| piece.id));
        }
        let mut held = SessionRows::new(self.to, &key).superseded(false);
        while let Some(page) = held.next().await? {
            let others = page.iter().filter(|piece| !ids.contains(&piece.id));
            extra.extend(others.map(|piece| SupersededRef { session: key.clone(), id: piece.id.clone() }));
        }
        if extra.is_empty() {
            return Ok(());
        }
        let pruned = self.to.backend.prune_superseded(&extra).await;
        pruned.deleted.into_iter().collect::<Result<Vec<bool>>>().map(drop)
    }

    /// Marks the session as complete. Afterwards, it is the same as in the source.
    pub(super) async fn complete(&self, version: Version) -> Result<()> {
        // A stored state can't be removed, but an empty one means that no files were read.
        let state = self.source.sync_state.clone().unwrap_or_default();
        self.set_state(version, state).await
    }

    /// Makes the next copy start over with the session.
    pub(super) async fn discard(&self, version: Version) -> Result<()> {
        self.set_state(version, StoredSyncState::of(COPYING)).await
    }

    async fn set_state(&self, version: Version, state: StoredSyncState) -> Result<()> {
        let mut change = SessionChange::new(self.source.session.clone(), Some(version));
        change.sync_state = Some(state);
        self.to.backend.write_one(change).await.map(drop)
    }
}
