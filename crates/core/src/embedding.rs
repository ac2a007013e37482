//! Embedding providers, which turn texts into vectors.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::{Result, model::EmbeddingSpace};

/// The purpose of an embedding. Some models put a different prefix before the text for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EmbeddingPurpose {
    /// The text is to be found.
    Document,
    /// The text is a search query.
    Query,
}

/// How reliable a model's similarities are compared with full text. Determines the fusion weights in [`crate::search`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelStrength {
    /// A table of token vectors without context.
    Static,
    /// A transformer.
    Contextual,
}

/// The limits of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingLimits {
    /// Texts of more `cl100k_base` tokens than this are cut into chunks.
    pub chunk_threshold_tokens: usize,
    /// The maximum number of tokens in a chunk.
    pub chunk_target_tokens: usize,
    /// The maximum number of texts in one call of [`EmbeddingProvider::embed`].
    pub batch_texts: usize,
    /// The maximum number of tokens in one call of [`EmbeddingProvider::embed`].
    pub batch_tokens: usize,
    /// The maximum number of concurrent calls of [`EmbeddingProvider::embed`].
    pub concurrent_calls: usize,
}

/// Marks an unusable vector of a service, which contains only zeros or a NaN: all its numbers are replaced by this
/// value.
pub const NO_VECTOR: f32 = f32::NAN;

/// Whether `vector` is marked as unusable with [`NO_VECTOR`].
#[must_use]
pub fn is_no_vector(vector: &[f32]) -> bool {
    !vector.is_empty() && vector.iter().all(|x| x.is_nan())
}

/// A model that turns texts into vectors.
///
/// Implementations make one attempt per call. Retries, caching and circuit breaking are wrappers around a provider.
#[async_trait]
pub trait EmbeddingProvider: Debug + Send + Sync {
    /// The model's name and the length of its vectors.
    fn space(&self) -> &EmbeddingSpace;

    /// The limits of a call.
    fn limits(&self) -> EmbeddingLimits;

    /// How reliable its similarities are.
    fn strength(&self) -> ModelStrength;

    /// Whether texts stay on this machine.
    fn is_local(&self) -> bool;

    /// The address of the service that makes the vectors, for errors; `None` if it calls no service.
    fn address(&self) -> Option<String> {
        None
    }

    /// The vectors of `texts`, in order, each of unit length.
    ///
    /// If a model on this machine knows no part of a text, the vector contains only zeros. If a service returns no
    /// usable vector for a text, the vector contains only [`NO_VECTOR`]; the other texts of the call keep their
    /// vectors.
    ///
    /// # Errors
    ///
    /// - `Validation` if the service rejects one of the texts; it may accept the others without it;
    /// - `Authentication` if it rejects the credentials;
    /// - `Embedding` for all other failures, marked as retryable if another attempt may succeed.
    ///
    /// Always returns as many vectors as `texts`, all with the dimensions of the space.
    async fn embed(&self, texts: &[String], purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>>;
}
