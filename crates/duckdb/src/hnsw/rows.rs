//! What the HNSW index reads of the rows: what the search index does, and vectors of the current generation in the order
//! of their keys.

use std::sync::OnceLock;

use amplifier_session_core::{Result, model::UserId};
use amplifier_session_sql::{Query, Reader, embedded::IndexRows};
use duckdb::arrow::{
    array::{Array, Int64Array},
    record_batch::RecordBatch,
};

use crate::{connection::Read, error::storage};

/// How many vectors are handed on at once in columns.
const BATCH: usize = 8192;

/// The rows as one transaction sees them.
pub(super) struct HnswRows<'a> {
    pub(super) reader: &'a Read<'a>,
    pub(super) index: IndexRows<'a, Read<'a>>,
}

impl<'a> HnswRows<'a> {
    pub(super) fn new(reader: &'a Read<'a>, store: &'a OnceLock<[u8; 16]>) -> Self {
        Self { reader, index: IndexRows::new(reader, store) }
    }

    /// Whether every session is this user's.
    pub(super) fn are_all_of(&self, user: &UserId) -> Result<bool> {
        let sql = "SELECT 1 FROM sessions WHERE user_id <> ?1 LIMIT 1";
        let other = Query::new("read_rows", sql, [user.as_str().into()], |_| Ok(()));
        Ok(self.reader.first(&other)?.is_none())
    }

    /// The highest key, 0 where there are no vectors.
    pub(super) fn last_vector_key(&self) -> Result<i64> {
        let sql = "SELECT coalesce(max(key), 0) FROM transcript_vectors";
        Ok(self.reader.first(&Query::new("read_rows", sql, [], |row| row.integer(0)))?.unwrap_or(0))
    }

    /// Calls `each` with those above a key, some at a time, in columns `key` and `vector`.
    pub(super) fn vector_batches_after(
        &self,
        mut key: i64,
        mut each: impl FnMut(RecordBatch) -> duckdb::Result<()>,
    ) -> Result<()> {
        let sql =
            format!("SELECT key, vector FROM transcript_vectors WHERE key > ?1 ORDER BY key LIMIT {BATCH}");
        loop {
            let mut statement = self.reader.0.prepare(&sql).map_err(storage("read_rows"))?;
            let batches: Vec<RecordBatch> =
                statement.query_arrow([key]).map_err(storage("read_rows"))?.collect();
            let Some(last) = batches.iter().filter_map(last_key).next_back() else { return Ok(()) };
            key = last;
            batches.into_iter().try_for_each(&mut each).map_err(storage("hnsw"))?;
        }
    }
}

/// The last number in the first column.
fn last_key(batch: &RecordBatch) -> Option<i64> {
    batch.column(0).as_any().downcast_ref::<Int64Array>()?.values().last().copied()
}
