//! Deleting sessions, and recording what must still be erased.

use amplifier_session_core::{
    Result,
    backend::{RemovedMessages, SessionDeletion, Version},
    model::SessionKey,
};

use super::{
    removal::RowsOf,
    sessions::{Stored, changed_meanwhile, version},
    turns,
};
use crate::{
    Query, Reader, Statement,
    backend::{Database, Removed, Writer},
    deletions, is_disk_full, number,
    read::of_session,
    removals, rows,
    superseded::{self, NAME as TABLE},
    turns::SUMMARIES,
};

const OPERATION: &str = "delete_session";

/// How much one transaction removes. The write-ahead log contains its changes.
#[derive(Debug, Clone, Copy)]
struct DeletionBatch {
    /// At most this many messages, and this many events.
    rows: usize,
    /// Rows with about this many bytes of messages, and of events.
    bytes: u64,
    /// At most this many pieces of superseded lines.
    pieces: usize,
}

impl DeletionBatch {
    const FULL: Self = Self { rows: 4_000, bytes: 16 << 20, pieces: 32 };

    /// A smaller one, unless it already removes only a single row.
    fn smaller(self) -> Option<Self> {
        let part = |number: usize| (number / 8).max(1);
        (self.rows > 1).then(|| Self {
            rows: part(self.rows),
            bytes: self.bytes / 8,
            pieces: part(self.pieces),
        })
    }

    /// The number of rows that one transaction removes, at least one. `rows` are sequences and lengths.
    fn count(self, rows: &[(u32, u64)]) -> Option<usize> {
        let mut bytes = 0;
        let fits = |(at, (_, length)): (usize, &(u32, u64))| {
            bytes += length;
            at == 0 || (at < self.rows && bytes <= self.bytes)
        };
        let count = rows.iter().enumerate().map(fits).take_while(|fits| *fits).count();
        (count > 0).then_some(count)
    }
}

/// Removes a session with everything that belongs to it; returns whether it existed.
///
/// A long session is removed in several transactions, from its end, so that neither memory nor the write-ahead log
/// grows with its length. The last transaction removes the session itself. If the process is killed before, the session
/// exists with fewer rows, and the next sync reads them again.
///
/// On a full disk, `is_tight` makes the transactions smaller until one has room in the write-ahead log, and empties the
/// log after each.
///
/// If a version is expected, each transaction expects that of the one before it. So another attempt can go on with
/// `session`.
pub(in crate::backend) fn delete_session<D: Database>(
    database: &D,
    session: &mut SessionDeletion,
    is_tight: bool,
) -> Result<bool> {
    let (mut existed, mut batch) = (false, DeletionBatch::FULL);
    loop {
        let removed =
            match database.transaction(OPERATION, |writer| remove_batch::<D>(writer, session, batch)) {
                Err(error) if is_tight && is_disk_full(&error) => {
                    batch = batch.smaller().ok_or(error)?;
                    None
                }
                removed => Some(removed?),
            };
        if is_tight && let Err(error) = database.tidy() {
            tracing::debug!(%error, "the write-ahead log could not be emptied on a full disk");
        }
        match removed {
            None => {}
            Some(DeletionStep::Nothing) => return Ok(existed),
            Some(DeletionStep::Rows(version)) => {
                existed = true;
                session.expected = session.expected.take().map(|_| version);
            }
            Some(DeletionStep::Session) => return Ok(true),
        }
    }
}

/// The result of one transaction of a deletion.
enum DeletionStep {
    /// There was no such session.
    Nothing,
    /// Some rows of the session, which has this version now.
    Rows(Version),
    /// The session, with all rows that it still had.
    Session,
}

