//! Rows of a session other than messages, events and vectors.

use async_trait::async_trait;

use super::{Deletion, SummaryQuery};
use crate::{
    Result,
    model::{LineKind, Session, SessionKey, SupersededPiece, SupersededRef, Timestamp, TurnSummary},
    scope::Scope,
    search::SessionFilter,
};

/// Stores the rows of sessions that no search looks at: superseded lines, summaries of turns, and the reasons why
/// messages have no vectors. No other read returns them. They belong to their session, and are deleted and renamed with
/// it.
///
/// Superseded lines are written with their session, and failures with the vectors of their messages.
/// [`Sessions::write`](super::Sessions::write) removes a summary if it removes the user's message or replaces its line:
/// see [`SessionChange::removed_messages`](super::SessionChange::removed_messages).
#[async_trait]
pub trait OtherRows: Send + Sync {
    /// A page of rows of the kind of the query, in its order. May return fewer than requested; only an empty answer means
    /// the end.
    async fn list_other_rows(&self, query: &OtherRowQuery) -> Result<Vec<OtherRow>>;

    /// Stores summaries of turns of one session. Each replaces the one of the same user message. Ignores summaries of
    /// messages that are gone or whose line has changed. Returns the number of stored summaries.
    async fn write_summaries(&self, key: &SessionKey, summaries: Vec<TurnSummary>) -> Result<usize>;

    /// Removes these pieces. Returns for each, in order, whether it existed. Erases their content from all files, as
    /// [`Sessions::delete_sessions`](super::Sessions::delete_sessions) does.
    async fn prune_superseded(&self, pieces: &[SupersededRef]) -> Deletion;
}

/// Which rows to list, all of one kind.
#[derive(Debug, Clone, PartialEq)]
pub enum OtherRowQuery {
    /// Pieces of superseded lines: stored lines of files that no longer contain them. In order of user, session and id.
    Superseded(SupersededQuery),
    /// Summaries of turns, in order of user, session and `user_sequence`.
    Summaries(SummaryQuery),
    /// Why texts of messages of a session have no vectors of a generation: all of them, in order of sequence.
    Failures {
        /// The session.
        session: SessionKey,
        /// The generation.
        generation: u32,
    },
}

/// A row of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum OtherRow {
    /// A piece of superseded lines.
    Superseded(SupersededPiece),
    /// The summary of a turn.
    Summary(TurnSummary),
    /// Why texts of a message have no vectors.
    Failure {
        /// The message.
        sequence: u32,
        /// The reason.
        reason: String,
    },
}

/// Which pieces of superseded lines to list.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SupersededQuery {
    /// The scope of their sessions.
    pub scope: Scope,
    /// The filter of their sessions.
    pub filter: SessionFilter,
    /// Only lines of this kind.
    pub kind: Option<LineKind>,
    /// Only lines that were superseded before this time.
    pub until: Option<Timestamp>,
    /// Whether to read the lines too. Default: no.
    pub with_data: bool,
    /// Maximum number of pieces. Default: 100.
    pub limit: usize,
    /// Continue after this piece, the last one of the previous page.
    pub after: Option<SupersededRef>,
}

impl SupersededQuery {
    /// The first 100 pieces of `scope`.
    #[must_use]
    pub fn new(scope: impl Into<Scope>) -> Self {
        Self {
            scope: scope.into(),
            filter: SessionFilter::default(),
            kind: None,
            until: None,
            with_data: false,
            limit: 100,
            after: None,
        }
    }

    setters! {
        /// Sets the filter of the sessions.
        with_filter(filter: SessionFilter);
        /// Sets whether to read the lines.
        with_data(with_data: bool);
        /// Sets the maximum number of pieces.
        with_limit(limit: usize);
        /// Continues after a piece.
        with_after(after: Option<SupersededRef>);
    }

    optional_setters! {
        /// Only lines of `kind`.
        with_kind(kind: LineKind);
        /// Only lines that were superseded before `until`.
        with_until(until: Timestamp);
    }

    /// Whether a piece of `session` meets all conditions except `limit`.
    #[must_use]
    pub fn admits(&self, session: &Session, piece: &SupersededPiece) -> bool {
        self.scope.allows(session) && self.filter.admits(session) && self.admits_piece(piece)
    }

    /// Whether a piece meets all conditions except those on its session and `limit`.
    #[must_use]
    pub fn admits_piece(&self, piece: &SupersededPiece) -> bool {
        self.kind.is_none_or(|kind| kind == piece.kind)
            && self.until.is_none_or(|until| piece.superseded_at < until)
            && self.after.as_ref().is_none_or(|after| piece.piece_ref() > *after)
    }
}
