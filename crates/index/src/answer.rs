//! What a search of the index answers.

use amplifier_session_core::model::ContentType;

/// A text that matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextHit {
    /// The message's key.
    pub key: u64,
    /// Which text of it.
    pub content_type: ContentType,
    /// BM25, above 0.
    pub score: f32,
}

/// A vector that is near to the query's.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorHit {
    /// The vector's key.
    pub key: u64,
    /// Its exact inner product with the query's vector: the cosine similarity, both being of unit length.
    pub similarity: f32,
    /// The full vector.
    pub vector: Vec<f32>,
}

/// Hits, and how they were found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answer<T> {
    /// Best first; equal ones by ascending key. At most as many as the query's limit.
    pub hits: Vec<T>,
    /// How many rows the index did not hold, so that they were looked at directly.
    pub tail_rows: u64,
    /// Why the index, or part of it, could not be used: a sentence for people. The hits are right all the same.
    pub notice: Option<String>,
}
