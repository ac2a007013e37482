//! Reading the columns of a row, of any driver.

use std::borrow::Cow;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::{Digest, Timestamp},
};

/// A row of a driver. Columns are counted from 0.
///
/// Every function fails with `Damaged` if the value has another type or is invalid, and with `StorageIo` if it cannot
/// be read.
pub trait Columns {
    /// A text, borrowed from the row.
    fn text_ref(&self, index: usize) -> Result<&str>;

    /// A text.
    fn text(&self, index: usize) -> Result<String> {
        self.text_ref(index).map(str::to_owned)
    }

    /// A text, or `NULL`.
    fn maybe_text(&self, index: usize) -> Result<Option<String>>;

    /// A number of any width.
    fn integer(&self, index: usize) -> Result<i64> {
        self.maybe_integer(index)?.ok_or_else(|| damaged("number"))
    }

    /// A number of any width, or `NULL`.
    fn maybe_integer(&self, index: usize) -> Result<Option<i64>>;

    /// A boolean.
    fn flag(&self, index: usize) -> Result<bool>;

    /// A time.
    fn time(&self, index: usize) -> Result<Timestamp> {
        self.maybe_time(index)?.ok_or_else(|| damaged("time"))
    }

    /// A time, or `NULL`.
    fn maybe_time(&self, index: usize) -> Result<Option<Timestamp>>;

    /// The bytes of a text or a blob, borrowed from the row.
    fn bytes_ref(&self, index: usize) -> Result<&[u8]>;

    /// The bytes of a text or a blob.
    fn bytes(&self, index: usize) -> Result<Vec<u8>> {
        self.bytes_ref(index).map(<[u8]>::to_vec)
    }

    /// A line of a transcript, as it was read from the file.
    fn line(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        self.bytes_ref(index).map(Cow::Borrowed)
    }

    /// A list of texts.
    fn texts(&self, index: usize) -> Result<Vec<String>>;

    /// Reads a vector into a reusable buffer.
    fn read_vector(&self, index: usize, into: &mut Vec<f32>) -> Result<()>;

    /// A vector.
    fn vector(&self, index: usize) -> Result<Vec<f32>> {
        let mut vector = Vec::new();
        self.read_vector(index, &mut vector)?;
        Ok(vector)
    }
}

/// A number with a specific width. Fails like the functions of [`Columns`].
pub fn number<T: TryFrom<i64>>(row: &dyn Columns, index: usize) -> Result<T> {
    T::try_from(row.integer(index)?).map_err(|_| damaged("number"))
}

/// [`number`], or `NULL`.
pub(crate) fn maybe_number<T: TryFrom<i64>>(row: &dyn Columns, index: usize) -> Result<Option<T>> {
    row.maybe_integer(index)?.map(T::try_from).transpose().map_err(|_| damaged("number"))
}

/// The digest of a line. Fails like the functions of [`Columns`].
pub fn digest(row: &dyn Columns, index: usize) -> Result<Digest> {
    row.bytes(index)?.try_into().map(Digest).map_err(|_| damaged("digest"))
}

/// The value, or `None` if the row is damaged. For readers that cannot report damage.
pub fn unless_damaged<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if is_damage(&error) => {
            tracing::debug!(%error, "a row that can't be read is left out");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Whether the value is invalid. A value that violates the model was not stored that way.
fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Validation)
}

/// Turns an invalid value into an error of the kind `Damaged`, without its row.
pub(crate) fn unnamed<T>(read: Result<T>) -> Result<T> {
    read.map_err(|error| {
        if is_damage(&error) {
            Error::new(ErrorKind::Damaged, error.message().to_owned()).with_source(error)
        } else {
            error
        }
    })
}

/// Adds the unreadable row to the error. `place` has the columns of its user, session and sequence.
pub(crate) fn named<T>(
    row: &dyn Columns,
    place: (usize, usize, Option<usize>),
    read: Result<T>,
) -> Result<T> {
    read.map_err(|error| {
        if !is_damage(&error) {
            return error;
        }
        let reason = match error.field() {
            Some(field) => format!("{field} {}", error.message()),
            None => error.message().to_owned(),
        };
        let mut damaged = Error::new(ErrorKind::Damaged, reason);
        if let Ok(user) = row.text(place.0) {
            damaged = damaged.with("user", user);
        }
        if let Ok(session) = row.text(place.1) {
            damaged = damaged.with("session", session);
        }
        if let Some(Ok(sequence)) = place.2.map(|index| row.integer(index)) {
            damaged = damaged.with("sequence", sequence);
        }
        damaged.with_source(error)
    })
}

/// The error for a stored value that is invalid.
#[must_use]
pub fn damaged(what: &'static str) -> Error {
    Error::new(ErrorKind::Damaged, format!("the database contains a {what} that can't be read"))
}
