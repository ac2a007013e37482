//! The rows as the HNSW index reads them.

use std::sync::OnceLock;

use amplifier_session_core::{Result, backend::meta::Generation, model::UserId};
use amplifier_session_hnsw::VectorRows;
use amplifier_session_index::RowRefs;
use amplifier_session_sql::{Query, Reader, embedded::IndexRows, read};
use duckdb::arrow::{
    array::{Array, Int64Array},
    record_batch::RecordBatch,
};

use crate::{connection::Read, error::storage};

/// How many vectors are passed on at once.
const BATCH: usize = 8192;

/// The rows as one transaction sees them.
pub(crate) struct HnswRows<'a> {
    reader: &'a Read<'a>,
    index: IndexRows<'a, Read<'a>>,
}

impl<'a> HnswRows<'a> {
    pub(crate) fn new(reader: &'a Read<'a>, store: &'a OnceLock<[u8; 16]>) -> Self {
        Self { reader, index: IndexRows::new(reader, store) }
    }
}

impl VectorRows for HnswRows<'_> {
    fn index(&mut self) -> &mut dyn RowRefs {
        &mut self.index
    }

    fn current_generation(&self) -> Result<Option<Generation>> {
        Ok(read::meta::generations(self.reader)?.current)
    }

    fn are_all_of(&self, user: &UserId) -> Result<bool> {
        let sql = "SELECT 1 FROM sessions WHERE user_id <> ?1 LIMIT 1";
        let other = Query::new("read_rows", sql, [user.as_str().into()], |_| Ok(()));
        Ok(self.reader.first(&other)?.is_none())
    }

    fn last_vector_key(&self) -> Result<i64> {
        let sql = "SELECT coalesce(max(key), 0) FROM transcript_vectors";
        Ok(self.reader.first(&Query::new("read_rows", sql, [], |row| row.integer(0)))?.unwrap_or(0))
    }

    fn vectors_above(&self, mut key: i64, each: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let sql =
            format!("SELECT key, vector FROM transcript_vectors WHERE key > ?1 ORDER BY key LIMIT {BATCH}");
        loop {
            let mut statement = self.reader.0.prepare(&sql).map_err(storage("read_rows"))?;
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
