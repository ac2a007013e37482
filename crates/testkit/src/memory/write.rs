//! Writes in batches, like a store that limits the size of transactions.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::take,
    sync::PoisonError,
};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{RemovedMessages, SessionChange, SessionDeletion, StoredSession, Version},
    model::{Message, Retimed, SessionKey, StoredEvent, SupersededPiece},
};

use super::{
    MemoryBackend,
    rows::{MessageRow, Rows, SessionRows},
};
use crate::flaky::count_down;

/// The maximum number of rows in a batch.
const BATCH: usize = 5;

/// A step of a write. Each step can be repeated.
enum Step {
    Supersede(Box<SupersededPiece>),
    RemoveMessage(u32),
    RemoveEvent(u32),
    PutMessage(Box<Message>),
    Retime(Retimed),
    PutEvent(Box<StoredEvent>),
    ChangeTurns { turns: BTreeSet<u32>, removed: RemovedMessages, current: u32 },
}

impl MemoryBackend {
    /// Writes the rows first and the session last: until the session has its new version, the write can be repeated.
    pub(super) async fn write_change(&self, mut change: SessionChange) -> Result<Version> {
        let key = change.session.key();
        let _lease = self.shared.leases.lock(&key).await;
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
        let before = session.stored.take();
        let user = change.session.user_id.clone();
        rows.log.add(change.session.key(), before.as_ref().map(|stored| stored.session.clone()));
        session.stored = Some(merged(before, change, version.clone()));
        self.shared.signal.send([&user]);
        Ok(version)
    }

    /// Deletes the rows first and the session last: while the session exists, the deletion can be repeated.
    pub(super) async fn delete(&self, session: &SessionDeletion) -> Result<bool> {
        let key = &session.key;
        let _lease = self.shared.leases.lock(key).await;
        let steps = {
            let rows = self.rows();
            let version = rows.stored(key).map(|stored| &stored.version);
            if version.zip(session.expected.as_ref()).is_some_and(|(version, expected)| version != expected) {
                return Err(changed_meanwhile(key));
            }
            removals(&rows, key, 0, 0)
        };
        self.run(key, steps).await?;
        let rows = &mut *self.rows();
        let deleted = rows.sessions.remove(key).and_then(|session| session.stored);
        let existed = deleted.is_some();
        if let Some(stored) = deleted {
            rows.deleted.insert(key.clone());
            rows.log.add(key.clone(), Some(stored.session));
            self.shared.signal.send([&key.user_id]);
        }
        Ok(existed)
    }

    /// Runs `steps` in batches, with other calls in between. The last step, which completes the change, is a separate
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

    /// Counts a batch, and fails in place of the batch to interrupt.
    fn interrupt(&self) -> Result<()> {
        let mut left = self.shared.interruption.lock().unwrap_or_else(PoisonError::into_inner);
        if count_down(&mut left) {
            Err(Error::new(ErrorKind::StorageIo, "the write was interrupted on demand").retryable())
        } else {
            Ok(())
        }
    }
}

fn check(rows: &Rows, key: &SessionKey, change: &SessionChange) -> Result<()> {
    if rows.stored(key).map(|stored| &stored.version) != change.expected.as_ref() {
        return Err(changed_meanwhile(key));
    }
    // `core` checked that the ids are free, but another session may have taken them since.
    let ids = change.events.put.iter().map(|stored| &stored.event.event_id);
    if rows.find_events(&key.user_id, ids).iter().any(|(_, event)| event.session != *key) {
        return Err(conflict("another session has an event of this id"));
    }
    Ok(())
}

fn changed_meanwhile(key: &SessionKey) -> Error {
    conflict("the session was changed by another writer").with("session", &key.session_id)
}

fn conflict(message: &str) -> Error {
    Error::new(ErrorKind::Conflict, message).retryable()
}

/// The steps before the session itself is written.
fn steps(rows: &Rows, key: &SessionKey, change: &mut SessionChange) -> Vec<Step> {
    let length = |truncate: Option<u32>| truncate.unwrap_or(u32::MAX);
    // Before the rows with the original lines are removed.
    let superseded = take(&mut change.superseded).into_iter().map(Box::new).map(Step::Supersede);
    let mut steps: Vec<Step> = superseded.collect();
    let removed = change.removed_messages();
    if let Some(session) = rows.sessions.get(key).filter(|_| !removed.is_empty()) {
        let stored = session.messages.values().map(|row| &row.message);
        let stored = stored.filter(|message| removed.has(message.sequence));
        let turns = stored.chain(&change.messages.put).filter_map(|message| message.turn).collect();
        steps.push(Step::ChangeTurns { turns, removed, current: rows.generations().current_number() });
    }
    steps.extend(removals(rows, key, length(change.messages.truncate), length(change.events.truncate)));
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
            Step::Supersede(piece) => {
                self.superseded.entry(piece.id.clone()).or_insert(*piece);
            }
            Step::ChangeTurns { turns, removed, current } => self.change_turns(&turns, &removed, current),
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
