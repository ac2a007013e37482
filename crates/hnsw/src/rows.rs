//! The rows that the index reads.

use std::sync::OnceLock;

use amplifier_session_core::{Result, backend::meta::Generation, model::UserId};
use amplifier_session_sql::{Query, Reader, embedded::IndexRows, read};
use duckdb::arrow::record_batch::RecordBatch;

/// A connection that reads vectors in columns.
pub trait VectorReader: Reader {
    /// Calls `each` with the vectors of the current generation above a key, in the order of their keys, in batches with the
    /// columns `key` and `vector`.
    ///
    /// # Errors
    ///
    /// Errors of the database and of `each`.
    fn vectors_above(&self, key: i64, each: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()>;
}

/// The rows of a store in the snapshot of one read transaction.
#[derive(Debug)]
pub struct VectorRows<'a, R> {
    pub(crate) reader: &'a R,
    /// The rows in the form that the search index reads.
    pub(crate) index: IndexRows<'a, R>,
}

impl<'a, R: VectorReader> VectorRows<'a, R> {
    /// The rows of `reader`, which reads one snapshot. `store` caches the store's identity.
    #[must_use]
    pub fn new(reader: &'a R, store: &'a OnceLock<[u8; 16]>) -> Self {
        Self { reader, index: IndexRows::new(reader, store) }
    }

    /// The generation that is searched, if there are vectors.
    pub(crate) fn current_generation(&self) -> Result<Option<Generation>> {
        Ok(read::meta::generations(self.reader)?.current)
    }

    /// Whether all sessions belong to this user.
    pub(crate) fn are_all_of(&self, user: &UserId) -> Result<bool> {
        let sql = "SELECT 1 FROM sessions WHERE user_id <> ?1 LIMIT 1";
        let other = Query::new("read_rows", sql, [user.as_str().into()], |_| Ok(()));
        Ok(self.reader.first(&other)?.is_none())
    }

    /// The highest key of a vector of the current generation; 0 if there are no vectors.
    pub(crate) fn last_vector_key(&self) -> Result<i64> {
        let sql = "SELECT coalesce(max(key), 0) FROM transcript_vectors";
        Ok(self.reader.first(&Query::new("read_rows", sql, [], |row| row.integer(0)))?.unwrap_or(0))
    }
}
