//! Superseded lines: listing and removing them. They are written with their session.

use async_trait::async_trait;

use super::Deletion;
use crate::{
    Result,
    model::{LineKind, Session, SupersededPiece, SupersededRef, Timestamp},
    scope::Scope,
    search::SessionFilter,
};

/// Reads and removes superseded lines: stored lines of files that no longer contain them. No other read returns them.
/// They belong to their session, and are deleted and renamed with it.
#[async_trait]
pub trait Superseded: Send + Sync {
    /// A page of pieces, in order of user, session and id. May return fewer than `limit`; only an empty answer means the
    /// end.
    async fn list_superseded(&self, query: &SupersededQuery) -> Result<Vec<SupersededPiece>>;

    /// Removes these pieces. Returns for each, in order, whether it existed. Erases their content from all files, as
    /// [`Sessions::delete_sessions`](super::Sessions::delete_sessions) does.
    async fn prune_superseded(&self, pieces: &[SupersededRef]) -> Deletion;
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
