//! Removing rows of a session, and recording it for the index.

use amplifier_session_core::{Result, model::SessionKey};

use super::{records_vectors, update, vector_tables};
use crate::{Statement, backend::Writer, read::of_session, rows::removed};

/// The rows of a session, in all tables, to be removed or changed. `which` is a condition that selects some of them.
pub(super) struct RowsOf<'a, W> {
    /// The operation, for errors.
    pub(super) operation: &'static str,
    pub(super) writer: &'a W,
    pub(super) key: &'a SessionKey,
}

impl<W: Writer> RowsOf<'_, W> {
    /// Removes messages with their vectors, and records it for the index.
    pub(super) fn remove_messages(&self, which: &str, revision: i64) -> Result<()> {
        if self.remove_recorded(removed::MESSAGE, "transcripts", which, revision)? > 0 {
            self.remove_vectors(which, revision)?;
        }
        Ok(())
    }

    /// Removes vectors with their failures, and records it for the index.
    pub(super) fn remove_vectors(&self, which: &str, revision: i64) -> Result<()> {
        for (table, kind) in vector_tables(self.writer) {
            self.remove_recorded(kind, table, which, revision)?;
        }
        self.remove("vector_failures", which).map(drop)
    }

    /// Removes events.
    pub(super) fn remove_events(&self, which: &str) -> Result<()> {
        self.remove("events", which)?;
        self.remove("event_chunks", which).map(drop)
    }

    /// Removes rows that the index contains; returns their number.
    pub(super) fn remove_recorded(
        &self,
        kind: i64,
        table: &str,
        which: &str,
        revision: i64,
    ) -> Result<usize> {
        if kind != removed::MESSAGE && !records_vectors(self.writer) {
            return self.remove(table, which);
        }
        let user = if W::DIALECT.removed_of_users { "user_id, " } else { "" };
        let sql = format!(
            "INSERT INTO removed ({user}kind, revision, key)
             SELECT {user}{kind}, {revision}, key FROM {table} WHERE user_id = ?1 AND session_id = ?2 AND {which}"
        );
        // Most writes append, so there is nothing to remove.
        if self.execute_once(sql)? > 0 { self.remove(table, which) } else { Ok(0) }
    }

    /// Removes all rows from a table.
    pub(super) fn delete(&self, table: &str) -> Result<()> {
        let sql = format!("DELETE FROM {table} WHERE user_id = ?1 AND session_id = ?2");
        self.writer.execute(&Statement::new(self.operation, sql, of_session(self.key))).map(drop)
    }

    fn remove(&self, table: &str, which: &str) -> Result<usize> {
        self.execute_once(format!("DELETE FROM {table} WHERE user_id = ?1 AND session_id = ?2 AND {which}"))
    }

    /// Gives vectors, and also `messages`, a new revision, so that the index reads them again.
    pub(super) fn touch(&self, which: &str, revision: i64, messages: bool) -> Result<()> {
        let messages = messages.then_some("transcripts");
        for table in messages.into_iter().chain(vector_tables(self.writer).map(|(table, _)| table)) {
            self.execute_once(format!(
                "{} {table} SET revision = {revision} WHERE user_id = ?1 AND session_id = ?2 AND {which}",
                update(self.writer)
            ))?;
        }
        Ok(())
    }

    /// Runs a statement on the session `?1` and `?2`; returns the number of changed rows.
    pub(super) fn execute_once(&self, sql: String) -> Result<usize> {
        self.writer.execute(&Statement::once(self.operation, sql, of_session(self.key)))
    }
}
