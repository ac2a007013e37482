//! The columns of a row, whatever driver it comes from.

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::{Digest, Timestamp},
};

/// A row of a driver. Columns count from 0.
///
/// Every function fails with `StorageIo` when the column can't be read or is of another type.
pub trait Columns {
    /// A text.
    fn text(&self, index: usize) -> Result<String>;

    /// A text, or nothing.
    fn maybe_text(&self, index: usize) -> Result<Option<String>>;

    /// A number of any width.
    fn integer(&self, index: usize) -> Result<i64>;

    /// A number of any width, or nothing.
    fn maybe_integer(&self, index: usize) -> Result<Option<i64>>;

    /// Yes or no.
    fn flag(&self, index: usize) -> Result<bool>;

    /// A point in time.
    fn time(&self, index: usize) -> Result<Timestamp>;

    /// A point in time, or nothing.
    fn maybe_time(&self, index: usize) -> Result<Option<Timestamp>>;

    /// The bytes of a text or a blob.
    fn bytes(&self, index: usize) -> Result<Vec<u8>>;

    /// A list of texts.
    fn texts(&self, index: usize) -> Result<Vec<String>>;

    /// A vector.
    fn vector(&self, index: usize) -> Result<Vec<f32>>;
}

/// A number of a width of its own.
///
/// # Errors
///
/// `StorageIo` when the column can't be read, or holds a number that is none of these.
pub fn number<T: TryFrom<i64>>(row: &impl Columns, index: usize) -> Result<T> {
    T::try_from(row.integer(index)?).map_err(|_| damaged("number"))
}

/// [`number`], or nothing.
pub(crate) fn maybe_number<T: TryFrom<i64>>(row: &impl Columns, index: usize) -> Result<Option<T>> {
    row.maybe_integer(index)?.map(T::try_from).transpose().map_err(|_| damaged("number"))
}

/// The digest of a line.
///
/// # Errors
///
/// `StorageIo` when the column can't be read.
pub fn digest(row: &impl Columns, index: usize) -> Result<Digest> {
    row.bytes(index)?.try_into().map(Digest).map_err(|_| damaged("digest"))
}

/// A value in the database that can't be what it should.
#[must_use]
pub fn damaged(what: &'static str) -> Error {
    Error::new(ErrorKind::StorageIo, format!("the database holds a {what} that can't be read"))
}
