//! Errors of the index, and conversion of errors of files and of tantivy.

use std::{
    io,
    path::{Path, PathBuf},
};

use amplifier_session_core::{Error, ErrorKind};
use tantivy::TantivyError;

/// Why a part can't be opened.
#[derive(Debug)]
pub(crate) enum PartError {
    /// A file is missing, perhaps because another process has just replaced the manifest and the files.
    Gone(PathBuf),
    /// A file does not match its checksum.
    Damaged(String),
}

impl PartError {
    pub(crate) fn reading(source: &io::Error, path: &Path) -> Self {
        if source.kind() == io::ErrorKind::NotFound {
            Self::Gone(path.to_owned())
        } else {
            Self::damaged(path, source)
        }
    }

    pub(crate) fn damaged(path: &Path, what: impl std::fmt::Display) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Self::Damaged(format!("{}: {what}", name.display()))
    }
}

/// Why a search stopped.
#[derive(Debug)]
pub(crate) enum SearchFailure {
    /// An error unrelated to the index.
    Outside(Error),
    /// A file of the part is damaged. A search without the part will succeed.
    Part(PartError),
    /// Many rows are not in the part and should be folded first.
    LongTail,
}

impl From<Error> for SearchFailure {
    fn from(error: Error) -> Self {
        Self::Outside(error)
    }
}

impl From<PartError> for SearchFailure {
    fn from(error: PartError) -> Self {
        Self::Part(error)
    }
}

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
