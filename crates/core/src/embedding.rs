//! What makes vectors out of texts.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::{Result, model::EmbeddingSpace};

/// What a text is embedded for; some models put a different prefix before each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EmbeddingPurpose {
    /// To be found.
    Document,
    /// To find with.
    Query,
}

/// How far a model's similarities can be trusted beside full text; chooses the fusion weights in
/// [`crate::search`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelStrength {
    /// A table of token vectors without context.
    Static,
    /// A transformer.
    Contextual,
}

/// How much a provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingLimits {
    /// Texts of more `cl100k_base` tokens than this are cut into chunks.
    pub chunk_threshold_tokens: usize,
    /// The most tokens that a chunk has.
    pub chunk_target_tokens: usize,
    /// The most texts in one call of [`EmbeddingProvider::embed`].
    pub batch_texts: usize,
    /// The most tokens in one call of [`EmbeddingProvider::embed`].
    pub batch_tokens: usize,
    /// The most calls of [`EmbeddingProvider::embed`] that are made at the same time.
    pub concurrent_calls: usize,
}

/// Replaces a vector of a service that is unusable, because it contains only zeros or a NaN: all its numbers have this
/// value.
pub const NO_VECTOR: f32 = f32::NAN;

/// Whether `vector` is such a replacement, see [`NO_VECTOR`].
#[must_use]
pub fn is_no_vector(vector: &[f32]) -> bool {
    !vector.is_empty() && vector.iter().all(|x| x.is_nan())
}

/// A model that turns texts into vectors.
///
/// Implementations make one attempt a call: retry, caching and circuit breaking are wrappers around a provider.
#[async_trait]
pub trait EmbeddingProvider: Debug + Send + Sync {
    /// The model's name and the length of its vectors.
    fn space(&self) -> &EmbeddingSpace;

    /// How much it takes.
    fn limits(&self) -> EmbeddingLimits;

    /// How far its similarities can be trusted.
    fn strength(&self) -> ModelStrength;

    /// Whether texts stay on this machine.
    fn is_local(&self) -> bool;

    /// The address of the service that makes the vectors, for errors; `None` where nothing is called.
    fn address(&self) -> Option<String> {
        None
    }

    /// The vectors of `texts`, in their order, each of unit length.
    ///
    /// A text without anything a model on this machine knows has a vector of zeros. A text of which a service made
    /// nothing that can be used has one of [`NO_VECTOR`]s: it is refused, and the others of the call are not.
    ///
    /// # Errors
    ///
    /// - `Validation` when the service refuses one of the texts, so that the others may be taken without it;
    /// - `Authentication` when it refuses the credentials;
    /// - `Embedding` for all else, marked as retryable where another attempt may help.
    ///
    /// Never a list of another length than `texts`, nor a vector of other dimensions.
    async fn embed(&self, texts: &[String], purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>>;
}
