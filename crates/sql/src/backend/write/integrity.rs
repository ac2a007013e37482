//! Removing rows that belong to nothing.

use amplifier_session_core::{Result, model::SessionKey};

use super::{records_vectors, vector_tables};
use crate::{
    Statement,
    backend::{Database, Writer},
    read::{
        integrity::{WITHOUT_MESSAGE, WITHOUT_PAYLOAD},
        of_session,
    },
};

const OPERATION: &str = "remove_stray_rows";

/// Removes rows of a session that belong to no message or event; returns their number.
pub(in crate::backend) fn remove_stray_rows<D: Database>(database: &D, key: &SessionKey) -> Result<u64> {
    database.transaction(OPERATION, |writer| {
        let revision = writer.next_revision()?;
        let execute = |sql: String| writer.execute(&Statement::once(OPERATION, sql, of_session(key)));
        let mine = "t.user_id = ?1 AND t.session_id = ?2";
        let mut count = 0;
        for (table, kind) in vector_tables(&*writer) {
            // The index may contain them.
            if records_vectors(&*writer) {
                execute(format!(
                    "INSERT INTO removed (kind, revision, key) SELECT {}, {revision}, t.key FROM {table} t
                     WHERE {mine} AND {WITHOUT_MESSAGE}",
                    kind
                ))?;
            }
            count += execute(format!("DELETE FROM {table} AS t WHERE {mine} AND {WITHOUT_MESSAGE}"))?;
        }
        for (table, condition) in [("vector_failures", WITHOUT_MESSAGE), ("event_chunks", WITHOUT_PAYLOAD)] {
            count += execute(format!("DELETE FROM {table} AS t WHERE {mine} AND {condition}"))?;
        }
        Ok(count as u64)
    })
}
