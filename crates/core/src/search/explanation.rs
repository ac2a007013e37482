//! Explanations: why a result has its place.

use serde::{Deserialize, Serialize};

/// Why a message has its place: what its relevance consists of. `words`, `meaning`, `neighbours`, `session` and
/// `title` are shares of the relevance; their sum is `relevance`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Explanation {
    /// The relevance, 0 to 1; 1 for the most relevant message. The score also counts the difference from better results.
    pub relevance: f32,
    /// The share of the words.
    pub words: f32,
    /// The share of the meaning.
    pub meaning: f32,
    /// The share of the best message near it in the session.
    pub neighbours: f32,
    /// The share of the best messages of its session.
    pub session: f32,
    /// The share of the title of its session.
    pub title: f32,
    /// Its place by words among the candidates, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_rank: Option<usize>,
    /// Its place by meaning among the candidates, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_rank: Option<usize>,
    /// Why its relevance was lowered. The shares are those after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowered: Option<Lowered>,
}

impl Explanation {
    /// Multiplies the relevance and its shares.
    pub(crate) fn scale(&mut self, factor: f32) {
        let Self { relevance, words, meaning, neighbours, session, title, .. } = self;
        for share in [relevance, words, meaning, neighbours, session, title] {
            *share *= factor;
        }
    }
}

/// Why the relevance of a message is lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Lowered {
    /// A program inserted it, or it is the output of a search: it counts 0.2.
    Inserted,
    /// A question that repeats the query, so that its answers rank above it: it counts 0.5.
    RepeatedQuestion,
    /// Its words are only in noise, such as a list of steps that every call repeats: it counts 0.2.
    Noise,
}

names! {
    Lowered { Inserted: "inserted", RepeatedQuestion: "repeated_question", Noise: "noise" }
}

impl Lowered {
    /// The factor of the relevance.
    #[must_use]
    pub fn factor(self) -> f32 {
        match self {
            Self::Inserted | Self::Noise => 0.2,
            Self::RepeatedQuestion => 0.5,
        }
    }
}

/// The terms and the number of candidates of a search.
///
/// How often terms occur is left out, and so are the terms that prefixes stand for: they come from all texts, not only
/// from those in scope.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SearchExplanation {
    /// The terms of the query: its words without their endings, and other spellings of identifiers.
    pub terms: Vec<SearchedTerm>,
    /// The number of candidates by words: texts, of which a message may have several.
    pub text_candidates: usize,
    /// The number of candidates by meaning: chunks, of which a message may have several.
    pub vector_candidates: usize,
}

/// A term of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SearchedTerm {
    /// The term.
    pub term: String,
    /// How much it counts, relative to a word of the query.
    pub weight: f32,
}
