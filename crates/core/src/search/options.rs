//! Search options.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{SearchFilter, TextConditions, TypedQuery};
use crate::{Error, ErrorField, Result, model::ContentTypes};

/// The mode of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

names! {
    SearchMode { FullText: "full_text", Semantic: "semantic", Hybrid: "hybrid" }
}

impl FromStr for SearchMode {
    type Err = Error;

    /// Parses the name, with `-` or `_`.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "full_text" | "full-text" => Ok(Self::FullText),
            "semantic" => Ok(Self::Semantic),
            "hybrid" => Ok(Self::Hybrid),
            _ => Err(Error::validation(ErrorField::Mode, "must be hybrid, semantic or full-text")),
        }
    }
}

/// A search.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SearchOptions {
    /// Words or a question; plain text without operators. See [`SearchOptions::parsed`] for a query with operators.
    pub query: String,
    /// What the texts of a message must contain beyond words of the query. Default: nothing.
    pub conditions: TextConditions,
    /// Whether a search without words finds the newest messages that match the filter and the conditions. Default: no,
    /// it finds nothing.
    pub newest_without_words: bool,
    /// At most this many messages of each session, in a search without words. Default: all.
    pub most_of_session: Option<usize>,
    /// The mode. Default: hybrid.
    pub mode: SearchMode,
    /// The content types to search. Default: [`ContentTypes::searched`].
    pub content_types: ContentTypes,
    /// The filter for messages. Default: all.
    pub filter: SearchFilter,
    /// Maximum number of results, at least 1. Default: 10.
    pub limit: usize,
    /// Balance of relevance and diversity for maximal marginal relevance, 0 to 1. Default: 0.7; 1 is relevance only.
    pub mmr_lambda: f32,
    /// Minimum cosine similarity of a semantic result, -1 to 1. Default: none.
    pub min_similarity: Option<f32>,
    /// The length of a snippet in characters. Default: 240.
    pub snippet_chars: usize,
    /// Whether results include the complete message. Default: no.
    pub with_message: bool,
    /// Whether to explain the places of the results. Default: no.
    pub explain: bool,
}

