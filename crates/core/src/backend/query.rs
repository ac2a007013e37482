//! What is asked: which sessions, messages and vectors, under which scope; and the candidates that answer a search.

use crate::{
    Error, Result,
    model::{ContentType, ContentTypes, Place, Session, SessionId, SessionKey, Timestamp, UserId},
    scope::Scope,
    search::{SearchFilter, SessionFilter},
    text::holds_words,
};

/// The id of a session, and that of its parent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct SessionName {
    /// Its id, unique among those of a user.
    pub session_id: SessionId,
    /// The session that it was spawned or forked from.
    pub parent_id: Option<SessionId>,
}

impl SessionName {
    /// The name of a session.
    #[must_use]
    pub fn new(session_id: SessionId, parent_id: Option<SessionId>) -> Self {
        Self { session_id, parent_id }
    }
}

/// Which sessions to list, newest first.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SessionQuery {
    /// Whose.
    pub scope: Scope,
    /// By project, id, bundle, tags and turns.
    pub filter: SessionFilter,
    /// Only ids that begin so.
    pub id_prefix: Option<String>,
    /// Only sessions spawned or forked from this one.
    pub parent: Option<SessionId>,
    /// Only sessions whose title or description holds all of these words, each as it stands or as part of a longer
    /// one; case and accents make no difference.
    pub text: Option<String>,
    /// Only sessions updated at this time or later.
    pub since: Option<Timestamp>,
    /// Only sessions updated before this time.
    pub until: Option<Timestamp>,
    /// Only sessions created before this time: with `since`, those that were active in a period.
    pub created_until: Option<Timestamp>,
    /// The most sessions in the answer.
    pub limit: usize,
    /// Continue behind this session of the page before.
    pub after: Option<SessionCursor>,
    /// Sessions that are left out: those of which it is known that they can't be read.
    pub without: Vec<SessionKey>,
}

impl SessionQuery {
    /// The newest 100 sessions of `scope`.
    #[must_use]
    pub fn new(scope: impl Into<Scope>) -> Self {
        Self {
            scope: scope.into(),
            filter: SessionFilter::default(),
            id_prefix: None,
            parent: None,
            text: None,
            since: None,
            until: None,
            created_until: None,
            limit: 100,
            after: None,
            without: Vec::new(),
        }
    }

    /// Narrows by what a session is.
    #[must_use]
    pub fn with_filter(mut self, filter: SessionFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Narrows to sessions spawned or forked from `parent`.
    #[must_use]
    pub fn with_parent(mut self, parent: Option<SessionId>) -> Self {
        self.parent = parent;
        self
    }

    /// Narrows to sessions whose title or description holds all words of `text`.
    #[must_use]
    pub fn with_text(mut self, text: Option<String>) -> Self {
        self.text = text;
        self
    }

    /// Narrows to sessions that were active at some time from `since` on and before `until`.
    #[must_use]
    pub fn active_in(mut self, since: Option<Timestamp>, until: Option<Timestamp>) -> Self {
        (self.since, self.created_until) = (since, until);
        self
    }

    /// Narrows to ids that begin with `prefix`.
    #[must_use]
    pub fn with_id_prefix(mut self, prefix: Option<String>) -> Self {
        self.id_prefix = prefix;
        self
    }

    /// Narrows to sessions updated from `since` on.
    #[must_use]
    pub fn with_since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since;
        self
    }

    /// Narrows to sessions updated before `until`.
    #[must_use]
    pub fn with_until(mut self, until: Option<Timestamp>) -> Self {
        self.until = until;
        self
    }

    /// Sets the most sessions in the answer.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Continues behind a session.
    #[must_use]
    pub fn with_after(mut self, after: Option<SessionCursor>) -> Self {
        self.after = after;
        self
    }

    /// Whether `session` passes every condition but `limit` and `after`.
    #[must_use]
    pub fn admits(&self, session: &Session) -> bool {
        self.scope.allows(session)
            && self.filter.admits(session)
            && self.id_prefix.as_ref().is_none_or(|prefix| session.session_id.as_str().starts_with(prefix))
            && self.since.is_none_or(|since| session.updated >= since)
            && self.until.is_none_or(|until| session.updated < until)
            && self.created_until.is_none_or(|until| session.created < until)
            && self.parent.as_ref().is_none_or(|parent| session.parent_id.as_ref() == Some(parent))
            && self.text.as_ref().is_none_or(|text| says(session, text))
            && (self.without.is_empty() || !self.without.contains(&session.key()))
    }
}

