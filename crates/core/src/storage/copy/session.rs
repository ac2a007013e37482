//! Writes the rows of one session to the target.

use super::{
    digest::Digester,
    rows::{Rows, changing, missing},
    vectors::without_vectors,
};
use crate::{
    Result,
    backend::{SessionChange, StorageBackend, StorageBackendExt, StoredSession, Version},
    model::{Payload, Session, StoredEvent, SupersededRef},
};

/// The size of the lines to write at a time.
const PART_BYTES: usize = 8 << 20;
/// The beginning of the sync state of a session until it is verified. No sync recognises it, so a sync would read the
/// files again.
const COPYING: &str = "copying";

/// Whether a copy of a session into this store was interrupted.
pub(super) fn is_unfinished(stored: &StoredSession) -> bool {
    stored.sync_state.as_deref().is_some_and(|state| state.starts_with(COPYING))
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
    pub(super) from: &'a dyn StorageBackend,
    pub(super) to: &'a dyn StorageBackend,
    /// The session in the source.
    pub(super) source: &'a StoredSession,
    /// The identity of the source.
    pub(super) source_id: &'a str,
}

impl Copying<'_> {
    /// The sync state while this version of the session is copied.
    fn state(&self) -> String {
        format!("{COPYING} {} {}", self.source_id, self.source.version.0)
    }

    /// Writes all rows. If `held` was left by an interrupted copy of the same version, continues after its rows;
    /// otherwise, replaces it.
    pub(super) async fn rows(&self, held: Option<&StoredSession>, on_rows: impl Fn(u64)) -> Result<Written> {
        let continued = held.filter(|held| held.sync_state.as_ref() == Some(&self.state()));
        let start = continued.map_or((0, 0), |held| (held.session.message_count, held.session.event_count));
        let mut writing = Writing::new(self, held.map(|held| held.version.clone()), start)?;
        let key = self.source.session.key();
        let source = Rows::new(self.from, &key);
        let mut messages = source.messages(start.0);
        while let Some(page) = messages.next().await? {
            on_rows(page.len() as u64);
            for message in page {
                writing.digester.message(&message);
                writing.bytes += message.raw.as_bytes().len();
                writing.rows.0 = message.sequence.saturating_add(1);
                writing.change.messages.put.push(without_vectors(message));
                writing.write_part(self).await?;
            }
        }
        let mut events = source.events(start.1);
        while let Some(page) = events.next().await? {
            on_rows(page.len() as u64);
            for event in page {
                writing.digester.event(&event)?;
                writing.bytes += payload_bytes(&event);
                writing.rows.1 = event.event.sequence.saturating_add(1);
                writing.change.events.put.push(event);
                writing.write_part(self).await?;
            }
        }
        let mut superseded = source.superseded(true);
        while let Some(page) = superseded.next().await? {
            for piece in page {
                writing.digester.superseded(&piece);
                writing.bytes += piece.data.len();
                writing.superseded += u64::from(piece.lines);
                writing.change.superseded.push(piece);
                writing.write_part(self).await?;
            }
        }
        writing.finish(self, start == (0, 0)).await
    }

    /// Removes superseded lines of the replaced session.
    pub(super) async fn prune(&self) -> Result<()> {
        let key = self.source.session.key();
        let (mut wanted, mut extra) = (Rows::new(self.from, &key).superseded(false), Vec::new());
        let mut ids = std::collections::BTreeSet::new();
        while let Some(page) = wanted.next().await? {
            ids.extend(page.into_iter().map(|piece| piece.id));
        }
        let mut held = Rows::new(self.to, &key).superseded(false);
        while let Some(page) = held.next().await? {
            let others = page.iter().filter(|piece| !ids.contains(&piece.id));
            extra.extend(others.map(|piece| SupersededRef { session: key.clone(), id: piece.id.clone() }));
        }
        if extra.is_empty() {
            return Ok(());
        }
        let pruned = self.to.prune_superseded(&extra).await;
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
        self.set_state(version, COPYING.to_owned()).await
    }

    async fn set_state(&self, version: Version, state: String) -> Result<()> {
        let mut change = SessionChange::new(self.source.session.clone(), Some(version));
        change.sync_state = Some(state);
        self.to.write_one(change).await.map(drop)
    }
}

/// The part of a session that is written next.
struct Writing {
    change: SessionChange,
    /// The size of its lines.
    bytes: usize,
    /// The number of messages and events that were read.
    rows: (u32, u32),
    superseded: u64,
    digester: Digester,
}

impl Writing {
    fn new(copying: &Copying<'_>, expected: Option<Version>, start: (u32, u32)) -> Result<Self> {
        let StoredSession { session, metadata_files, skipped, .. } = copying.source;
        let mut digester = Digester::default();
        digester.session(session)?;
        digester.files(metadata_files);
        digester.skipped(skipped)?;
        let mut change = SessionChange::new(session.clone(), expected);
        change.metadata_files = Some(metadata_files.clone());
        change.skipped = Some(skipped.clone());
        // Rows that an interrupted write may have left after the counted rows.
        (change.messages.truncate, change.events.truncate) = (Some(start.0), Some(start.1));
        Ok(Self { change, bytes: 0, rows: start, superseded: 0, digester })
    }

    /// Writes the rows that were read if they are large.
    async fn write_part(&mut self, copying: &Copying<'_>) -> Result<()> {
        if self.bytes < PART_BYTES {
            return Ok(());
        }
        let version = self.write(copying).await?;
        self.change.expected = Some(version);
        Ok(())
    }

    async fn write(&mut self, copying: &Copying<'_>) -> Result<Version> {
        let session = &copying.source.session;
        let mut change = SessionChange::new(session.clone(), None);
        std::mem::swap(&mut change, &mut self.change);
        change.session = Session { message_count: self.rows.0, event_count: self.rows.1, ..session.clone() };
        change.sync_state = Some(copying.state());
        self.bytes = 0;
        copying.to.give_way().await;
        copying.to.write_one(change).await
    }

    /// Writes the last part.
    async fn finish(mut self, copying: &Copying<'_>, is_whole: bool) -> Result<Written> {
        let StoredSession { session, version, .. } = copying.source;
        let key = session.key();
        let now = copying.from.get_session(&key).await?;
        if now.is_none_or(|now| now.version != *version) {
            return Err(changing(&key));
        }
        if self.rows != (session.message_count, session.event_count) {
            return Err(missing("rows at the end of the session are missing"));
        }
        self.write(copying).await?;
        let digest = is_whole.then(|| self.digester.digits());
        Ok(Written { digest, superseded: self.superseded })
    }
}

fn payload_bytes(stored: &StoredEvent) -> usize {
    match &stored.payload {
        Payload::None => 0,
        Payload::Plain(bytes) | Payload::Zstd(bytes) => bytes.len(),
        Payload::Chunks(chunks) => chunks.iter().map(Vec::len).sum(),
    }
}