fn remove_batch<D: Database>(
    writer: &mut D::Writer<'_>,
    SessionDeletion { key, expected }: &SessionDeletion,
    batch: DeletionBatch,
) -> Result<DeletionStep> {
    let Some(stored) = writer.first(&Stored::query(key))? else { return Ok(DeletionStep::Nothing) };
    if expected.as_ref().is_some_and(|expected| *expected != stored.version()) {
        return Err(changed_meanwhile(key));
    }
    let revision = writer.next_revision()?;
    D::removing(writer, revision, Removed::Session)?;
    let rows = RowsOf { operation: OPERATION, writer: &*writer, key };
    if let Some(start) = start_of_batch(writer, key, batch, "transcripts", "octet_length(raw)")? {
        turns::remove_summaries(&rows, &RemovedMessages::from(start))?;
        let which = format!("sequence >= {start}");
        turns::remove_vectors(&rows, &which, revision)?;
        rows.remove_messages(&which, revision)?;
        truncated(writer, key, "message_count", start, revision)?;
        return Ok(DeletionStep::Rows(version(revision)));
    }
    if let Some(start) = start_of_batch(writer, key, batch, "events", "data_size_bytes")? {
        rows.remove_events(&format!("sequence >= {start}"))?;
        truncated(writer, key, "event_count", start, revision)?;
        return Ok(DeletionStep::Rows(version(revision)));
    }
    if let Some(next) = superseded::id_at(writer, key, batch.pieces)? {
        // Ids are made of letters, digits and hyphens.
        rows.execute_once(format!(
            "DELETE FROM {TABLE} WHERE user_id = ?1 AND session_id = ?2 AND id < '{next}'"
        ))?;
        return Ok(DeletionStep::Rows(stored.version()));
    }
    rows.delete(SUMMARIES.name)?;
    rows.remove_messages("TRUE", revision)?;
    rows.remove_events("TRUE")?;
    rows.execute_once(removals::add(revision, "user_id = ?1 AND session_id = ?2"))?;
    for table in [TABLE, "metadata_files", "sessions"] {
        rows.delete(table)?;
    }
    for sql in [deletions::FORGET, deletions::REMEMBER] {
        writer.execute(&Statement::new(OPERATION, sql, of_session(key)))?;
    }
    Ok(DeletionStep::Session)
}

/// The first sequence of the last rows of a session that one transaction can remove. `None` if it can remove all.
fn start_of_batch(
    reader: &impl Reader,
    key: &SessionKey,
    batch: DeletionBatch,
    table: &str,
    length: &str,
) -> Result<Option<u32>> {
    let sql = format!(
        "SELECT sequence, {length} FROM {table} WHERE user_id = ?1 AND session_id = ?2
         ORDER BY sequence DESC LIMIT {}",
        batch.rows + 1
    );
    let decode = |row: &dyn crate::Columns| Ok((number(row, 0)?, rows::count(row, 1)?));
    let last = reader.rows(&Query::new(OPERATION, sql, of_session(key), decode).once())?;
    Ok(batch.count(&last).filter(|count| *count < last.len()).and_then(|count| Some(last.get(count - 1)?.0)))
}

/// Records that a session ends before `start`. A write that knew the rows becomes a conflict, and a sync reads them
/// again.
fn truncated<W: Writer>(
    writer: &W,
    key: &SessionKey,
    counter: &str,
    start: u32,
    revision: i64,
) -> Result<()> {
    let sql = format!(
        "UPDATE sessions SET {counter} = {start}, sync_state = NULL, settled = NULL, rewound_messages = NULL,
             rewound_events = NULL, revision = {revision}{}
         WHERE user_id = ?1 AND session_id = ?2",
        W::DIALECT.changes.set
    );
    writer.execute(&Statement::once(OPERATION, sql, of_session(key))).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_keeps_within_both_limits() {
        let DeletionBatch { rows, bytes, .. } = DeletionBatch::FULL;
        let count = |rows: &[(u32, u64)]| DeletionBatch::FULL.count(rows);
        assert_eq!(count(&[]), None);
        assert_eq!(count(&[(9, 1), (8, 1)]), Some(2));
        assert_eq!(count(&[(9, bytes + 1), (8, 1)]), Some(1));
        assert_eq!(count(&[(9, bytes), (8, 0), (7, 1)]), Some(2));
        assert_eq!(count(&vec![(1, 1); rows + 1]), Some(rows));
    }

    #[test]
    fn batches_shrink_to_a_single_row() {
        let sizes: Vec<usize> = std::iter::successors(Some(DeletionBatch::FULL), |batch| batch.smaller())
            .map(|batch| batch.count(&[(1, 1); 5_000]).unwrap())
            .collect();
        assert_eq!(sizes, [4_000, 500, 62, 7, 1]);
    }
}