impl SearchOptions {
    /// A search for `query` with the defaults.
    #[must_use]
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            conditions: TextConditions::default(),
            newest_without_words: false,
            most_of_session: None,
            mode: SearchMode::default(),
            content_types: ContentTypes::searched(),
            filter: SearchFilter::default(),
            limit: 10,
            mmr_lambda: 0.7,
            min_similarity: None,
            snippet_chars: 240,
            with_message: false,
            explain: false,
        }
    }

    /// A search for a query with operators, without its fields.
    #[must_use]
    pub fn parsed(query: &TypedQuery) -> Self {
        Self::new(query.text.clone()).with_conditions(query.into())
    }

    setters! {
        /// Sets the conditions on texts.
        with_conditions(conditions: TextConditions);
        /// Sets whether a search without words finds the newest messages.
        with_newest_without_words(newest_without_words: bool);
        /// Sets the mode.
        with_mode(mode: SearchMode);
        /// Sets the content types to search.
        with_content_types(content_types: ContentTypes);
        /// Sets the filter for messages.
        with_filter(filter: SearchFilter);
        /// Sets the maximum number of results.
        with_limit(limit: usize);
        /// Sets the balance of relevance and diversity.
        with_mmr_lambda(mmr_lambda: f32);
        /// Sets the length of snippets.
        with_snippet_chars(snippet_chars: usize);
        /// Sets whether results include the complete message.
        with_message(with_message: bool);
        /// Sets whether to explain the places of the results.
        with_explain(explain: bool);
    }

    optional_setters! {
        /// Sets how many messages of each session a search without words finds.
        with_most_of_session(most_of_session: usize);
        /// Sets the minimum similarity of a semantic result.
        with_min_similarity(min_similarity: f32);
    }

    /// Whether it looks for words only, whatever its mode: an exact text has no meaning, and neither has no text.
    pub(crate) fn is_about_words(&self) -> bool {
        self.mode == SearchMode::FullText || self.conditions.exact.is_some() || self.lists_newest()
    }

    /// Whether messages are found by words: for a search by meaning, only those with its phrases are compared.
    pub(crate) fn needs_words(&self) -> bool {
        self.mode != SearchMode::Semantic || self.is_about_words() || !self.conditions.phrases.is_empty()
    }

    /// Whether it finds the newest messages.
    #[must_use]
    pub fn lists_newest(&self) -> bool {
        self.newest_without_words && self.query.trim().is_empty() && self.conditions.exact.is_none()
    }

    /// The search without its phrases, if the query has other words too.
    pub(crate) fn without_phrases(&self) -> Option<Self> {
        let phrases = &self.conditions.phrases;
        let of_phrases: usize = phrases.iter().map(|phrase| phrase.split_whitespace().count()).sum();
        if phrases.is_empty() || self.query.split_whitespace().count() <= of_phrases {
            return None;
        }
        let mut relaxed = self.clone();
        relaxed.conditions.phrases.clear();
        Some(relaxed)
    }

    /// Checks the options.
    ///
    /// # Errors
    ///
    /// `Validation` with the field that is out of range.
    pub fn validate(&self) -> Result<()> {
        /// A page of results, not an export.
        const MAX_LIMIT: usize = 1_000;
        if self.content_types.is_empty() {
            return Err(Error::validation(
                ErrorField::ContentTypes,
                "at least one content type must be searched",
            ));
        }
        if !(1..=MAX_LIMIT).contains(&self.limit) {
            return Err(Error::validation(ErrorField::Limit, "must be 1 to 1000"));
        }
        if !(0.0..=1.0).contains(&self.mmr_lambda) {
            return Err(Error::validation(ErrorField::MmrLambda, "must be 0 to 1"));
        }
        if self.min_similarity.is_some_and(|least| !(-1.0..=1.0).contains(&least)) {
            return Err(Error::validation(ErrorField::MinSimilarity, "must be -1 to 1"));
        }
        if self.conditions.exact.as_ref().is_some_and(|exact| exact.trim().is_empty()) {
            return Err(Error::validation(ErrorField::Exact, "the text to find is empty"));
        }
        let SearchFilter { since, until, .. } = self.filter;
        if since.is_some_and(|since| until.is_some_and(|until| until < since)) {
            return Err(Error::validation(ErrorField::Until, "the period ends before it begins"));
        }
        Ok(())
    }
}

/// A search for the nearest texts to a given vector.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct VectorSearchOptions {
    /// The vector, in the store's space. It is scaled to unit length and must not be zero.
    pub vector: Vec<f32>,
    /// The content types to search. Default: the four that are embedded.
    pub content_types: ContentTypes,
    /// The filter for messages. Default: all.
    pub filter: SearchFilter,
    /// Maximum number of results, 1 to 1,000. Default: 10.
    pub limit: usize,
    /// Minimum cosine similarity, -1 to 1. Default: none.
    pub min_similarity: Option<f32>,
    /// The length of a snippet in characters. Default: 240.
    pub snippet_chars: usize,
    /// Whether results include the complete message. Default: no.
    pub with_message: bool,
}

impl VectorSearchOptions {
    /// A search for the nearest texts to `vector`, with the defaults.
    #[must_use]
    pub fn new(vector: Vec<f32>) -> Self {
        let SearchOptions { filter, limit, min_similarity, snippet_chars, with_message, .. } =
            SearchOptions::new("");
        let content_types = ContentTypes::embedded();
        Self { vector, content_types, filter, limit, min_similarity, snippet_chars, with_message }
    }

    setters! {
        /// Sets the content types to search.
        with_content_types(content_types: ContentTypes);
        /// Sets the filter for messages.
        with_filter(filter: SearchFilter);
        /// Sets the maximum number of results.
        with_limit(limit: usize);
        /// Sets whether results include the complete message.
        with_message(with_message: bool);
    }

    optional_setters! {
        /// Sets the minimum similarity.
        with_min_similarity(min_similarity: f32);
    }

    /// The same as a search with an empty query.
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
