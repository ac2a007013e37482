//! Options, progress and report of a copy.

use serde::Serialize;

use crate::{
    Error, ErrorKind, Scope,
    model::{EmbeddingSpace, SessionId, SessionKey, Timestamp, UserId},
    search::SessionFilter,
};

/// Which sessions to copy, and what to do if the target already has one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CopyOptions {
    /// The scope of the sessions. Sessions of other users keep their owner.
    pub scope: Scope,
    /// The filter of the sessions.
    pub filter: SessionFilter,
    /// Only sessions updated at this time or later.
    pub since: Option<Timestamp>,
    /// Whether to replace sessions of the target that have the same id and other content. Default: no; they are left
    /// alone.
    pub replace: bool,
    /// Whether to copy sessions that were deleted from the target. Default: no.
    pub include_deleted: bool,
}

impl CopyOptions {
    /// All sessions of `scope`.
    #[must_use]
    pub fn new(scope: impl Into<Scope>) -> Self {
        Self {
            scope: scope.into(),
            filter: SessionFilter::default(),
            since: None,
            replace: false,
            include_deleted: false,
        }
    }

    setters! {
        /// Sets the filter of the sessions.
        with_filter(filter: SessionFilter);
        /// Only copies sessions updated at `since` or later.
        with_since(since: Option<Timestamp>);
        /// Sets whether to replace sessions with other content.
        with_replace(replace: bool);
        /// Sets whether to copy sessions that were deleted from the target.
        with_include_deleted(include_deleted: bool);
    }

    /// Whether everything of the scope is copied, including data that belongs to no session.
    pub(super) fn is_everything(&self) -> bool {
        self.since.is_none() && self.filter == SessionFilter::default()
    }
}

/// The progress of a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyProgress {
    /// Messages and events that were processed, copied or not.
    pub done: u64,
    /// All messages and events of the sessions that were found so far.
    pub total: u64,
}

/// Called with the progress of a copy.
pub type OnCopied<'a> = &'a (dyn Fn(CopyProgress) + Send + Sync);

/// The report of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CopyReport {
    /// The number of sessions that were copied, or completed after an interruption. Each has the same digest in both
    /// stores.
    pub sessions: u64,
    /// The number of sessions among them that replaced a session with other content.
    pub replaced: u64,
    /// The number of sessions that the target already had with the same content.
    pub unchanged: u64,
    /// The number of messages of the copied sessions.
    pub messages: u64,
    /// The number of events of the copied sessions.
    pub events: u64,
    /// The number of superseded lines of the copied sessions.
    pub superseded: u64,
    /// The number of vectors that were written, including vectors for messages that the target already had.
    pub vectors: u64,
    /// The number of turns whose vectors were written.
    pub turns: u64,
    /// The number of summaries of turns that were written.
    pub summaries: u64,
    /// The number of deleted sessions that the target remembers now but did not before.
    pub deletions: u64,
    /// The space of the source's vectors, if it has any.
    pub space: Option<EmbeddingSpace>,
    /// The space of the target's vectors, if it is another one. No vectors were copied then.
    pub other_space: Option<EmbeddingSpace>,
    /// Sessions that were not copied.
    pub not_copied: Vec<NotCopied>,
}

impl CopyReport {
    /// Whether the target has everything that was to be copied, except for sessions that were deleted from it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.not_copied.iter().all(|session| session.because == NotCopiedBecause::Deleted)
    }
}

/// A session that was not copied, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NotCopied {
    /// Its owner.
    pub user_id: UserId,
    /// Its id.
    pub session_id: SessionId,
    /// The kind of reason.
    pub because: NotCopiedBecause,
    /// The reason.
    pub reason: String,
}

impl NotCopied {
    pub(super) fn new(key: &SessionKey, because: NotCopiedBecause, reason: impl Into<String>) -> Self {
        let SessionKey { user_id, session_id } = key.clone();
        Self { user_id, session_id, because, reason: reason.into() }
    }

    /// The reason for an error that concerns only one session. Other errors end the copy.
    pub(super) fn of_error(key: &SessionKey, error: Error) -> Result<Self, Error> {
        let because = match error.kind() {
            ErrorKind::Damaged => NotCopiedBecause::Damaged,
            ErrorKind::Conflict => NotCopiedBecause::Changing,
            ErrorKind::Validation | ErrorKind::EventTooLarge => NotCopiedBecause::Refused,
            _ => return Err(error),
        };
        Ok(Self::new(key, because, error.to_string()))
    }
}

/// Why a session was not copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotCopiedBecause {
    /// The target has a session of this id with other content, or another session with an event of the same id.
    Conflict,
    /// It was deleted from the target.
    Deleted,
    /// A row of it can't be read from the source or is missing there.
    Damaged,
    /// It kept changing while it was copied.
    Changing,
    /// The target rejected one of its rows.
    Refused,
    /// It was copied, and then had another digest in the target than in the source. The next copy starts over with it.
    Different,
}

names! {
    NotCopiedBecause {
        Conflict: "conflict", Deleted: "deleted", Damaged: "damaged", Changing: "changing", Refused: "refused",
        Different: "different",
    }
}
