//! Reading columns of SQLite's rows.

use amplifier_session_core::{Result, model::Timestamp};
use amplifier_session_sql::{Columns, damaged};
use rusqlite::{Row, types::FromSql};

use crate::error;

impl Columns for Cursor<'_> {
    fn text_ref(&self, index: usize) -> Result<&str> {
        self.0.get_ref(index).map_err(error::column)?.as_str().map_err(|_| damaged("text"))
    }

    fn maybe_text(&self, index: usize) -> Result<Option<String>> {
        column(self.0, index)
    }

    fn maybe_integer(&self, index: usize) -> Result<Option<i64>> {
        column(self.0, index)
    }

    fn flag(&self, index: usize) -> Result<bool> {
        column(self.0, index)
    }

    fn day(&self, index: usize) -> Result<String> {
        column(self.0, index)
    }

    fn maybe_time(&self, index: usize) -> Result<Option<Timestamp>> {
        let time =
            self.0.get_ref(index).map_err(error::column)?.as_str_or_null().map_err(|_| damaged("time"))?;
        time.map(Timestamp::parse).transpose()
    }

    fn bytes_ref(&self, index: usize) -> Result<&[u8]> {
        self.0.get_ref(index).map_err(error::column)?.as_bytes().map_err(|_| damaged("line"))
    }

    fn texts(&self, index: usize) -> Result<Vec<String>> {
        serde_json::from_str(&column::<String>(self.0, index)?).map_err(|_| damaged("list"))
    }

    fn read_vector(&self, index: usize, into: &mut Vec<f32>) -> Result<()> {
        let value = self.0.get_ref(index).map_err(error::column)?;
        let bytes = value.as_blob().map_err(|_| damaged("vector"))?;
        let (floats, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(damaged("vector"));
        }
        into.clear();
        into.extend(floats.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        Ok(())
    }
}

/// A row of a result.
pub(crate) struct Cursor<'a>(pub(crate) &'a Row<'a>);

/// A column of a row as a Rust value.
pub(crate) fn column<T: FromSql>(row: &Row<'_>, index: usize) -> Result<T> {
    row.get(index).map_err(error::column)
}

/// Little-endian 32-bit floats.
pub(crate) fn vector_bytes(vector: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(vector));
    vector.iter().for_each(|x| bytes.extend_from_slice(&x.to_le_bytes()));
    bytes
}
