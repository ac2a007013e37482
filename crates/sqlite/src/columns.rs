//! Reading columns of SQLite's rows.

use std::borrow::Cow;

use amplifier_session_core::{
    Result,
    compression::{decompress, is_compressed},
    model::Timestamp,
};
use amplifier_session_sql::{Columns, damaged};
use half::f16;
use rusqlite::{Row, types::FromSql};

use crate::error;

impl Columns for SqliteRow<'_> {
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

    fn maybe_time(&self, index: usize) -> Result<Option<Timestamp>> {
        let time =
            self.0.get_ref(index).map_err(error::column)?.as_str_or_null().map_err(|_| damaged("time"))?;
        time.map(Timestamp::parse).transpose()
    }

    fn bytes_ref(&self, index: usize) -> Result<&[u8]> {
        self.0.get_ref(index).map_err(error::column)?.as_bytes().map_err(|_| damaged("line"))
    }

    fn line(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        stored_line(self.bytes_ref(index)?)
    }

    fn texts(&self, index: usize) -> Result<Vec<String>> {
        serde_json::from_str(&column::<String>(self.0, index)?).map_err(|_| damaged("list"))
    }

    fn read_vector(&self, index: usize, into: &mut Vec<f32>) -> Result<()> {
        let value = self.0.get_ref(index).map_err(error::column)?;
        read_vector(value.as_blob().map_err(|_| damaged("vector"))?, into)
    }
}

/// A row of a result.
pub(crate) struct SqliteRow<'a>(pub(crate) &'a Row<'a>);

/// A column of a row as a Rust value.
pub(crate) fn column<T: FromSql>(row: &Row<'_>, index: usize) -> Result<T> {
    row.get(index).map_err(error::column)
}

/// A stored line. It is JSON, which never looks compressed.
pub(crate) fn stored_line(bytes: &[u8]) -> Result<Cow<'_, [u8]>> {
    if is_compressed(bytes) { decompress(bytes).map(Cow::Owned) } else { Ok(Cow::Borrowed(bytes)) }
}

/// The first byte of a vector of 16-bit floats, which makes the number of bytes odd.
const HALVES: u8 = 1;

/// The stored form of a vector of unit length: [`HALVES`], then little-endian 16-bit floats. It has half the bytes of
/// 32-bit floats, and is exact enough for searches.
pub(crate) fn vector_bytes(vector: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + 2 * vector.len());
    bytes.push(HALVES);
    vector.iter().for_each(|x| bytes.extend_from_slice(&f16::from_f32(*x).to_le_bytes()));
    bytes
}

/// Reads a stored vector. Earlier versions stored little-endian 32-bit floats, so the number of bytes is even.
pub(crate) fn read_vector(bytes: &[u8], into: &mut Vec<f32>) -> Result<()> {
    into.clear();
    let rest = match bytes.split_first() {
        Some((&HALVES, halves)) if bytes.len() % 2 == 1 => {
            let (halves, rest) = halves.as_chunks::<2>();
            into.extend(halves.iter().map(|half| f16::from_le_bytes(*half).to_f32()));
            scale_to_unit_length(into);
            rest
        }
        _ => {
            let (floats, rest) = bytes.as_chunks::<4>();
            into.extend(floats.iter().map(|float| f32::from_le_bytes(*float)));
            rest
        }
    };
    if rest.is_empty() { Ok(()) } else { Err(damaged("vector")) }
}

/// Undoes the effect of rounding on the length of a vector. Similarities are inner products, so a wrong length would
/// count as distance.
fn scale_to_unit_length(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    // `core` stores vectors of unit length and zeros. Any other length is intended.
    if (length - 1.0).abs() < 0.001 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_stored_as_halves_and_read_in_both_forms() {
        let vector: Vec<f32> = (0..256).map(|n| ((n * 37 % 101) as f32 - 50.0) / 800.0).collect();
        let mut read = Vec::new();
        read_vector(&vector_bytes(&vector), &mut read).unwrap();
        assert!(vector.iter().zip(&read).all(|(a, b)| (a - b).abs() <= a.abs() / 2048.0));
        assert_eq!((read.len(), vector_bytes(&vector).len()), (256, 513));
        let floats: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
        read_vector(&floats, &mut read).unwrap();
        assert_eq!(read, vector);
        for damaged in [&floats[..255], &floats[..254], &[2, 0, 0]] {
            assert!(read_vector(damaged, &mut read).is_err(), "{}", damaged.len());
        }
        read_vector(&vector_bytes(&[]), &mut read).unwrap();
        assert!(read.is_empty());
    }

    #[test]
    fn a_vector_is_as_similar_to_itself_as_before_it_was_stored() {
        // All numbers are equal, so all are rounded the same way, which changes the length the most.
        for dimensions in 1..=384 {
            let vector = vec![1.0 / (dimensions as f32).sqrt(); dimensions];
            let mut read = Vec::new();
            read_vector(&vector_bytes(&vector), &mut read).unwrap();
            let similarity: f32 = vector.iter().zip(&read).map(|(a, b)| a * b).sum();
            assert!((similarity - 1.0).abs() < 1e-5, "{dimensions}: {similarity}");
        }
    }
}
