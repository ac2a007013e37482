//! Deleting sessions, and recording what is still to be erased.

use amplifier_session_core::{Result, model::SessionKey};

use super::{leftover::Leftover, removal::RowsOf, sessions::Stored};
use crate::{
    Query, Reader, Statement, deletions,
    embedded::{Database, Writer},
    number,
    read::of_session,
    rows,
    superseded::{self, NAME as TABLE},
};

const OPERATION: &str = "delete_session";

/// One transaction removes at most this many messages and this many events: the write-ahead log contains what it
/// changes.
const BATCH_ROWS: usize = 4_000;

/// One transaction removes rows with about this many bytes of messages, and of events.
const BATCH_BYTES: u64 = 16 << 20;

/// One transaction removes at most this many pieces of superseded lines.
const BATCH_PIECES: usize = 32;

/// Removes a session with everything that belongs to it; returns whether it existed.
///
/// A long session is removed in several transactions, from its end, so that neither memory nor the write-ahead log grows
/// with it. The session is removed with its last rows: if the process is killed before, it exists with fewer rows, which
/// the next sync reads again.
pub(in crate::embedded) fn delete_session<D: Database>(database: &D, key: &SessionKey) -> Result<bool> {
    let mut existed = false;
    loop {
        match database.transaction(OPERATION, |writer| remove_batch(writer, key))? {
            Removed::Nothing => return Ok(existed),
            Removed::Rows => existed = true,
            Removed::Session => return Ok(true),
        }
    }
}

/// What a transaction has removed.
enum Removed {
    /// There was no such session.
    Nothing,
    /// Some rows of the session.
    Rows,
    /// The session, with all rows that it still had.
    Session,
}

fn remove_batch<W: Writer>(writer: &mut W, key: &SessionKey) -> Result<Removed> {
    if writer.first(&Stored::query(key))?.is_none() {
        return Ok(Removed::Nothing);
    }
    let revision = writer.next_revision()?;
    for leftover in Leftover::ALL {
        leftover.record(writer, revision)?;
    }
    let rows = RowsOf { operation: OPERATION, writer: &*writer, key };
    if let Some(start) = start_of_batch(writer, key, "transcripts", "octet_length(raw)")? {
        rows.remove_messages(&format!("sequence >= {start}"), revision)?;
        truncated(writer, key, "message_count", start, revision)?;
        return Ok(Removed::Rows);
    }
    if let Some(start) = start_of_batch(writer, key, "events", "data_size_bytes")? {
        rows.remove_events(&format!("sequence >= {start}"))?;
        truncated(writer, key, "event_count", start, revision)?;
        return Ok(Removed::Rows);
    }
    if let Some(next) = superseded::id_at(writer, key, BATCH_PIECES)? {
        // Ids are made of letters, digits and hyphens.
        rows.execute_once(format!(
            "DELETE FROM {TABLE} WHERE user_id = ?1 AND session_id = ?2 AND id < '{next}'"
        ))?;
        return Ok(Removed::Rows);
    }
    rows.remove_messages("TRUE", revision)?;
    rows.remove_events("TRUE")?;
    for table in [TABLE, "metadata_files", "sessions"] {
        rows.delete(table)?;
    }
    for sql in [deletions::FORGET, deletions::REMEMBER] {
        writer.execute(&Statement::new(OPERATION, sql, of_session(key)))?;
    }
    Ok(Removed::Session)
}

/// The first sequence of the last rows of a session that one transaction can remove. `None` if it can remove all.
fn start_of_batch(reader: &impl Reader, key: &SessionKey, table: &str, length: &str) -> Result<Option<u32>> {
    let sql = format!(
        "SELECT sequence, {length} FROM {table} WHERE user_id = ?1 AND session_id = ?2
         ORDER BY sequence DESC LIMIT {}",
        BATCH_ROWS + 1
    );
    let decode = |row: &dyn crate::Columns| Ok((number(row, 0)?, rows::count(row, 1)?));
    let last = reader.rows(&Query::new(OPERATION, sql, of_session(key), decode).once())?;
    Ok(batch(&last).filter(|count| *count < last.len()).and_then(|count| Some(last.get(count - 1)?.0)))
}

/// The number of rows, given by sequence and length, that one transaction removes: at least one.
fn batch(rows: &[(u32, u64)]) -> Option<usize> {
    let mut bytes = 0;
    let fits = |(at, (_, length)): (usize, &(u32, u64))| {
        bytes += length;
        at == 0 || (at < BATCH_ROWS && bytes <= BATCH_BYTES)
    };
    let count = rows.iter().enumerate().map(fits).take_while(|fits| *fits).count();
    (count > 0).then_some(count)
}

/// Records that a session ends before `start`. A write that knew the rows becomes a conflict, and a sync reads them again.
fn truncated<W: Writer>(
    writer: &W,
    key: &SessionKey,
    counter: &str,
    start: u32,
    revision: i64,
) -> Result<()> {
    let sql = format!(
        "UPDATE sessions SET {counter} = {start}, sync_state = NULL, revision = {revision}
         WHERE user_id = ?1 AND session_id = ?2"
    );
    writer.execute(&Statement::once(OPERATION, sql, of_session(key))).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_keeps_within_both_limits() {
        assert_eq!(batch(&[]), None);
        assert_eq!(batch(&[(9, 1), (8, 1)]), Some(2));
        assert_eq!(batch(&[(9, BATCH_BYTES + 1), (8, 1)]), Some(1));
        assert_eq!(batch(&[(9, BATCH_BYTES), (8, 0), (7, 1)]), Some(2));
        assert_eq!(batch(&vec![(1, 1); BATCH_ROWS + 1]), Some(BATCH_ROWS));
    }
}
