//! The values of a row.

use super::varint;

/// A row as it is stored.
#[derive(Debug)]
pub struct RowRecord {
    bytes: Vec<u8>,
    /// The type and position of each value.
    values: Vec<(i64, usize)>,
}

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StoredValue<'a> {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A floating-point number, which is not decoded.
    Real,
    /// A text, in the encoding of the database.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

impl RowRecord {
    /// The row with this content, which should have `length` bytes. `bytes` may be only its beginning. `None` if it is
    /// not a row.
    pub(super) fn parse(bytes: Vec<u8>, length: usize) -> Option<Self> {
        let (header, mut at) = varint(&bytes, 0)?;
        let mut position = usize::try_from(header).ok()?;
        let end = position;
        let mut values = Vec::new();
        while at < end {
            let (kind, next) = varint(&bytes, at)?;
            values.push((kind, position));
            position = position.checked_add(size(kind)?)?;
            at = next;
        }
        (at == end && position == length).then_some(Self { bytes, values })
    }

    /// The number of values.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "nobody asks for it")]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// A value; `None` if it does not exist or can't be read.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<StoredValue<'_>> {
        let (kind, at) = *self.values.get(index)?;
        let bytes = self.bytes.get(at..at.checked_add(size(kind)?)?)?;
        Some(match kind {
            0 => StoredValue::Null,
            1..=6 => StoredValue::Integer(integer(bytes)),
            7 => StoredValue::Real,
            8 => StoredValue::Integer(0),
            9 => StoredValue::Integer(1),
            _ if kind % 2 == 0 => StoredValue::Blob(bytes),
            _ => StoredValue::Text(bytes),
        })
    }

    /// A text.
    #[must_use]
    pub fn text(&self, index: usize) -> Option<&str> {
        match self.get(index)? {
            StoredValue::Text(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    /// A number.
    #[must_use]
    pub fn integer(&self, index: usize) -> Option<i64> {
        match self.get(index)? {
            StoredValue::Integer(number) => Some(number),
            _ => None,
        }
    }

    /// A number that is a sequence, an index or the like.
    #[must_use]
    pub fn number(&self, index: usize) -> Option<u32> {
        self.integer(index)?.try_into().ok()
    }
}

/// The size of a value of this type.
fn size(kind: i64) -> Option<usize> {
    match kind {
        0 | 8 | 9 => Some(0),
        1..=4 => usize::try_from(kind).ok(),
        5 => Some(6),
        6 | 7 => Some(8),
        12.. => usize::try_from((kind - 12) / 2).ok(),
        _ => None,
    }
}

/// A big-endian number with a sign.
fn integer(bytes: &[u8]) -> i64 {
    let sign = if bytes.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
    bytes.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded() {
        let bytes = vec![7, 0, 1, 9, 17, 14, 2, 0xff, b'o', b'k', 7, 1, 0];
        let record = RowRecord::parse(bytes.clone(), bytes.len()).unwrap();
        let values: Vec<_> = (0..7).map(|index| record.get(index)).collect();
        use StoredValue::{Blob, Integer, Null, Text};
        let expected = [Null, Integer(-1), Integer(1), Text(b"ok"), Blob(&[7]), Integer(256)];
        assert_eq!(values[..6], expected.map(Some));
        assert_eq!(values[6], None);
        // The end of the row is on an unreadable page.
        let cut = RowRecord::parse(bytes[..10].to_vec(), bytes.len()).unwrap();
        assert_eq!((cut.text(3), cut.get(4)), (Some("ok"), None));
        for wrong in [&[][..], &[9, 1], &[3, 10, 11], &[2, 1]] {
            assert!(RowRecord::parse(wrong.to_vec(), wrong.len()).is_none(), "{wrong:?}");
        }
    }
}
