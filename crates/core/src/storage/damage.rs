//! Reading around rows that can't be read.
//!
//! If a backend finds a row that can't be read, it fails with [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) and
//! names the row. Methods that read many rows skip that row, continue, and report it. If the backend can't tell which
//! row it is, because a part of a file can't be read, they request fewer and fewer rows.

use std::sync::PoisonError;

use async_trait::async_trait;

use super::{
    read_meter::fitting,
    store::{SessionCatalog, StoreContext},
};
use crate::{
    Error, ErrorKind, Result,
    backend::{SequenceRange, SessionQuery, StorageBackend},
    model::{
        DamagedRow, Digest, Event, Message, MessageRef, RowKind, Session, SessionId, SessionKey, UserId,
    },
};

/// If a page of rows can't be read, at most this many rows are requested next.
const LARGEST_HALF: usize = 1_000;

/// The size of an event without its line.
const EVENT_BYTES: usize = 1_000;

/// Rows that were read, and rows that were skipped because they can't be read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Readable<T> {
    /// The rows, in order.
    pub rows: Vec<T>,
    /// The rows that were skipped.
    pub damaged: Vec<DamagedRow>,
}

impl<T> Readable<T> {
    /// The rows, if no row was skipped.
    ///
    /// # Errors
    ///
    /// `Damaged` with the first one that was skipped.
    pub fn whole(self) -> Result<Vec<T>> {
        match self.damaged.into_iter().next() {
            None => Ok(self.rows),
            Some(DamagedRow { user_id, session_id, sequence, reason, .. }) => {
                let error =
                    Error::new(ErrorKind::Damaged, reason).with("user", user_id).with("session", session_id);
                Err(match sequence {
                    Some(sequence) => error.with("sequence", sequence),
                    None => error,
                })
            }
        }
    }
}

impl<T> Default for Readable<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), damaged: Vec::new() }
    }
}

/// Rows of a session in order of sequence.
#[async_trait]
pub(super) trait SequencedRow: Sized + Send {
    const KIND: RowKind;
    /// The number of rows to read first, before their size is known.
    const FIRST: usize;

    fn sequence(&self) -> u32;

    /// The approximate size in memory.
    fn bytes(&self) -> usize;

    fn digest(&self) -> Digest;

    async fn read(backend: &dyn StorageBackend, key: &SessionKey, range: SequenceRange) -> Result<Vec<Self>>;
}

#[async_trait]
impl SequencedRow for Message {
    const KIND: RowKind = RowKind::Message;
    // Lines may have megabytes.
    const FIRST: usize = 16;

    fn sequence(&self) -> u32 {
        self.sequence
    }

    fn bytes(&self) -> usize {
        self.raw.as_bytes().len()
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    async fn read(backend: &dyn StorageBackend, key: &SessionKey, range: SequenceRange) -> Result<Vec<Self>> {
        backend.read_messages(key, range).await
    }
}

#[async_trait]
impl SequencedRow for Event {
    const KIND: RowKind = RowKind::Event;
    const FIRST: usize = 1_000;

    fn sequence(&self) -> u32 {
        self.sequence
    }

    fn bytes(&self) -> usize {
        EVENT_BYTES
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    async fn read(backend: &dyn StorageBackend, key: &SessionKey, range: SequenceRange) -> Result<Vec<Self>> {
        backend.read_events(key, range).await
    }
}

impl StoreContext {
    /// One page of the rows of a session, without those that can't be read. Empty only at the end.
    pub(super) async fn readable_page<T: SequencedRow>(
        &self,
        key: &SessionKey,
        mut range: SequenceRange,
        damaged: &mut Vec<DamagedRow>,
    ) -> Result<Vec<T>> {
        loop {
            let error = match T::read(&*self.backend, key, range).await {
                Ok(rows) => return Ok(rows),
                Err(error) => error,
            };
            // The damaged row must be in this range.
            let Some(sequence) = sequence_of(&error).filter(|sequence| *sequence >= range.start) else {
                if error.kind() != ErrorKind::Damaged {
                    return Err(error);
                }
                if range.limit > 1 {
                    range.limit = (range.limit / 2).min(LARGEST_HALF);
                    continue;
                }
                if range.start >= self.row_count(T::KIND, key, &error).await? {
                    return Ok(Vec::new());
                }
                damaged.push(DamagedRow::new(T::KIND, key, Some(range.start), &error));
                range.start += 1;
                continue;
            };
            let before = (sequence - range.start) as usize;
            if before > 0 {
                let range = SequenceRange { limit: range.limit.min(before), ..range };
                let rows = T::read(&*self.backend, key, range).await?;
                // The next page begins with the damaged row, or with rows before it that did not fit into a page.
                if !rows.is_empty() {
                    return Ok(rows);
                }
            }
            damaged.push(DamagedRow::new(T::KIND, key, Some(sequence), &error));
            let Some(next) = sequence.checked_add(1) else { return Ok(Vec::new()) };
            range.start = next;
        }
    }

    /// The number of rows of a session, by its record. Fails with `error` if there is no session.
    async fn row_count(&self, kind: RowKind, key: &SessionKey, error: &Error) -> Result<u32> {
        let stored = self.backend.get_session(key).await?.ok_or_else(|| error.clone())?;
        Ok(match kind {
            RowKind::Event => stored.session.event_count,
            _ => stored.session.message_count,
        })
    }

    /// Up to `limit` rows of a session from `start` on, without those that can't be read.
    pub(super) async fn readable_rows<T: SequencedRow>(
        &self,
        key: &SessionKey,
        start: u32,
        limit: usize,
    ) -> Result<Readable<T>> {
        self.rows_while(key, start, limit, |page| Ok(page.len())).await
    }

