//! The indexes of the database: comparing them with the tables, and rebuilding them.
//!
//! SQLite finds rows by their indexes. After a flipped bit in a key, either in an index or in its table, a row is not
//! found, can't be removed, and can't be written again, because another index still has its key.

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

/// At most this many differences are described.
const LISTED: usize = 100;

/// The tables whose keys are more than their row ids: name, unique index, and the columns of the index.
const KEYS: [(&str, &str, &str); 4] = [
    ("transcripts", "sqlite_autoindex_transcripts_1", "user_id, session_id, sequence"),
    (
        "transcript_vectors",
        "sqlite_autoindex_transcript_vectors_1",
        "user_id, session_id, sequence, generation, content_type, chunk_index",
    ),
    ("events", "sqlite_autoindex_events_1", "user_id, session_id, sequence"),
    ("events", "sqlite_autoindex_events_2", "user_id, event_id"),
];

/// The differences between indexes and tables, in SQLite's words. Other damage is found by reading the rows.
pub(crate) fn check(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({LISTED})"))?;
    let found = statement.query_map([], |row| row.get::<_, String>(0))?;
    let found: Vec<String> = match found.collect() {
        Err(error) if is_damage(&error) => return Ok(Vec::new()),
        found => found?,
    };
    Ok(found.into_iter().filter(|problem| is_about_index(problem)).collect())
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::SystemIoFailure))
}

fn is_about_index(problem: &str) -> bool {
    ["missing from index", "entries in index", "non-unique entry in index"]
        .iter()
        .any(|words| problem.contains(words))
}

/// Rebuilds all indexes from their tables.
///
/// If two rows of a table then have the same key, one of them was changed by damage. The index still has its key, which
/// is written back to the table.
pub(crate) fn rebuild(connection: &mut Connection) -> rusqlite::Result<()> {
    match connection.execute_batch("REINDEX") {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {}
        rebuilt => return rebuilt,
    }
    // Otherwise, SQLite refuses to change a row that an index does not have.
    connection.pragma_update(None, "writable_schema", true)?;
    let restored = restore_keys(connection);
    connection.pragma_update(None, "writable_schema", false)?;
    restored
}

fn restore_keys(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (table, index, columns) in KEYS {
        restore(&transaction, table, index, columns)?;
    }
    transaction.execute_batch("REINDEX")?;
    transaction.commit()
}

/// Writes the values of an index to the rows of its table that have others.
fn restore(transaction: &Transaction<'_>, table: &str, index: &str, columns: &str) -> rusqlite::Result<()> {
    let differing = format!(
        "CREATE TEMP TABLE differing AS
         SELECT rowid AS number, {columns} FROM {table} INDEXED BY {index}
         EXCEPT SELECT rowid, {columns} FROM {table} NOT INDEXED;
         UPDATE {table} SET ({columns}) = (SELECT {columns} FROM differing WHERE number = {table}.rowid)
         WHERE rowid IN (SELECT number FROM differing);
         DROP TABLE differing;"
    );
    transaction.execute_batch(&differing)
}
