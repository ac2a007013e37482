//! Queries for sessions, messages and vectors.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::{
    Error, ErrorField, Result,
    model::{ContentTypes, MessageRef, Session, SessionId, SessionKey, Timestamp, UserId, VectorText},
    scope::Scope,
    search::{SearchFilter, SessionFilter},
    text::{
        Analyzer, TermPhrase, TermPlaces,
        bm25::{CollectionStatistics, DocumentTerms},
        holds_words,
    },
};

/// The id of a session and of its parent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[non_exhaustive]
pub struct SessionName {
    /// Its id, unique per user.
    pub session_id: SessionId,
    /// Its parent, if it is a sub-agent or a fork.
    pub parent_id: Option<SessionId>,
}

impl SessionName {
    /// The ids of a session and its parent.
    #[must_use]
    pub fn new(session_id: SessionId, parent_id: Option<SessionId>) -> Self {
        Self { session_id, parent_id }
    }
}

/// Which sessions to list, newest first.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SessionQuery {
    /// The scope.
    pub scope: Scope,
    /// By project, id, bundle, tags and turns.
    pub filter: SessionFilter,
    /// Only these sessions.
    pub keys: Option<Vec<SessionKey>>,
    /// Only ids with this prefix.
    pub id_prefix: Option<String>,
    /// Only sub-agents and forks of this session.
    pub parent: Option<SessionId>,
    /// Only sessions whose title or description contains all of these words, as whole words or within longer ones.
    /// Ignores case and accents.
    pub text: Option<String>,
    /// Only sessions updated at this time or later.
    pub since: Option<Timestamp>,
    /// Only sessions updated before this time.
    pub until: Option<Timestamp>,
    /// Only sessions created before this time. Together with `since`: sessions that were active in a period.
    pub created_until: Option<Timestamp>,
    /// Maximum number of sessions.
    pub limit: usize,
    /// Continue after this session, the last one of the previous page.
    pub after: Option<SessionCursor>,
    /// Sessions to leave out because they are known to be unreadable.
    pub without: Vec<SessionKey>,
}

impl SessionQuery {
    /// The newest 100 sessions of `scope`.
    #[must_use]
    pub fn new(scope: impl Into<Scope>) -> Self {
        Self {
            scope: scope.into(),
            filter: SessionFilter::default(),
            keys: None,
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

    setters! {
        /// Sets the filter.
        with_filter(filter: SessionFilter);
        /// Only sub-agents and forks of `parent`.
        with_parent(parent: Option<SessionId>);
        /// Only sessions whose title or description contains all words of `text`.
        with_text(text: Option<String>);
        /// Only ids that begin with `id_prefix`.
        with_id_prefix(id_prefix: Option<String>);
        /// Only sessions updated at `since` or later.
        with_since(since: Option<Timestamp>);
        /// Only sessions updated before `until`.
        with_until(until: Option<Timestamp>);
        /// Sets the maximum number of sessions.
        with_limit(limit: usize);
        /// Continues after a session.
        with_after(after: Option<SessionCursor>);
    }

    /// Only these sessions.
    #[must_use]
    pub fn with_keys(mut self, keys: impl IntoIterator<Item = SessionKey>) -> Self {
        self.keys = Some(keys.into_iter().collect());
        self
    }

    /// Only sessions that were active between `since` and `until`.
    #[must_use]
    pub fn active_in(mut self, since: Option<Timestamp>, until: Option<Timestamp>) -> Self {
        (self.since, self.created_until) = (since, until);
        self
    }

    /// Whether `session` meets all conditions except `limit` and `after`.
    #[must_use]
    pub fn admits(&self, session: &Session) -> bool {
        self.scope.allows(session)
            && self.filter.admits(session)
            && self.keys.as_ref().is_none_or(|keys| keys.contains(&session.key()))
            && self.id_prefix.as_ref().is_none_or(|prefix| session.session_id.as_str().starts_with(prefix))
            && self.since.is_none_or(|since| session.updated >= since)
            && self.until.is_none_or(|until| session.updated < until)
            && self.created_until.is_none_or(|until| session.created < until)
            && self.parent.as_ref().is_none_or(|parent| session.parent_id.as_ref() == Some(parent))
            && self.text.as_ref().is_none_or(|text| has_words(session, text))
            && (self.without.is_empty() || !self.without.contains(&session.key()))
    }
}

/// Whether the title or the description of `session` contains all words of `text`.
fn has_words(session: &Session, text: &str) -> bool {
    let description = session.description.as_deref().unwrap_or_default();
    holds_words(&[session.title(), description], text)
}

/// A position in the list of sessions, which is ordered by `updated` descending, then by user and id ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCursor {
    /// The time of the last change.
    pub updated: Timestamp,
    /// The session.
    pub key: SessionKey,
}

impl From<&Session> for SessionCursor {
    fn from(session: &Session) -> Self {
        Self { updated: session.updated, key: session.key() }
    }
}

/// A range of rows of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceRange {
    /// The first sequence.
    pub start: u32,
    /// Maximum number of rows. A backend may return fewer (a page); only an empty answer means the end.
    pub limit: usize,
}