    /// [`Self::readable_rows`] for an answer, which has at most `most` bytes, or one row.
    pub(super) async fn answered_rows<T: SequencedRow>(
        &self,
        key: &SessionKey,
        start: u32,
        limit: usize,
        most: usize,
    ) -> Result<Readable<T>> {
        let mut taken = 0;
        let count_of = |page: &[T]| {
            let before = taken;
            let count = fitting(page.iter().map(SequencedRow::bytes), &mut taken, most);
            self.count_read(taken - before)?;
            Ok(count)
        };
        self.rows_while(key, start, limit, count_of).await
    }

    /// Rows until not all of a page fit.
    async fn rows_while<T: SequencedRow>(
        &self,
        key: &SessionKey,
        mut start: u32,
        limit: usize,
        mut count_of: impl FnMut(&[T]) -> Result<usize>,
    ) -> Result<Readable<T>> {
        let (mut found, mut is_full): (Readable<T>, bool) = (Readable::default(), false);
        while !is_full && found.rows.len() < limit {
            let range = SequenceRange { start, limit: limit - found.rows.len() };
            let mut page: Vec<T> = self.readable_page(key, range, &mut found.damaged).await?;
            let Some(last) = page.last() else { break };
            start = last.sequence().saturating_add(1);
            let count = count_of(&page)?;
            is_full = count < page.len();
            page.truncate(count);
            found.rows.extend(page);
        }
        Ok(found)
    }

    pub(super) fn remember_damaged(&self, rows: Vec<DamagedRow>) {
        self.damaged_sessions.lock().unwrap_or_else(PoisonError::into_inner).extend(rows);
    }

    /// One page of sessions, without those that can't be read, which are added to `query.without`.
    pub(super) async fn readable_sessions(
        &self,
        query: &mut SessionQuery,
        damaged: &mut Vec<DamagedRow>,
    ) -> Result<Vec<Session>> {
        loop {
            let error = match self.backend.list_sessions(query).await {
                Ok(page) => return self.masked_sessions(page),
                Err(error) => error,
            };
            let new = damaged_session(&error).filter(|key| !query.without.contains(key));
            let Some(key) = new else { return Err(error) };
            damaged.push(DamagedRow::of_session(&key, &error));
            query.without.push(key);
        }
    }

    /// The messages at `places` that can be read.
    pub(super) async fn readable_messages_at(
        &self,
        mut message_refs: Vec<MessageRef>,
    ) -> Result<Readable<Message>> {
        let mut damaged = Vec::new();
        loop {
            match self.backend.messages_at(&message_refs).await {
                Ok(rows) => return Ok(Readable { rows, damaged }),
                // It is not known which message can't be read.
                Err(error) if error.kind() == ErrorKind::Damaged && ref_of(&error).is_none() => {
                    return self.readable_messages_one_by_one(message_refs).await;
                }
                Err(error) => {
                    let message_ref = ref_of(&error).filter(|message_ref| message_refs.contains(message_ref));
                    let Some(message_ref) = message_ref else { return Err(error) };
                    damaged.push(DamagedRow::new(
                        RowKind::Message,
                        &message_ref.session,
                        Some(message_ref.sequence),
                        &error,
                    ));
                    message_refs.retain(|other| *other != message_ref);
                }
            }
        }
    }
}

impl SessionCatalog<'_> {
    /// The sessions that this storage and its clones have skipped because they can't be read: in lists, and in
    /// statistics and other data derived from lists. Check this after a call. Requesting one of these sessions by its
    /// id fails with [`ErrorKind::Damaged`].
    #[must_use]
    pub fn damaged_sessions(self) -> Vec<DamagedRow> {
        self.store.damaged_sessions.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl StoreContext {
    async fn readable_messages_one_by_one(&self, message_refs: Vec<MessageRef>) -> Result<Readable<Message>> {
        let mut found: Readable<Message> = Readable::default();
        for message_ref in message_refs {
            match self.backend.messages_at(std::slice::from_ref(&message_ref)).await {
                Ok(rows) => found.rows.extend(rows),
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    let MessageRef { session, sequence } = &message_ref;
                    found.damaged.push(DamagedRow::new(RowKind::Message, session, Some(*sequence), &error));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

/// The damaged session in an error.
fn damaged_session(error: &Error) -> Option<SessionKey> {
    if error.kind() != ErrorKind::Damaged {
        return None;
    }
    let user = UserId::new(error.context("user")?).ok()?;
    let session = SessionId::new(error.context("session")?).ok()?;
    Some(SessionKey::new(user, session))
}

/// The damaged event in an error.
pub(super) fn damaged_event(error: &Error) -> Option<(MessageRef, DamagedRow)> {
    let event = ref_of(error)?;
    let row = DamagedRow::new(RowKind::Event, &event.session, Some(event.sequence), error);
    Some((event, row))
}

/// The damaged event in an error, if it is this one.
pub(super) fn damaged_payload(key: &SessionKey, sequence: u32, error: &Error) -> Option<DamagedRow> {
    let is_damaged = error.kind() == ErrorKind::Damaged;
    is_damaged.then(|| DamagedRow::new(RowKind::Event, key, Some(sequence), error))
}

/// The damaged row in an error.
fn ref_of(error: &Error) -> Option<MessageRef> {
    Some(MessageRef::new(damaged_session(error)?, sequence_of(error)?))
}

fn sequence_of(error: &Error) -> Option<u32> {
    if error.kind() != ErrorKind::Damaged {
        return None;
    }
    error.context("sequence")?.parse().ok()
}
