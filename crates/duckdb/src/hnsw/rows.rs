//! The rows that the index reads.

use std::sync::OnceLock;

use amplifier_session_core::{Result, backend::meta::Generation, model::UserId};
use amplifier_session_sql::{Query, Reader as _, embedded::IndexRows, read};
use duckdb::arrow::{
    array::{Array as _, Int64Array},
    record_batch::RecordBatch,
};

use crate::{connection::DuckDbReader, error::storage};

/// The number of vectors that are read at once.
const READ_AT_ONCE: usize = 8192;

/// The rows of a store in the snapshot of one read transaction.
#[derive(Debug)]
pub(crate) struct HnswRows<'a> {
    reader: &'a DuckDbReader<'a>,
    /// The rows in the form that the search index reads.
    pub(super) index: IndexRows<'a, DuckDbReader<'a>>,
}

impl<'a> HnswRows<'a> {
    /// The rows of `reader`, which reads one snapshot. `store` caches the store's identity.
    pub(crate) fn new(reader: &'a DuckDbReader<'a>, store: &'a OnceLock<[u8; 16]>) -> Self {
        Self { reader, index: IndexRows::new(reader, store) }
    }

    /// The generation that is searched, if there are vectors.
    pub(super) fn current_generation(&self) -> Result<Option<Generation>> {
        Ok(read::meta::generations(self.reader)?.current)
    }

    /// Whether all sessions belong to this user.
    pub(super) fn are_all_of(&self, user: &UserId) -> Result<bool> {
        let sql = "SELECT 1 FROM sessions WHERE user_id <> ?1 LIMIT 1";
        let other = Query::new("read_rows", sql, [user.as_str().into()], |_| Ok(()));
        Ok(self.reader.first(&other)?.is_none())
    }

    /// The highest key of a vector of the current generation; 0 if there are no vectors.
    pub(super) fn last_vector_key(&self) -> Result<i64> {
        let sql = "SELECT coalesce(max(key), 0) FROM transcript_vectors";
        self.reader.only(&Query::new("read_rows", sql, [], |row| row.integer(0)))
    }

    /// Calls `each` with the vectors of the current generation above a key, in the order of their keys, in batches with
    /// the columns `key` and `vector`.
    pub(super) fn vectors_above(
        &self,
        mut key: i64,
        each: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let sql = format!(
            "SELECT key, vector FROM transcript_vectors WHERE key > ?1 ORDER BY key LIMIT {READ_AT_ONCE}"
        );
        loop {
            let mut statement = self.reader.connection.prepare(&sql).map_err(storage("read_rows"))?;
            let batches: Vec<RecordBatch> =
                statement.query_arrow([key]).map_err(storage("read_rows"))?.collect();
            let Some(last) = batches.iter().filter_map(last_key).next_back() else { return Ok(()) };
            key = last;
            batches.into_iter().try_for_each(&mut *each)?;
        }
    }
}

/// The last number in the first column.
fn last_key(batch: &RecordBatch) -> Option<i64> {
    batch.column(0).as_any().downcast_ref::<Int64Array>()?.values().last().copied()
}
