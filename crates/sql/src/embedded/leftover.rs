//! Records what must still be erased from files.

use amplifier_session_core::Result;

use crate::{
    Query, Reader, Statement,
    backend::{Database, Removed, Writer},
};

/// Data that may still contain words of deleted sessions.
///
/// The table of metadata has an entry for each of them with the revision of the last deletion. The entry is emptied
/// when the words are erased. It is not removed, because DuckDB checks keys before the deletions of the same
/// transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leftover {
    Index,
    Database,
}

impl Leftover {
    /// All of them, in the order in which they are erased.
    pub(super) const ALL: [Self; 2] = [Self::Index, Self::Database];

    /// The data that may contain words of the removed rows.
    pub(super) fn of(removed: Removed) -> &'static [Self] {
        match removed {
            Removed::Session => &Self::ALL,
            Removed::SupersededLines => &[Self::Database],
        }
    }

    /// The kind of place in the store, as in [`StorePlace::what`](amplifier_session_core::backend::StorePlace::what).
    pub(super) fn place(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Database => "store",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::Index => "to_erase_from_index",
            Self::Database => "to_erase_from_database",
        }
    }

    /// Records that words of a deleted session must be erased.
    pub(super) fn record(self, writer: &impl Writer, revision: i64) -> Result<()> {
        let sql = "INSERT INTO schema_meta (key, value) VALUES (?1, ?2)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value";
        let values = [self.key().into(), revision.to_string().into()];
        writer.execute(&Statement::new("delete_session", sql, values)).map(drop)
    }

    /// The revision of the last deletion, if its words must still be erased.
    pub(super) fn recorded(self, reader: &impl Reader) -> Result<Option<String>> {
        let sql = "SELECT value FROM schema_meta WHERE key = ?1 AND value <> ''";
        reader.first(&Query::new("erase", sql, [self.key().into()], |row| row.text(0)))
    }

    /// Records that everything was erased, unless another session was deleted since `revision`.
    pub(super) fn clear<D: Database>(self, database: &D, revision: &str) -> Result<()> {
        let sql = "UPDATE schema_meta SET value = '' WHERE key = ?1 AND value = ?2";
        let values = [self.key().into(), revision.into()];
        database.transaction("erase", |writer| {
            writer.execute(&Statement::new("erase", sql, values.clone())).map(drop)
        })
    }
}
