//! Reading columns of DuckDB's rows.

use amplifier_session_core::{Result, model::Timestamp};
use amplifier_session_sql::{Columns, damaged};
use duckdb::{
    Row,
    arrow::array::{Array, ArrayRef, Float32Array},
    types::{FromSql, ListType, Value, ValueRef},
};

use crate::error::storage;

/// A row of a result.
pub(crate) struct Cursor<'a, 'stmt>(pub(crate) &'a Row<'stmt>);

impl Columns for Cursor<'_, '_> {
    fn text_ref(&self, index: usize) -> Result<&str> {
        self.0.get_ref(index).map_err(storage("read"))?.as_str().map_err(|_| damaged("text"))
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

    fn maybe_time(&self, index: usize) -> Result<Option<Timestamp>> {
        match self.0.get_ref(index).map_err(storage("read"))? {
            ValueRef::Null => Ok(None),
            ValueRef::Timestamp(unit, value) => Ok(Some(Timestamp::from_micros(unit.to_micros(value)))),
            // DuckDB's infinite dates become the first and the last day.
            ValueRef::Date32(days) => {
                Ok(Some(Timestamp::from_micros(i64::from(days).saturating_mul(86_400_000_000))))
            }
            _ => Err(damaged("time")),
        }
    }

    fn bytes_ref(&self, index: usize) -> Result<&[u8]> {
        match self.0.get_ref(index).map_err(storage("read"))? {
            ValueRef::Blob(bytes) => Ok(bytes),
            _ => Err(damaged("line")),
        }
    }

    fn texts(&self, index: usize) -> Result<Vec<String>> {
        let Value::List(items) = self.0.get_ref(index).map_err(storage("read"))?.to_owned() else {
            return Err(damaged("list"));
        };
        let texts = items.into_iter().map(|item| match item {
            Value::Text(text) => Ok(text),
            _ => Err(damaged("list")),
        });
        texts.collect()
    }

    /// From `FLOAT[N]` or `FLOAT[]`.
    fn read_vector(&self, index: usize, into: &mut Vec<f32>) -> Result<()> {
        into.clear();
        let items: ArrayRef = match self.0.get_ref(index).map_err(storage("read"))? {
            ValueRef::Array(arrays, at) => arrays.value(at),
            ValueRef::List(ListType::Regular(lists), at) => lists.value(at),
            // Of a turn.
            ValueRef::Blob(bytes) => {
                let (floats, rest) = bytes.as_chunks::<4>();
                into.extend(floats.iter().map(|float| f32::from_le_bytes(*float)));
                return if rest.is_empty() { Ok(()) } else { Err(damaged("vector")) };
            }
            _ => return Err(damaged("vector")),
        };
        let floats = items.as_any().downcast_ref::<Float32Array>().ok_or_else(|| damaged("vector"))?;
        into.extend_from_slice(floats.values());
        Ok(())
    }
}

/// A column of a row as a Rust value.
fn column<T: FromSql>(row: &Row<'_>, index: usize) -> Result<T> {
    row.get(index).map_err(storage("read"))
}
