//! Converts rows to batches of columns, and back.

use std::sync::Arc;

use amplifier_session_core::{Error, Result};
use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_json::{LineDelimitedWriter, ReaderBuilder};
use arrow_schema::{ArrowError, DataType};

use crate::{
    Fields,
    tables::{Kind, Table},
};

/// Converts rows to a batch.
pub(crate) fn of_rows(rows: &[Fields], table: &Table) -> std::result::Result<RecordBatch, ArrowError> {
    let schema = table.schema(Kind::as_json);
    // A field without a column is an error, because it would be lost.
    let mut decoder = ReaderBuilder::new(Arc::clone(&schema)).with_strict_mode(true).build_decoder()?;
    decoder.serialize(rows)?;
    let batch = decoder.flush()?.unwrap_or_else(|| RecordBatch::new_empty(schema));
    let columns = table.columns.iter().zip(batch.columns());
    let columns = columns.map(|((_, kind), column)| arrow_cast::cast(column, &kind.stored()));
    RecordBatch::try_new(table.schema(Kind::stored), columns.collect::<std::result::Result<_, _>>()?)
}

/// Converts a batch to rows. Also accepts files that were rewritten by another program: types are converted if
/// possible, and missing columns are empty.
pub(crate) fn to_rows(batch: &RecordBatch, table: &Table) -> Result<Vec<Fields>> {
    let columns: Result<Vec<ArrayRef>> = table
        .columns
        .iter()
        .map(|(name, kind)| match column(batch, name) {
            Some(column) => converted(column, *kind).map_err(|error| {
                Error::validation(
                    "archive",
                    format!("the column {name:?} of {} has the wrong type: {error}", table.file),
                )
            }),
            None => Ok(new_null_array(&kind.as_json(), batch.num_rows())),
        })
        .collect();
    let lines = columns.and_then(|columns| {
        let batch = RecordBatch::try_new(table.schema(Kind::as_json), columns).map_err(unreadable)?;
        let mut writer = LineDelimitedWriter::new(Vec::new());
        writer.write(&batch).and_then(|()| writer.finish()).map_err(unreadable)?;
        Ok(writer.into_inner())
    })?;
    let rows = serde_json::Deserializer::from_slice(&lines).into_iter();
    rows.collect::<std::result::Result<_, _>>().map_err(unreadable)
}

/// The column with this name, or with its former name.
fn column<'a>(batch: &'a RecordBatch, name: &str) -> Option<&'a ArrayRef> {
    let former = (name == "message_count").then_some("transcript_count");
    batch.column_by_name(name).or_else(|| batch.column_by_name(former?))
}

fn converted(column: &dyn Array, kind: Kind) -> std::result::Result<ArrayRef, ArrowError> {
    let stored = match (kind, column.data_type()) {
        // If it is a number, it is already in microseconds.
        (Kind::Time, DataType::Int64) => return arrow_cast::cast(column, &DataType::Int64),
        _ => arrow_cast::cast(column, &kind.stored())?,
    };
    arrow_cast::cast(&stored, &kind.as_json())
}

fn unreadable(source: impl std::fmt::Display) -> Error {
    Error::validation("archive", format!("rows can't be read: {source}"))
}
