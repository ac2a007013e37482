//! The tables of vectors, and inserting into them in bulk.

use std::sync::Arc;

use amplifier_session_core::model::EmbeddingSpace;
use amplifier_session_sql::backend::{NewVector, VectorTarget};
use duckdb::{
    Connection,
    arrow::{
        array::{
            ArrayRef, FixedSizeListArray, Float32Array, Int64Array, ListArray, StringArray,
            TimestampMicrosecondArray, UInt32Array,
        },
        buffer::OffsetBuffer,
        datatypes::{DataType, Field, Schema},
        error::ArrowError,
        record_batch::RecordBatch,
    },
};

use crate::{numbers::Numbers, tables};

/// The tables with vectors: of the current generation, and of all others.
pub(crate) const TABLES: [&str; 2] = ["transcript_vectors", "other_vectors"];

/// Recreates the table of the current generation for vectors of `space`, unless it has their length. If it does not,
/// the table is empty: vectors of another length would belong to another generation.
pub(crate) fn prepare_for(connection: &Connection, space: &EmbeddingSpace) -> duckdb::Result<()> {
    let sql = "SELECT data_type FROM duckdb_columns() WHERE database_name = current_database()
        AND table_name = 'transcript_vectors' AND column_name = 'vector'";
    let found: String = connection.query_row(sql, [], |row| row.get(0))?;
    if found != tables::vector_type(Some(space.dimensions)) {
        connection.execute_batch(&tables::vectors(Some(space.dimensions)))?;
    }
    Ok(())
}

/// Moves the current vectors to the table of other generations, from which they are removed later, and those of
/// `generation` to the table of the current one, which is recreated for their length. Rows keep their keys and
/// revisions, so nothing changes for the index.
pub(crate) fn make_current(
    connection: &Connection,
    generation: u32,
    space: &EmbeddingSpace,
) -> duckdb::Result<()> {
    let [current, others] = TABLES;
    connection.execute(&format!("INSERT INTO {others} SELECT * FROM {current}"), [])?;
    connection.execute_batch(&tables::vectors(Some(space.dimensions)))?;
    let take = format!("INSERT INTO {current} SELECT * FROM {others} WHERE generation = ?1 ORDER BY key");
    connection.execute(&take, [generation])?;
    connection.execute(&format!("DELETE FROM {others} WHERE generation = ?1"), [generation])?;
    Ok(())
}

/// Adds vectors.
pub(crate) fn append(
    connection: &Connection,
    numbers: &mut Numbers,
    target: &VectorTarget<'_>,
    vectors: &[NewVector<'_>],
) -> duckdb::Result<()> {
    if vectors.is_empty() {
        return Ok(());
    }
    let batch = batch(numbers, target, vectors)
        .map_err(|error| duckdb::Error::ToSqlConversionFailure(Box::new(error)))?;
    let [current, others] = TABLES;
    let mut appender = connection.appender(if target.is_current { current } else { others })?;
    appender.append_record_batch(batch)?;
    appender.flush()
}

/// The rows as columns, the only form in which vectors can be appended.
fn batch(
    numbers: &mut Numbers,
    target: &VectorTarget<'_>,
    rows: &[NewVector<'_>],
) -> Result<RecordBatch, ArrowError> {
    let same =
        |text: &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(rows.iter().map(|_| text))) };
    let number = |number: fn(&NewVector<'_>) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(number)))
    };
    let types = rows.iter().map(|row| row.record.text.as_str());
    let columns: [(&str, ArrayRef); 15] = [
        ("key", Arc::new(Int64Array::from_iter_values(rows.iter().map(|_| numbers.next_key())))),
        ("user_id", same(target.key.user_id.as_str())),
        ("session_id", same(target.key.session_id.as_str())),
        ("sequence", number(|row| row.sequence)),
        ("content_type", Arc::new(StringArray::from_iter_values(types))),
        ("chunk_index", number(|row| row.record.chunk_index)),
        ("total_chunks", number(|row| row.record.total_chunks)),
        ("span_start", number(|row| row.record.span_start)),
        ("span_end", number(|row| row.record.span_end)),
        ("token_count", number(|row| row.record.token_count)),
        ("embedding_model", same(&target.space.model)),
        (
            "created_at",
            Arc::new(TimestampMicrosecondArray::from_iter_values(
                rows.iter().map(|row| row.created_at.as_micros()),
            )),
        ),
        ("revision", Arc::new(Int64Array::from_iter_values(rows.iter().map(|_| target.revision)))),
        ("generation", Arc::new(UInt32Array::from_iter_values(rows.iter().map(|_| target.generation)))),
        ("vector", lists(rows, target)?),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), false)).collect();
    RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns.into_iter().map(|(_, column)| column).collect(),
    )
}

fn lists(rows: &[NewVector<'_>], target: &VectorTarget<'_>) -> Result<ArrayRef, ArrowError> {
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let floats = rows.iter().flat_map(|row| row.record.vector.iter().copied());
    let floats = Arc::new(Float32Array::from_iter_values(floats));
    if target.is_current {
        // No model has more dimensions than an `i32` can count.
        let length = target.space.dimensions as i32;
        return Ok(Arc::new(FixedSizeListArray::try_new(item, length, floats, None)?));
    }
    let lengths = rows.iter().map(|row| row.record.vector.len());
    Ok(Arc::new(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), floats, None)?))
}
