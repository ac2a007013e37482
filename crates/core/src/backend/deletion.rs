//! The result of deleting sessions.

use std::path::PathBuf;

use crate::{Error, Result};

/// The result of deleting sessions.
#[derive(Debug, Clone, Default)]
pub struct Deletion {
    /// For each session, in order: whether it existed.
    pub deleted: Vec<Result<bool>>,
    /// The files that still contain words of deleted sessions. Empty if everything could be erased.
    pub remains: Vec<NotErased>,
}

impl Deletion {
    /// The result of a backend that erases each session when it deletes it.
    #[must_use]
    pub fn complete(deleted: Vec<Result<bool>>) -> Self {
        Self { deleted, remains: Vec::new() }
    }
}

/// A file or folder that still contains words of deleted sessions.
#[derive(Debug, Clone)]
pub struct NotErased {
    /// Its path.
    pub file: PathBuf,
    /// Why they could not be erased.
    pub error: Error,
}

impl NotErased {
    /// `file` still contains words, because of this error.
    #[must_use]
    pub fn new(file: impl Into<PathBuf>, error: Error) -> Self {
        Self { file: file.into(), error }
    }
}
