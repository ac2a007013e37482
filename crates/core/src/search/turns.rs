//! The results of a search for turns. No type here contains a vector.

use serde::{Deserialize, Serialize};

use super::{MatchKind, SearchMode, SearchSource};
use crate::{
    model::{ContentType, DamagedRow, ProjectSlug, Role, SessionId, TimeSource, Timestamp, UserId},
    text::Snippet,
};

/// One turn that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TurnResult {
    /// The owner.
    pub user_id: UserId,
    /// The session.
    pub session_id: SessionId,
    /// The project of the session.
    pub project: ProjectSlug,
    /// The number of the user's message in the session, from 0.
    pub sequence: u32,
    /// The number of the turn.
    pub turn: u32,
    /// The role of this message, `user`.
    pub role: Role,
    /// The content type of the side that matched best. A summary stands for the answer.
    pub content_type: ContentType,
    /// The id of the user's message.
    pub user_message_id: String,
    /// The id of the assistant's message, if there is an answer.
    pub assistant_message_id: Option<String>,
    /// When the user's message was written.
    pub ts: Timestamp,
    /// Whether `ts` is an estimate.
    pub ts_estimated: bool,
    /// Where `ts` comes from.
    pub ts_source: TimeSource,
    /// The relevance, 0 to 1, relative to the best result.
    pub score: f32,
    /// What it matched.
    #[serde(rename = "match")]
    pub match_kind: MatchKind,
    /// The words of the query that it has, as they were typed.
    pub words: Vec<String>,
    /// How it was found.
    pub source: SearchSource,
    /// The sum of the BM25 scores of its sides.
    pub text_score: Option<f32>,
    /// The cosine similarity of the turn to the query, -1 to 1.
    pub similarity: Option<f32>,
    /// The best passage of the side that matched best, with white space collapsed.
    pub snippet: String,
    /// The matched words, as character ranges of `snippet`.
    pub highlights: Vec<(u32, u32)>,
    /// The best passage of the user's text.
    pub user: Snippet,
    /// The best passage of the assistant's text.
    pub assistant: Option<Snippet>,
    /// The best passage of the summary, if the turn has one.
    pub summary: Option<Snippet>,
}

/// The answer to a search for turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnResults {
    /// The mode that ran, which may differ from the requested one.
    pub mode: SearchMode,
    /// What the user should know of the search.
    pub notices: Vec<String>,
    /// The turns, best first.
    pub results: Vec<TurnResult>,
    /// Messages that would be among the results, but can't be read.
    pub damaged: Vec<DamagedRow>,
}
