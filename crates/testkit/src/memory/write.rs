//! Writing in batches, as a store must that has no transactions above a size.

use std::{collections::BTreeMap, mem::take, sync::PoisonError};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{SessionChange, StoredSession, Version},
    model::{Message, Retimed, SessionKey, StoredEvent},
};
use tokio::sync::OwnedMutexGuard;

use super::{
    MemoryBackend,
    rows::{MessageRow, Rows, SessionRows},
};

/// The most rows that are changed at once.
const BATCH: usize = 5;

/// One step of a write. Each can be repeated.
enum Step {
    RemoveMessage(u32),
    RemoveEvent(u32),
    PutMessage(Box<Message>),
    Retime(Retimed),
    PutEvent(Box<StoredEvent>),
}

impl MemoryBackend {
    /// The rows first, the session last: until it is there with its new version, the write can be repeated.
    pub(super) async fn write_change(&self, mut change: SessionChange) -> Result<Version> {
        let key = change.session.key();
        let _lease = self.lease(&key).await;
        let steps = {
            let rows = self.rows();
            check(&rows, &key, &change)?;
            steps(&rows, &key, &mut change)
        };
        self.run(&key, steps).await?;
        let rows = &mut *self.rows();
        let version = rows.next_version();
        let session = rows.sessions.entry(key).or_default();
        session.move_to(&change.session.project_slug);
        session.stored = Some(merged(session.stored.take(), change, version.clone()));
        Ok(version)
    }

    /// The rows first here too: while the session is there, the deletion can be repeated.
    pub(super) async fn delete(&self, key: &SessionKey) -> Result<bool> {
        let _lease = self.lease(key).await;
        let steps = removals(&self.rows(), key, 0, 0);
        self.run(key, steps).await?;
        let rows = &mut *self.rows();
        let deleted = rows.sessions.remove(key).is_some_and(|session| session.stored.is_some());
        if deleted {
            rows.deleted.insert(key.clone());
        }
        Ok(deleted)
    }

    /// Takes `steps` a batch at a time, with others in between. The last step, which makes the change count, is its own
    /// batch.
    async fn run(&self, key: &SessionKey, mut steps: Vec<Step>) -> Result<()> {
        while !steps.is_empty() {
            self.interrupt()?;
            {
                let rows = &mut *self.rows();
                let session = rows.sessions.entry(key.clone()).or_default();
                steps.drain(..steps.len().min(BATCH)).for_each(|step| session.take(step));
            }
            tokio::task::yield_now().await;
        }
        self.interrupt()
    }

    /// Counts a batch, and fails in the place of the one that is not to happen.
    fn interrupt(&self) -> Result<()> {
        let mut left = self.shared.interruption.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = *left == Some(0);
        *left = left.and_then(|left| left.checked_sub(1));
        match is_due {
            true => Err(Error::new(ErrorKind::StorageIo, "the write was interrupted on demand").retryable()),
            false => Ok(()),
        }
    }

    async fn lease(&self, key: &SessionKey) -> OwnedMutexGuard<()> {
        let lease = {
            let mut leases = self.shared.leases.lock().unwrap_or_else(PoisonError::into_inner);
            leases.entry(key.clone()).or_default().clone()
        };
        lease.lock_owned().await
    }
}

fn check(rows: &Rows, key: &SessionKey, change: &SessionChange) -> Result<()> {
    if rows.stored(key).map(|stored| &stored.version) != change.expected.as_ref() {
        return Err(conflict("the session was changed by another writer").with("session", &key.session_id));
    }
    // `core` has looked for ids that are taken, but a write of another session may have come in between.
    let ids = change.events.put.iter().map(|stored| &stored.event.event_id);
    if rows.find_events(&key.user_id, ids).iter().any(|(_, event)| event.session != *key) {
        return Err(conflict("another session has an event of this id"));
    }
    Ok(())
}

fn conflict(message: &str) -> Error {
    Error::new(ErrorKind::Conflict, message).retryable()
}

/// All that is to be done before the session itself is written.
fn steps(rows: &Rows, key: &SessionKey, change: &mut SessionChange) -> Vec<Step> {
    let length = |truncate: Option<u32>| truncate.unwrap_or(u32::MAX);
    let mut steps = removals(rows, key, length(change.messages.truncate), length(change.events.truncate));
    steps.extend(take(&mut change.messages.put).into_iter().map(Box::new).map(Step::PutMessage));
    steps.extend(take(&mut change.retimed).into_iter().map(Step::Retime));
    steps.extend(take(&mut change.events.put).into_iter().map(Box::new).map(Step::PutEvent));
    steps
}

/// Removes messages and events from these sequences on.
fn removals(rows: &Rows, key: &SessionKey, messages: u32, events: u32) -> Vec<Step> {
    let Some(session) = rows.sessions.get(key) else { return Vec::new() };
    let messages = session.messages.range(messages..).map(|(sequence, _)| Step::RemoveMessage(*sequence));
    messages.chain(session.events.range(events..).map(|(sequence, _)| Step::RemoveEvent(*sequence))).collect()
}

impl SessionRows {
    fn take(&mut self, step: Step) {
        match step {
            Step::RemoveMessage(sequence) => drop(self.messages.remove(&sequence)),
            Step::RemoveEvent(sequence) => drop(self.events.remove(&sequence)),
            Step::PutMessage(message) => {
                let row = MessageRow { message: *message, vectors: BTreeMap::new() };
                self.messages.insert(row.message.sequence, row);
            }
            Step::Retime(Retimed { sequence, ts, ts_source }) => {
                if let Some(row) = self.messages.get_mut(&sequence) {
                    (row.message.ts, row.message.ts_source) = (ts, ts_source);
                }
            }
            Step::PutEvent(stored) => drop(self.events.insert(stored.event.sequence, *stored)),
        }
    }
}

/// The session after `change`.
fn merged(stored: Option<StoredSession>, change: SessionChange, version: Version) -> StoredSession {
    let (files, skipped, sync_state) =
        stored.map_or_else(Default::default, |of| (of.metadata_files, of.skipped, of.sync_state));
    StoredSession {
        session: change.session,
        version,
        metadata_files: change.metadata_files.unwrap_or(files),
        skipped: change.skipped.unwrap_or(skipped),
        sync_state: change.sync_state.or(sync_state),
    }
}
