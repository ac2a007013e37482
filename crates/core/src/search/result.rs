//! Search results. No type here contains a vector.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Explanation, SearchExplanation, SearchMode};
use crate::model::{ContentType, DamagedRow, ProjectSlug, Role, SessionId, TimeSource, Timestamp, UserId};

/// How a result was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchSource {
    /// Only by words.
    FullText,
    /// Only by meaning.
    Semantic,
    /// By both.
    Both,
}

/// What a result matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MatchKind {
    /// The whole query, word by word: a phrase or an identifier.
    Exact,
    /// Some of the words of the query.
    Words,
    /// No word of the query: it is similar in meaning.
    Similar,
}

names! {
    MatchKind { Exact: "exact", Words: "words", Similar: "similar" }
}

/// A message with the same text as a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Repeat {
    /// The owner.
    pub user_id: UserId,
    /// The session.
    pub session_id: SessionId,
    /// The number of the message in the session, from 0.
    pub sequence: u32,
}

/// One message that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SearchResult {
    /// The owner.
    pub user_id: UserId,
    /// The session.
    pub session_id: SessionId,
    /// The project of the session.
    pub project: ProjectSlug,
    /// The number of the message in the session, from 0.
    pub sequence: u32,
    /// Its turn.
    pub turn: Option<u32>,
    /// The speaker.
    pub role: Role,
    /// When it was written.
    pub ts: Timestamp,
    /// Whether `ts` is an estimate.
    pub ts_estimated: bool,
    /// Where `ts` comes from.
    pub ts_source: TimeSource,
    /// The content type of the text that matched best.
    pub content_type: ContentType,
    /// The range of characters of that text that matched: the best chunk, or the whole text.
    pub span: (u32, u32),
    /// The score, 0 to 1: relevance, weighted with the difference from better results. It is relative to the best
    /// result; `match_kind` and `similarity` say what a result is worth.
    pub score: f32,
    /// What it matched.
    #[serde(rename = "match")]
    pub match_kind: MatchKind,
    /// The words of the query that its text has, as they were typed.
    pub words: Vec<String>,
    /// Whether it stands for its session, because the title or the description has all words of the query.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_title: bool,
    /// How it was found.
    pub source: SearchSource,
    /// The BM25 score of the text match.
    pub text_score: Option<f32>,
    /// The cosine similarity to the query, -1 to 1. Unlike the score, it does not depend on other results.
    pub similarity: Option<f32>,
    /// The best passage of the text, with white space collapsed.
    pub snippet: String,
    /// The matched words, as character ranges of `snippet`.
    pub highlights: Vec<(u32, u32)>,
    /// Other messages among the candidates with the same text, for example in forks of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_in: Vec<Repeat>,
    /// Why it has its place, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// The complete message, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
}

/// Messages in scope that a search by meaning can't find yet, regardless of its filter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissingVectors {
    /// Messages with something to embed that have no vectors of the current generation yet.
    pub messages: u64,
    /// All messages in scope. 0 if no vectors are missing.
    pub of: u64,
}

/// The answer to a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SearchResults {
    /// The mode that ran, which may differ from the requested one.
    pub mode: SearchMode,
    /// Notes for the user: why another mode ran, or that the index was missing.
    pub notices: Vec<String>,
    /// Messages that a search by meaning could not find; `None` if there are none, or if the search used only words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_vectors: Option<MissingVectors>,
    /// How many candidates were compared with the conditions of the search, if others were not: some results may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examined: Option<u64>,
    /// The messages, best first.
    pub results: Vec<SearchResult>,
    /// If nothing matches: the message that is nearest by meaning, although it is too far from the query to be a
    /// result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<SearchResult>,
    /// The terms and the number of candidates, if an explanation was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<SearchExplanation>,
    /// Messages that would be among the results, but can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
}