/// An analysed text query: see [`crate::text`].
#[derive(Debug, Clone, PartialEq)]
pub struct TextQuery {
    /// The scope of the messages.
    pub scope: Scope,
    /// The filter of the messages.
    pub filter: SearchFilter,
    /// The content types to search.
    pub content_types: ContentTypes,
    /// The distinct terms of the query. A text matches if it contains any of them, or if there are none.
    pub terms: Vec<String>,
    /// How much each term counts in a score. Terms without a weight count 1.
    pub weights: Vec<f32>,
    /// Groups of positions in `terms`. A text matches only if it contains at least one term of each group.
    pub required: Vec<Vec<usize>>,
    /// Phrases of terms that are required. A text matches only if it contains each of them. A backend that does not know
    /// where the terms of a text are may treat it as a match.
    pub phrases: Vec<TermPhrase>,
    /// Only texts of messages that use each of these tools, in lower case: see
    /// [`MessageLine::used_tools`](crate::content::MessageLine::used_tools).
    pub tools: Vec<String>,
    /// Maximum number of candidates.
    pub limit: usize,
}

impl TextQuery {
    /// Statistics for a store without texts, with the weights of the terms.
    #[must_use]
    pub fn no_statistics(&self) -> CollectionStatistics {
        CollectionStatistics::new(self.terms.len()).with_weights(&self.weights)
    }

    /// Whether a text with these occurrences of the terms matches.
    #[must_use]
    pub fn is_matched_by(&self, found: &DocumentTerms) -> bool {
        (self.terms.is_empty() || found.matches()) && has_required(&self.required, found)
    }

    /// Whether a message that uses these tools uses all that the query names.
    #[must_use]
    pub fn has_tools(&self, used: &BTreeSet<String>) -> bool {
        self.tools.iter().all(|tool| used.contains(tool))
    }

    /// Whether a text has all phrases, if its terms are at these places.
    #[must_use]
    pub fn has_phrases(&self, places: &TermPlaces) -> bool {
        self.phrases.iter().all(|phrase| phrase.is_at(places))
    }

    /// Whether `text` has all phrases. Use an analyzer from [`Analyzer::looking_for`] with the terms of the query.
    #[must_use]
    pub fn has_phrases_in(&self, analyzer: &mut Analyzer, text: &str) -> bool {
        self.phrases.is_empty() || self.has_phrases(&TermPlaces::find(analyzer, text, &self.terms))
    }

    /// The positions of the terms of the phrases, each once.
    #[must_use]
    pub fn terms_of_phrases(&self) -> Vec<usize> {
        let mut terms: Vec<usize> = self.phrases.iter().flat_map(TermPhrase::terms).collect();
        terms.sort_unstable();
        terms.dedup();
        terms
    }
}

/// Whether a text contains a term of each group of positions.
#[must_use]
pub fn has_required(required: &[Vec<usize>], found: &DocumentTerms) -> bool {
    let occurs = |term: &usize| found.frequencies.get(*term).is_some_and(|frequency| *frequency > 0);
    required.iter().all(|group| group.iter().any(occurs))
}

/// A vector query.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorQuery {
    /// The scope of the messages.
    pub scope: Scope,
    /// The filter of the messages.
    pub filter: SearchFilter,
    /// The content types to search. Ignored in a search for turns.
    pub content_types: ContentTypes,
    /// Only messages that use each of these tools, as in [`TextQuery::tools`]. A backend whose vectors do not tell the
    /// tools may ignore this, and so does a search for turns.
    pub tools: Vec<String>,
    /// Whether to compare the vectors of turns, instead of those of texts. Time and role of the filter are then those
    /// of the user's message.
    pub turns: bool,
    /// The query's vector, of unit length.
    pub vector: Vec<f32>,
    /// The generation of vectors to compare it with, which has the same space.
    pub generation: u32,
    /// Maximum number of candidates.
    pub limit: usize,
}

impl VectorQuery {
    /// Whether the query compares vectors of this text.
    #[must_use]
    pub fn compares(&self, text: VectorText) -> bool {
        match text {
            VectorText::Turn => self.turns,
            VectorText::Content(content_type) => !self.turns && self.content_types.contains(content_type),
        }
    }

    /// The cosine of the query's vector and another one of unit length.
    ///
    /// # Errors
    ///
    /// `Validation` if the vectors differ in length.
    pub fn similarity(&self, vector: &[f32]) -> Result<f32> {
        if vector.len() != self.vector.len() {
            let message = format!("has {} dimensions, but the store has {}", self.vector.len(), vector.len());
            return Err(Error::validation(ErrorField::Vector, message));
        }
        Ok(self.vector.iter().zip(vector).map(|(x, y)| x * y).sum())
    }
}

/// Which messages with pending vectors to return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingQuery {
    /// The owner.
    pub user: UserId,
    /// Only messages of this session.
    pub session: Option<SessionId>,
    /// The generation of the vectors.
    pub generation: u32,
    /// Whether messages of which only the vector of the turn is pending are included.
    pub turns: bool,
    /// Only messages after this one.
    pub after: Option<MessageRef>,
    /// Maximum number of messages.
    pub limit: usize,
}
