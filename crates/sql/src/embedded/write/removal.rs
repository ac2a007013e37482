//! Removing rows of a session, and recording it for the index.

use amplifier_session_core::{Result, model::SessionKey};

use super::vector_tables;
use crate::{Statement, embedded::Writer, read::of_session, rows::removed};

/// Removes the messages of a session that match the condition `which`, with their vectors, and records it for the index.
pub(super) fn remove_messages(
    operation: &'static str,
    writer: &impl Writer,
    key: &SessionKey,
    which: &str,
    revision: i64,
) -> Result<()> {
    if remove_recorded(operation, writer, removed::MESSAGE, "transcripts", key, which, revision)? > 0 {
        remove_vectors(operation, writer, key, which, revision)?;
    }
    Ok(())
}

/// Removes the vectors of a session that match the condition `which`, with their failures, and records it for the index.
pub(super) fn remove_vectors(
    operation: &'static str,
    writer: &impl Writer,
    key: &SessionKey,
    which: &str,
    revision: i64,
) -> Result<()> {
    for table in vector_tables(writer) {
        remove_recorded(operation, writer, removed::VECTOR, table, key, which, revision)?;
    }
    remove(operation, writer, "vector_failures", key, which).map(drop)
}

/// Removes the events of a session that match the condition `which`.
pub(super) fn remove_events(
    operation: &'static str,
    writer: &impl Writer,
    key: &SessionKey,
    which: &str,
) -> Result<()> {
    remove(operation, writer, "events", key, which)?;
    remove(operation, writer, "event_chunks", key, which).map(drop)
}

/// Removes rows that the index knows; returns their number.
fn remove_recorded(
    operation: &'static str,
    writer: &impl Writer,
    kind: i64,
    table: &str,
    key: &SessionKey,
    which: &str,
    revision: i64,
) -> Result<usize> {
    let sql = format!(
        "INSERT INTO removed (kind, revision, key)
         SELECT {kind}, {revision}, key FROM {table} WHERE user_id = ?1 AND session_id = ?2 AND {which}"
    );
    let removed = writer.execute(&Statement::once(operation, sql, of_session(key)))?;
    // Most writes append, so there is nothing to remove.
    if removed > 0 { remove(operation, writer, table, key, which) } else { Ok(0) }
}

/// Removes all rows of a session from a table; returns their number.
pub(super) fn delete(
    operation: &'static str,
    writer: &impl Writer,
    table: &str,
    key: &SessionKey,
) -> Result<usize> {
    let sql = format!("DELETE FROM {table} WHERE user_id = ?1 AND session_id = ?2");
    writer.execute(&Statement::new(operation, sql, of_session(key)))
}

fn remove(
    operation: &'static str,
    writer: &impl Writer,
    table: &str,
    key: &SessionKey,
    which: &str,
) -> Result<usize> {
    let sql = format!("DELETE FROM {table} WHERE user_id = ?1 AND session_id = ?2 AND {which}");
    writer.execute(&Statement::once(operation, sql, of_session(key)))
}

/// Gives rows of a session a new revision, so that the index reads them again.
pub(super) fn touch(
    writer: &impl Writer,
    key: &SessionKey,
    which: &str,
    revision: i64,
    tables: &[&str],
) -> Result<()> {
    for table in tables {
        let sql = format!(
            "UPDATE {table} SET revision = {revision} WHERE user_id = ?1 AND session_id = ?2 AND {which}"
        );
        writer.execute(&Statement::once("write", sql, of_session(key)))?;
    }
    Ok(())
}