/// Whether the title or the description of `session` holds all words of `text`.
fn says(session: &Session, text: &str) -> bool {
    let description = session.description.as_deref().unwrap_or_default();
    holds_words(&[session.title(), description], text)
}

/// A place in the list of sessions, which is ordered by `updated` descending, then user and id ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCursor {
    /// When the session was last changed.
    pub updated: Timestamp,
    /// The session.
    pub key: SessionKey,
}

impl From<&Session> for SessionCursor {
    fn from(session: &Session) -> Self {
        Self { updated: session.updated, key: session.key() }
    }
}

/// A stretch of rows of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceRange {
    /// The first sequence.
    pub start: u32,
    /// The most rows. A backend may return fewer (a page); only an empty answer is the end.
    pub limit: usize,
}

/// A text query, analysed: see [`crate::text`].
#[derive(Debug, Clone, PartialEq)]
pub struct TextQuery {
    /// Whose messages.
    pub scope: Scope,
    /// Which messages.
    pub filter: SearchFilter,
    /// Which texts of them.
    pub content_types: ContentTypes,
    /// The distinct terms of the query, any of which may match; not empty.
    pub terms: Vec<String>,
    /// The most candidates.
    pub limit: usize,
}

/// A text that matches a text query.
#[derive(Debug, Clone, PartialEq)]
pub struct TextCandidate {
    /// The message.
    pub place: Place,
    /// Which text of it.
    pub content_type: ContentType,
    /// BM25.
    pub score: f32,
}

impl TextCandidate {
    /// Keeps the `limit` best candidates, best first.
    pub fn keep_best(candidates: &mut Vec<Self>, limit: usize) {
        candidates.sort_by(|a, b| {
            let text = || (&a.place, a.content_type).cmp(&(&b.place, b.content_type));
            b.score.total_cmp(&a.score).then_with(text)
        });
        candidates.truncate(limit);
    }
}

/// A vector query.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorQuery {
    /// Whose messages.
    pub scope: Scope,
    /// Which messages.
    pub filter: SearchFilter,
    /// Which texts of them.
    pub content_types: ContentTypes,
    /// The query's vector, of unit length.
    pub vector: Vec<f32>,
    /// The generation of vectors that it is compared with; it is of their space.
    pub generation: u32,
    /// The most candidates.
    pub limit: usize,
}

impl VectorQuery {
    /// The cosine of the query's vector and another one of unit length.
    ///
    /// # Errors
    ///
    /// `Validation` if the vectors differ in length.
    pub fn similarity(&self, vector: &[f32]) -> Result<f32> {
        if vector.len() != self.vector.len() {
            let message = format!("has {} dimensions, the store has {}", self.vector.len(), vector.len());
            return Err(Error::validation("vector", message));
        }
        Ok(self.vector.iter().zip(vector).map(|(x, y)| x * y).sum())
    }
}

/// A chunk that is near to a query vector.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorCandidate {
    /// The message.
    pub place: Place,
    /// Which text of it.
    pub content_type: ContentType,
    /// First character of the chunk.
    pub span_start: u32,
    /// One past its last character.
    pub span_end: u32,
    /// Cosine similarity to the query.
    pub similarity: f32,
    /// Its vector, for diversification; it goes no further than `core`.
    pub vector: Vec<f32>,
}

impl VectorCandidate {
    /// Keeps the `limit` nearest candidates, nearest first.
    pub fn keep_nearest(candidates: &mut Vec<Self>, limit: usize) {
        candidates.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then_with(|| a.place.cmp(&b.place)));
        candidates.truncate(limit);
    }
}

/// Candidates, and what the reader should know of how they were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidates<T> {
    /// Best first.
    pub items: Vec<T>,
    /// Why the answer was slow, for example that an index was missing; the answer itself is right.
    pub notice: Option<String>,
}

/// Which messages owe vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwingQuery {
    /// Whose.
    pub user: UserId,
    /// Of one session.
    pub session: Option<SessionId>,
    /// The generation of the vectors.
    pub generation: u32,
    /// Behind this message.
    pub after: Option<Place>,
    /// The most messages.
    pub limit: usize,
}
