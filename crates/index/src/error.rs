//! Converts errors of files and of tantivy to errors of the library.

use std::{io, path::Path};

use amplifier_session_core::{Error, ErrorKind};
use tantivy::TantivyError;

use crate::part::PartError;

/// A failed file operation of the index.
pub(crate) fn io_error(source: io::Error, path: &Path) -> Error {
    let error = Error::new(ErrorKind::StorageIo, "a file of the search index can't be read or written")
        .with_operation("index")
        .with("path", path.display());
    let error = if source.kind() == io::ErrorKind::Interrupted { error.retryable() } else { error };
    error.with_source(source)
}

/// A failed operation of tantivy.
pub(crate) fn tantivy_error(source: TantivyError) -> Error {
    Error::new(ErrorKind::StorageIo, "the text index failed").with_operation("index").with_source(source)
}

/// A file of the index became unreadable after it was opened.
pub(crate) fn unreadable(error: PartError) -> Error {
    let what = match error {
        PartError::Gone(path) => format!("{} is missing", path.display()),
        PartError::Damaged(what) => what,
    };
    Error::new(ErrorKind::StorageIo, format!("a file of the search index can't be read: {what}"))
        .with_operation("index")
}
