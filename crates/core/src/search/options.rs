//! What a search asks for.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Result,
    model::{ContentTypes, ProjectSlug, Role, SessionId, Timestamp},
};

/// How a search finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchMode {
    /// By words.
    FullText,
    /// By meaning.
    Semantic,
    /// By both, fused.
    #[default]
    Hybrid,
}

impl SearchMode {
    /// The name in results: `full_text`, `semantic` or `hybrid`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FullText => "full_text",
            Self::Semantic => "semantic",
            Self::Hybrid => "hybrid",
        }
    }
}

impl fmt::Display for SearchMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for SearchMode {
    type Err = Error;

    /// Reads the name, with `-` or `_`.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "full_text" | "full-text" => Ok(Self::FullText),
            "semantic" => Ok(Self::Semantic),
            "hybrid" => Ok(Self::Hybrid),
            _ => Err(Error::validation("mode", "must be hybrid, semantic or full-text")),
        }
    }
}

/// Which messages a search looks at. Every field narrows it; the default is all of them.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SearchFilter {
    /// Only this project.
    pub project: Option<ProjectSlug>,
    /// Only this session (of every user in scope who has one of this id).
    pub session: Option<SessionId>,
    /// Only this role.
    pub role: Option<Role>,
    /// Only messages of this time or later.
    pub since: Option<Timestamp>,
    /// Only messages before this time.
    pub until: Option<Timestamp>,
}

impl SearchFilter {
    /// Narrows to a project.
    #[must_use]
    pub fn with_project(mut self, project: ProjectSlug) -> Self {
        self.project = Some(project);
        self
    }

    /// Narrows to a session.
    #[must_use]
    pub fn with_session(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self
    }

    /// Narrows to a role.
    #[must_use]
    pub fn with_role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }

    /// Narrows to messages of `since` or later.
    #[must_use]
    pub fn with_since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// Narrows to messages before `until`.
    #[must_use]
    pub fn with_until(mut self, until: Timestamp) -> Self {
        self.until = Some(until);
        self
    }

    /// Whether a message with this role and time passes the message's part of the filter.
    #[must_use]
    pub fn admits_message(&self, role: Role, ts: Timestamp) -> bool {
        self.role.is_none_or(|wanted| wanted == role)
            && self.since.is_none_or(|since| ts >= since)
            && self.until.is_none_or(|until| ts < until)
    }

    /// Whether a session with this project and id passes the session's part of the filter.
    #[must_use]
    pub fn admits_session(&self, project: &ProjectSlug, session: &SessionId) -> bool {
        self.project.as_ref().is_none_or(|wanted| wanted == project)
            && self.session.as_ref().is_none_or(|wanted| wanted == session)
    }
}

/// A search.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SearchOptions {
    /// Words or a question; any text is plain input.
    pub query: String,
    /// How to find. Default: hybrid.
    pub mode: SearchMode,
    /// What to look in. Default: the four that are embedded.
    pub content_types: ContentTypes,
    /// Which messages to look at. Default: all.
    pub filter: SearchFilter,
    /// The most results, at least 1. Default: 10.
    pub limit: usize,
    /// Relevance against diversity for maximal marginal relevance, 0 to 1. Default: 0.7; 1 is relevance alone.
    pub mmr_lambda: f32,
    /// The least cosine similarity of a semantic hit, -1 to 1. Default: none.
    pub min_similarity: Option<f32>,
    /// The length of a snippet in characters. Default: 240.
    pub snippet_chars: usize,
    /// Whether results carry the whole message. Default: no.
    pub with_message: bool,
}

impl SearchOptions {
    /// A search for `query` with the defaults.
    #[must_use]
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            mode: SearchMode::default(),
            content_types: ContentTypes::embedded(),
            filter: SearchFilter::default(),
            limit: 10,
            mmr_lambda: 0.7,
            min_similarity: None,
            snippet_chars: 240,
            with_message: false,
        }
    }

    /// Sets how to find.
    #[must_use]
    pub fn with_mode(mut self, mode: SearchMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets what to look in.
    #[must_use]
    pub fn with_content_types(mut self, content_types: ContentTypes) -> Self {
        self.content_types = content_types;
        self
    }

    /// Sets which messages to look at.
    #[must_use]
    pub fn with_filter(mut self, filter: SearchFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Sets the most results.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets relevance against diversity.
    #[must_use]
    pub fn with_mmr_lambda(mut self, mmr_lambda: f32) -> Self {
        self.mmr_lambda = mmr_lambda;
        self
    }

    /// Sets the least similarity of a semantic hit.
    #[must_use]
    pub fn with_min_similarity(mut self, min_similarity: f32) -> Self {
        self.min_similarity = Some(min_similarity);
        self
    }

    /// Sets the length of snippets.
    #[must_use]
    pub fn with_snippet_chars(mut self, snippet_chars: usize) -> Self {
        self.snippet_chars = snippet_chars;
        self
    }

    /// Asks for whole messages.
    #[must_use]
    pub fn with_message(mut self, with_message: bool) -> Self {
        self.with_message = with_message;
        self
    }

    /// Checks the options.
    ///
    /// # Errors
    ///
    /// `Validation` naming the field that is out of range.
    pub fn validate(&self) -> Result<()> {
        /// A page of results, not an export.
        const MAX_LIMIT: usize = 1_000;
        if self.content_types.is_empty() {
            return Err(Error::validation("content_types", "at least one content type must be searched"));
        }
        if !(1..=MAX_LIMIT).contains(&self.limit) {
            return Err(Error::validation("limit", "must be 1 to 1000"));
        }
        if !(0.0..=1.0).contains(&self.mmr_lambda) {
            return Err(Error::validation("mmr_lambda", "must be 0 to 1"));
        }
        if self.min_similarity.is_some_and(|least| !(-1.0..=1.0).contains(&least)) {
            return Err(Error::validation("min_similarity", "must be -1 to 1"));
        }
        Ok(())
    }
}
