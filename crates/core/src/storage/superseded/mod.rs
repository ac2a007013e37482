//! Superseded lines: stored lines of files that no longer contain them. Listing, reading, searching and removing them.

mod pack;
mod prune;
mod search;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub(super) use self::pack::{LineHead, OldLine, PiecePacker, unpack};
pub use self::{
    prune::{PruneOptions, PruneReport},
    search::SupersededMatch,
};

use super::store::{StoreContext, SupersededHistory};
use crate::{
    ErrorKind, Result, Scope,
    backend::{StorageBackend, StorageBackendExt, SupersededQuery},
    model::{
        LineKind, ProjectSlug, RawJson, SessionId, SessionKey, SupersededPiece, SupersededReason, TimeSource,
        Timestamp, UserId,
    },
};

/// The number of pieces without lines read at a time.
const PAGE: usize = 1_000;

/// A session with superseded lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SupersededSession {
    /// The owner.
    pub user_id: UserId,
    /// The session.
    pub session_id: SessionId,
    /// Its project.
    pub project: ProjectSlug,
    /// The number of superseded messages.
    pub messages: u64,
    /// The number of superseded events.
    pub events: u64,
    /// The size of their lines in bytes.
    pub bytes: u64,
    /// When the first of them was superseded.
    pub first_superseded_at: Timestamp,
    /// When the last of them was superseded.
    pub last_superseded_at: Timestamp,
    /// Why they were superseded.
    pub reasons: BTreeSet<SupersededReason>,
}

/// A superseded line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SupersededLine {
    /// The owner.
    pub user_id: UserId,
    /// The session.
    pub session_id: SessionId,
    /// Whether it is a message or an event.
    pub kind: LineKind,
    /// Its sequence when it was superseded. Another line may have it now.
    pub sequence: u32,
    /// Its turn.
    pub turn: Option<u32>,
    /// Its time.
    pub ts: Timestamp,
    /// Where the time of a message comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ts_source: Option<TimeSource>,
    /// The type of an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// Whether the store had only the fields of the event. They replace its line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_summary: bool,
    /// When it was superseded.
    pub superseded_at: Timestamp,
    /// Why it was superseded.
    pub reason: SupersededReason,
    /// The original line.
    #[serde(skip)]
    pub raw: RawJson,
}

impl SupersededLine {
    fn new(piece: &SupersededPiece, head: LineHead, raw: RawJson) -> Self {
        let SessionKey { user_id, session_id } = piece.session.clone();
        Self {
            user_id,
            session_id,
            kind: piece.kind,
            sequence: head.sequence,
            turn: head.turn,
            ts: head.ts,
            ts_source: head.ts_source,
            event_type: head.event_type,
            is_summary: head.is_summary,
            superseded_at: piece.superseded_at,
            reason: piece.reason,
            raw,
        }
    }
}

/// Reads superseded lines, some at a time: see
/// [`SupersededHistory::superseded_lines`](crate::storage::SupersededHistory::superseded_lines).
#[derive(Debug)]
pub struct SupersededLines {
    store: StoreContext,
    query: SupersededQuery,
    /// Pieces that were read, in reverse order.
    pieces: Vec<SupersededPiece>,
    is_at_end: bool,
}

impl SupersededLines {
    /// The next lines of one session and kind; `None` at the end. At most about a megabyte, unless a line is longer.
    ///
    /// # Errors
    ///
    /// `Damaged` if they can't be read, and the next call continues after them; errors of the backend.
    pub async fn next(&mut self) -> Result<Option<Vec<SupersededLine>>> {
        let Some(group) = self.next_group().await? else { return Ok(None) };
        let lines = unpack(&group)?;
        let Some(first) = group.first() else { return Ok(None) };
        Ok(Some(lines.into_iter().map(|(head, raw)| SupersededLine::new(first, head, raw)).collect()))
    }

    /// The next pieces that belong together.
    pub(super) async fn next_group(&mut self) -> Result<Option<Vec<SupersededPiece>>> {
        let Some(first) = self.next_piece().await? else { return Ok(None) };
        let mut group = vec![first];
        while let Some(piece) = self.next_piece().await? {
            let belongs = group
                .last()
                .is_some_and(|last| last.session == piece.session && last.group() == piece.group());
            if !belongs {
                self.pieces.push(piece);
                break;
            }
            group.push(piece);
        }
        Ok(Some(group))
    }

