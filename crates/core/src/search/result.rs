//! What a search answers. No type here holds a vector.

use serde::Serialize;
use serde_json::Value;

use super::SearchMode;
use crate::{
    model::{ContentType, ProjectSlug, Role, SessionId, TimeSource, Timestamp, UserId},
    storage::DamagedRow,
};

/// Which way a result was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchSource {
    /// By words alone.
    FullText,
    /// By meaning alone.
    Semantic,
    /// By both.
    Both,
}

/// One message that a search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SearchResult {
    /// The owner.
    pub user_id: UserId,
    /// The session.
    pub session_id: SessionId,
    /// The project of the session.
    pub project: ProjectSlug,
    /// The message's 0-based place in the session.
    pub sequence: u32,
    /// Its turn.
    pub turn: Option<u32>,
    /// Who speaks.
    pub role: Role,
    /// When it was written.
    pub ts: Timestamp,
    /// Whether `ts` is an estimate.
    pub ts_estimated: bool,
    /// Where `ts` comes from.
    pub ts_source: TimeSource,
    /// Which text of the message matched best.
    pub content_type: ContentType,
    /// The characters of that text that matched: the best chunk, or the whole text.
    pub span: (u32, u32),
    /// 0 to 1, best first: relevance weighted with how much a result differs from those above it.
    pub score: f32,
    /// Which way it was found.
    pub source: SearchSource,
    /// BM25 score of the text match.
    pub text_score: Option<f32>,
    /// Cosine similarity to the query.
    pub similarity: Option<f32>,
    /// The best place of the text, white space collapsed.
    pub snippet: String,
    /// The matched words: character ranges of `snippet`.
    pub highlights: Vec<(u32, u32)>,
    /// The whole message, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
}

/// Messages in scope that a search by meaning can't find yet, whatever its filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MissingVectors {
    /// Messages that have something to embed, and no vectors yet.
    pub messages: u64,
    /// All messages that have something to embed.
    pub of: u64,
}

/// The answer to a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SearchResults {
    /// The mode that ran, which is not the one that was asked for when that one couldn't.
    pub mode: SearchMode,
    /// What the reader should know: why another mode ran, or that the index was not there.
    pub notices: Vec<String>,
    /// What a search by meaning could not look at; `None` when it looked at everything, or only at words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_vectors: Option<MissingVectors>,
    /// The messages, best first.
    pub results: Vec<SearchResult>,
    /// Messages that would be among them, but can't be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
}
