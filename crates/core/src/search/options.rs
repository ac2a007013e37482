//! What a search asks for.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::SearchFilter;
use crate::{Error, Result, model::ContentTypes};

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

/// A search.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SearchOptions {
    /// Words or a question; any text is plain input.
    pub query: String,
    /// How to find. Default: hybrid.
    pub mode: SearchMode,
    /// What to look in. Default: [`ContentTypes::searched`].
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
            content_types: ContentTypes::searched(),
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

/// A search for what is near to a vector that the caller has.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct VectorSearchOptions {
    /// The vector, in the store's space; of any length but zero: it is brought to unit length.
    pub vector: Vec<f32>,
    /// What to look in. Default: the four that are embedded.
    pub content_types: ContentTypes,
    /// Which messages to look at. Default: all.
    pub filter: SearchFilter,
    /// The most results, 1 to 1,000. Default: 10.
    pub limit: usize,
    /// The least cosine similarity, -1 to 1. Default: none.
    pub min_similarity: Option<f32>,
    /// The length of a snippet in characters. Default: 240.
    pub snippet_chars: usize,
    /// Whether results carry the whole message. Default: no.
    pub with_message: bool,
}

impl VectorSearchOptions {
    /// A search for what is near to `vector` with the defaults.
    #[must_use]
    pub fn new(vector: Vec<f32>) -> Self {
        let SearchOptions { filter, limit, min_similarity, snippet_chars, with_message, .. } =
            SearchOptions::new("");
        let content_types = ContentTypes::embedded();
        Self { vector, content_types, filter, limit, min_similarity, snippet_chars, with_message }
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

    /// Sets the least similarity.
    #[must_use]
    pub fn with_min_similarity(mut self, min_similarity: impl Into<Option<f32>>) -> Self {
        self.min_similarity = min_similarity.into();
        self
    }

    /// Asks for whole messages.
    #[must_use]
    pub fn with_message(mut self, with_message: bool) -> Self {
        self.with_message = with_message;
        self
    }

    /// The same as a search whose query is of no words.
    pub(crate) fn as_search(&self) -> SearchOptions {
        SearchOptions {
            mode: SearchMode::Semantic,
            content_types: self.content_types,
            filter: self.filter.clone(),
            limit: self.limit,
            mmr_lambda: 1.0,
            min_similarity: self.min_similarity,
            snippet_chars: self.snippet_chars,
            with_message: self.with_message,
            ..SearchOptions::new("")
        }
    }
}