    async fn next_piece(&mut self) -> Result<Option<SupersededPiece>> {
        if self.pieces.is_empty() && !self.is_at_end {
            let mut page = self.store.backend.list_superseded(&self.query).await?;
            self.is_at_end = page.is_empty();
            self.query.after = page.last().map(SupersededPiece::piece_ref);
            page.reverse();
            self.pieces = page;
        }
        Ok(self.pieces.pop())
    }
}

impl SupersededHistory<'_> {
    /// The sessions that have superseded lines matching `query`, in order of user and id.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn superseded_sessions(self, query: &SupersededQuery) -> Result<Vec<SupersededSession>> {
        let mut sessions: Vec<SupersededSession> = Vec::new();
        for piece in all_pieces(&*self.store.backend, query.clone()).await? {
            let SessionKey { user_id, session_id } = &piece.session;
            if !sessions.last().is_some_and(|last| last.user_id == *user_id && last.session_id == *session_id)
            {
                let Some(stored) = self.store.backend.get_session(&piece.session).await? else { continue };
                sessions.push(SupersededSession {
                    user_id: user_id.clone(),
                    session_id: session_id.clone(),
                    project: stored.session.project_slug,
                    messages: 0,
                    events: 0,
                    bytes: 0,
                    first_superseded_at: piece.superseded_at,
                    last_superseded_at: piece.superseded_at,
                    reasons: BTreeSet::new(),
                });
            }
            if let Some(session) = sessions.last_mut() {
                session.add(&piece);
            }
        }
        Ok(sessions)
    }

    /// The number of superseded lines in `scope`.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn count_superseded(self, scope: &Scope) -> Result<u64> {
        let (mut query, mut lines) = (SupersededQuery::new(scope.clone()).with_limit(PAGE), 0);
        loop {
            let page = self.store.backend.list_superseded(&query).await?;
            let Some(last) = page.last() else { return Ok(lines) };
            query.after = Some(last.piece_ref());
            lines += page.iter().map(|piece| u64::from(piece.lines)).sum::<u64>();
        }
    }

    /// The superseded lines that match, in order of user, session, kind (events first) and sequence. A sequence may
    /// occur several times, if its line was superseded several times.
    #[must_use]
    pub fn superseded_lines(self, query: SupersededQuery) -> SupersededLines {
        let query = query.with_data(true);
        SupersededLines { store: self.store.clone(), query, pieces: Vec::new(), is_at_end: false }
    }
}

impl SupersededSession {
    fn add(&mut self, piece: &SupersededPiece) {
        match piece.kind {
            LineKind::Message => self.messages += u64::from(piece.lines),
            LineKind::Event => self.events += u64::from(piece.lines),
        }
        self.bytes += piece.bytes;
        self.first_superseded_at = self.first_superseded_at.min(piece.superseded_at);
        self.last_superseded_at = self.last_superseded_at.max(piece.superseded_at);
        self.reasons.insert(piece.reason);
    }
}

/// All pieces that match, without their lines.
pub(super) async fn all_pieces(
    backend: &dyn StorageBackend,
    query: SupersededQuery,
) -> Result<Vec<SupersededPiece>> {
    let (mut query, mut pieces) = (query.with_data(false).with_limit(PAGE), Vec::new());
    loop {
        let page = backend.list_superseded(&query).await?;
        let Some(last) = page.last() else { return Ok(pieces) };
        query.after = Some(last.piece_ref());
        pieces.extend(page);
    }
}

/// Calls `each` with every superseded line that matches and can be read.
pub(super) async fn unpack_all(
    store: &StoreContext,
    query: SupersededQuery,
    mut each: impl FnMut(SupersededLine) + Send,
) -> Result<()> {
    let mut lines = SupersededHistory::new(store).superseded_lines(query);
    loop {
        match lines.next().await {
            Ok(Some(lines)) => lines.into_iter().for_each(&mut each),
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Damaged => {
                tracing::warn!(%error, "superseded lines can't be read");
            }
            Err(error) => return Err(error),
        }
    }
}
