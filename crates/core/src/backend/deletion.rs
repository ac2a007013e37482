//! Deletions of sessions, and their results.

use std::path::PathBuf;

use super::Version;
use crate::{Error, Result, model::SessionKey};

/// A session to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionDeletion {
    /// The session.
    pub key: SessionKey,
    /// Deletes only this version of it; `None` deletes any.
    pub expected: Option<Version>,
}

impl SessionDeletion {
    /// Deletes any version of a session.
    #[must_use]
    pub fn new(key: SessionKey) -> Self {
        Self { key, expected: None }
    }

    /// Deletes only this version.
    #[must_use]
    pub fn with_expected(mut self, expected: Option<Version>) -> Self {
        self.expected = expected;
        self
    }
}

impl From<&SessionKey> for SessionDeletion {
    fn from(key: &SessionKey) -> Self {
        Self::new(key.clone())
    }
}

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
