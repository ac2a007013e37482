//! The transactions that write.
//!
//! | file | contents |
//! | --- | --- |
//! | `mod.rs` | entries of the table of metadata |
//! | `sessions.rs` | writing and renaming sessions |
//! | `event_ids.rs` | freeing ids of events that damaged rows have |
//! | `deletion.rs` | deleting sessions, and recording what is still to be erased |
//! | `integrity.rs` | removing rows that belong to nothing |
//! | `removal.rs` | removing rows of a session, and recording it for the index |
//! | `superseded.rs` | writing and removing superseded lines |
//! | `turns.rs` | summaries of turns, and what a change of lines does to the vectors of turns |
//! | `vectors.rs` | writing vectors, and the life of their generations |

mod deletion;
mod event_ids;
mod integrity;
mod removal;
mod sessions;
mod superseded;
mod turns;
mod vectors;

use amplifier_session_core::Result;

use super::{Database, Writer};
use crate::{Query, Reader, Statement, Value, rows::removed, turns::EMBEDDINGS};

pub(super) use deletion::delete_session;
pub(super) use integrity::remove_stray_rows;
pub(super) use sessions::{rename_user, sessions};
pub(super) use superseded::prune_superseded;
pub(super) use turns::summaries;
pub(super) use vectors::{complete_generation, mark_pending, prune_vectors, vectors};

/// [`Meta::swap_meta`](amplifier_session_core::backend::Meta::swap_meta).
pub(super) fn swap_meta<D: Database>(
    database: &D,
    key: &str,
    expected: Option<&str>,
    value: &str,
) -> Result<Option<String>> {
    const OPERATION: &str = "swap_meta";
    database.transaction(OPERATION, |writer| {
        let (sql, values): (_, Vec<Value>) = match expected {
            Some(expected) => (
                "UPDATE schema_meta SET value = ?3 WHERE key = ?1 AND value = ?2",
                vec![key.into(), expected.into(), value.into()],
            ),
            None => (
                "INSERT INTO schema_meta (key, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                vec![key.into(), value.into()],
            ),
        };
        writer.execute(&Statement::new(OPERATION, sql, values))?;
        let stored = "SELECT value FROM schema_meta WHERE key = ?1";
        writer.first(&Query::new(OPERATION, stored, [key.into()], |row| row.text(0)))
    })
}

/// The tables of vectors, with the kinds of their rows in `removed`.
fn vector_tables<R: Reader>(_: &R) -> impl Iterator<Item = (&'static str, i64)> {
    let of_texts = R::DIALECT.vector_tables.iter().map(|table| (*table, removed::VECTOR));
    of_texts.chain([(EMBEDDINGS.name, removed::TURN)])
}

/// The beginning of a statement that changes many rows.
fn update<R: Reader>(_: &R) -> &'static str {
    R::DIALECT.update
}

/// Whether removed vectors are recorded for the index.
fn records_vectors<R: Reader>(_: &R) -> bool {
    R::DIALECT.records_removed_vectors
}

fn own_tables<R: Reader>(_: &R) -> &'static [&'static str] {
    R::DIALECT.own_tables
}
