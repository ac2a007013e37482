//! The embedding model that is compiled in.
//!
//! A table of one vector for each token (`models/static-256-v2`): a text's vector is the weighted mean of its tokens'
//! vectors, so word order and context play no part. It is modest and very fast, and needs no key, no network and no
//! file. Vocabulary and vectors are used in place, in the program, so there is nothing to load.
//!
//! The texts of one call are spread over all cores by the global thread pool of rayon; `RAYON_NUM_THREADS` limits
//! it. A process that forks after such a call must not make another in the child, where the threads are missing.
//! Calls with a single text don't use the pool.

mod table;
mod vocabulary;
mod wordpiece;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    embedding::{EmbeddingLimits, EmbeddingProvider, EmbeddingPurpose, ModelStrength},
    model::EmbeddingSpace,
};
use async_trait::async_trait;
use rayon::prelude::*;
use tokio::runtime::Handle;

use table::vector_of;

/// The name under which this model's vectors are stored.
///
/// Stores have vectors with this name: a changed table or tokenizer needs another one.
pub const MODEL: &str = "static-256-v2";

/// The length of its vectors.
pub const DIMENSIONS: usize = 256;

const LIMITS: EmbeddingLimits = EmbeddingLimits {
    // The model does not limit the length of a text, but the mean over a long text says little about any part of it.
    chunk_threshold_tokens: 512,
    chunk_target_tokens: 512,
    batch_texts: 256,
    batch_tokens: 200_000,
    concurrent_calls: 1,
};

/// A single text of at most this many bytes is embedded on the calling thread: passing it to another thread would take
/// longer.
const SHORT_BYTES: usize = 512;

/// The compiled-in model, `static-256-v2`. Building one costs nothing.
///
/// ```
/// use amplifier_session_core::embedding::EmbeddingProvider;
/// use amplifier_session_embed::LocalEmbedding;
///
/// let provider = LocalEmbedding::new();
/// assert_eq!(provider.space().model, "static-256-v2");
/// assert_eq!(provider.space().dimensions, 256);
/// ```
#[derive(Debug, Clone)]
pub struct LocalEmbedding {
    space: EmbeddingSpace,
}

impl LocalEmbedding {
    /// The provider.
    #[must_use]
    pub fn new() -> Self {
        Self { space: EmbeddingSpace { model: MODEL.to_owned(), dimensions: DIMENSIONS } }
    }
}

impl Default for LocalEmbedding {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl EmbeddingProvider for LocalEmbedding {
    fn space(&self) -> &EmbeddingSpace {
        &self.space
    }

    fn limits(&self) -> EmbeddingLimits {
        LIMITS
    }

    fn strength(&self) -> ModelStrength {
        ModelStrength::Static
    }

    fn is_local(&self) -> bool {
        true
    }

    async fn embed(&self, texts: &[String], _purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        match Handle::try_current() {
            Ok(runtime) if !is_quick(texts) => {
                let texts = texts.to_vec();
                runtime.spawn_blocking(move || vectors_of(&texts)).await.map_err(|source| {
                    Error::new(ErrorKind::Embedding, "the compiled-in model was interrupted")
                        .with("model", MODEL)
                        .with_source(source)
                })
            }
            // It is quick, or there is no tokio runtime.
            _ => Ok(vectors_of(texts)),
        }
    }
}

/// Whether embedding `texts` takes less time than passing them to another thread.
fn is_quick(texts: &[String]) -> bool {
    match texts {
        [] => true,
        [text] => text.len() <= SHORT_BYTES,
        _ => false,
    }
}

/// The vectors of `texts`; several texts are spread over all cores.
fn vectors_of(texts: &[String]) -> Vec<Vec<f32>> {
    match texts {
        [text] => vec![vector_of(text)],
        _ => texts.par_iter().map(|text| vector_of(text)).collect(),
    }
}

#[cfg(test)]
mod tests;
