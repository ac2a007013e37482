//! A stronger local model: a sentence embedder of BERT's family, read from a folder.
//!
//! | file | contents |
//! | --- | --- |
//! | `mod.rs` | the provider: limits, prompts, blocking threads |
//! | `encoder.rs` | tokenizer and transformer: from texts to the states of their tokens |
//! | `batch.rs` | which texts are computed together |
//! | `pooling.rs` | from the states of a text's tokens to its vector |
//!
//! The transformer runs on the processor with `candle`. Matrix products use all cores through rayon's global thread pool;
//! `RAYON_NUM_THREADS` limits it. A provider computes one batch at a time: several would share the same cores and need
//! more memory.

mod batch;
mod encoder;
mod pooling;

use std::{fmt, path::Path, sync::Arc};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    embedding::{EmbeddingLimits, EmbeddingProvider, EmbeddingPurpose, ModelStrength},
    model::EmbeddingSpace,
};
use async_trait::async_trait;
use tokio::runtime::Handle;

use crate::models::{ModelDescription, Prompts, folder_name};
use encoder::Encoder;

/// The maximum number of texts in one call: enough to group texts of similar length, and few enough to show progress.
const BATCH_TEXTS: usize = 64;

/// A sentence embedder in a folder: MiniLM, `bge-*-v1.5`, `e5-*`, `gte-*` and others of BERT's family.
///
/// The folder contains `config.json`, `tokenizer.json` and `model.safetensors`, and may contain further files of
/// sentence-transformers with pooling, prompts and length; see [`crate::models`]. Special tokens in texts (`[SEP]`,
/// `<s>`) are treated as plain text.
///
/// # The name of its space
///
/// `NAME@HASH`: the folder's name and the first eight digits of a SHA-256 hash of weights, tokenizer, pooling, prompts
/// and length. So changed weights define another space, even in the same folder. A renamed folder also defines another
/// space, although its vectors would be the same.
#[derive(Clone)]
pub struct TransformerEmbedding {
    space: EmbeddingSpace,
    limits: EmbeddingLimits,
    prompts: Prompts,
    encoder: Arc<Encoder>,
}

impl TransformerEmbedding {
    /// Reads the model in `folder`. This blocks while the weights are read and hashed: tenths of a second for 100 MB.
    ///
    /// # Errors
    ///
    /// `Embedding` if a file is missing, incomplete, not of BERT's family, or differs from the folder's manifest. The
    /// message names the file and the problem.
    pub fn open(folder: &Path) -> Result<Self> {
        let name = folder_name(folder);
        let (encoder, described, fingerprint) = Encoder::open(folder, &name)?;
        let space = EmbeddingSpace {
            model: format!("{name}@{}", fingerprint.chars().take(8).collect::<String>()),
            dimensions: described.dimensions,
        };
        let blank = encoder.blank(&described.prompts.query)?.max(encoder.blank(&described.prompts.document)?);
        let room = described.max_tokens.saturating_sub(blank);
        Ok(Self { space, limits: limits(room), prompts: described.prompts, encoder: Arc::new(encoder) })
    }
}

/// The limits of a model that reads `room` tokens of a text.
///
/// Limits count tokens of `cl100k_base`. The model's own tokenizer splits texts, especially code and identifiers, into
/// more tokens, which need room. A text that is still too long is truncated.
fn limits(room: usize) -> EmbeddingLimits {
    let chunk = (room * 3 / 4).max(1);
    EmbeddingLimits {
        chunk_threshold_tokens: chunk,
        chunk_target_tokens: chunk,
        batch_texts: BATCH_TEXTS,
        batch_tokens: BATCH_TEXTS * chunk,
        concurrent_calls: 1,
    }
}

impl fmt::Debug for TransformerEmbedding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransformerEmbedding").field("space", &self.space).finish_non_exhaustive()
    }
}

#[async_trait]
impl EmbeddingProvider for TransformerEmbedding {
    fn space(&self) -> &EmbeddingSpace {
        &self.space
    }

    fn limits(&self) -> EmbeddingLimits {
        self.limits
    }

    fn strength(&self) -> ModelStrength {
        ModelStrength::Contextual
    }

    fn is_local(&self) -> bool {
        true
    }

    async fn embed(&self, texts: &[String], purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let prompt = match purpose {
            EmbeddingPurpose::Query => self.prompts.query.clone(),
            EmbeddingPurpose::Document => self.prompts.document.clone(),
        };
        let (encoder, texts) = (Arc::clone(&self.encoder), texts.to_vec());
        let encode = move || encoder.encode(&prompt, &texts);
        let encoded = match Handle::try_current() {
            Ok(runtime) => {
                let encoded = runtime.spawn_blocking(encode).await;
                encoded.map_err(|source| failed("the model was interrupted").with_source(source))?
            }
            Err(_) => encode(),
        };
        encoded.map_err(|error| error.with("model", &self.space.model))
    }
}

fn failed(what: &str) -> Error {
    Error::new(ErrorKind::Embedding, what)
}

/// The settings that vectors depend on, besides weights and tokenizer.
fn settings(described: &ModelDescription) -> String {
    let ModelDescription { pooling, prompts, max_tokens, .. } = described;
    format!("{}\n{max_tokens}\n{:?}\n{:?}", pooling.as_str(), prompts.query, prompts.document)
}

#[cfg(test)]
mod tests;
