//! Results of a search in the index.

use amplifier_session_core::{model::ContentType, text::bm25::CollectionStatistics};

/// A matching text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextHit {
    /// The message's key.
    pub key: u64,
    /// The type of the message's text.
    pub content_type: ContentType,
    /// The BM25 score, greater than 0.
    pub score: f32,
}

/// A vector near the query's vector.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorHit {
    /// The vector's key.
    pub key: u64,
    /// The exact inner product with the query's vector. Both have unit length, so this is the cosine similarity.
    pub similarity: f32,
    /// The full vector.
    pub vector: Vec<f32>,
}

/// Hits, and information about how they were found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct IndexAnswer<T> {
    /// Best first; equal scores by ascending key. At most the query's limit.
    pub hits: Vec<T>,
    /// For a text query, the statistics with which the scores were computed; empty for a vector query.
    pub statistics: CollectionStatistics,
    /// Number of rows that are not in the index and were searched directly.
    pub tail_rows: u64,
    /// Why the index, or part of it, could not be used, as a sentence for users. The hits are still correct.
    pub notice: Option<String>,
}

/// The result of searching a part and the rows above it.
pub(crate) struct PartHits<T> {
    pub(crate) hits: Vec<T>,
    pub(crate) statistics: CollectionStatistics,
    /// Number of rows above the part.
    pub(crate) tail_rows: u64,
}
