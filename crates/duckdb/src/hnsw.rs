//! Reads vectors in columns, for the HNSW index.

use amplifier_session_core::Result;
use amplifier_session_hnsw::VectorReader;
use duckdb::arrow::{
    array::{Array as _, Int64Array},
    record_batch::RecordBatch,
};

use crate::{connection::Read, error::storage};

/// The number of vectors that are read at once.
const READ_AT_ONCE: usize = 8192;

impl VectorReader for Read<'_> {
    fn vectors_above(&self, mut key: i64, each: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let sql = format!(
            "SELECT key, vector FROM transcript_vectors WHERE key > ?1 ORDER BY key LIMIT {READ_AT_ONCE}"
        );
        loop {
            let mut statement = self.connection.prepare(&sql).map_err(storage("read_rows"))?;
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
