//! A stronger local model: any sentence embedder of BERT's family, read from a folder.
//!
//! | file | what it does |
//! | --- | --- |
//! | `mod.rs` | the provider: limits, prompts, the thread that the work is done on |
//! | `encoder.rs` | tokenizer and transformer: texts in, states of tokens out |
//! | `batch.rs` | which texts go through the transformer together |
//! | `pooling.rs` | from the states of a text's tokens to its vector |
//!
//! The transformer runs on the processor with `candle`, whose matrix products use all cores through the global thread
//! pool of rayon; `RAYON_NUM_THREADS` limits them. Only one batch is computed at a time in a process' provider, since
//! several would only share the same cores and need the memory several times.

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

/// The most texts in one call: enough to find some of like length that go together, and not so many that nobody sees
/// progress.
const BATCH_TEXTS: usize = 64;

/// A sentence embedder that is read from a folder: MiniLM, `bge-*-v1.5`, `e5-*`, `gte-*` and others of BERT's family.
///
/// The folder has `config.json`, `tokenizer.json` and `model.safetensors`, and whatever else sentence-transformers
/// writes; see [`crate::models`]. What it says of pooling, prompts and length is followed. Texts that look like special
/// tokens (`[SEP]`, `<s>`) are plain text.
///
/// # The name of its space
///
/// `NAME@HASH`: the folder's name, and the first eight digits of a SHA-256 over weights, tokenizer, pooling, prompts
/// and length. So other weights are another space, also when they lie in the same folder; a folder of another name is
/// too, though its vectors would fit.
#[derive(Clone)]
pub struct TransformerEmbedding {
    space: EmbeddingSpace,
    limits: EmbeddingLimits,
    prompts: Prompts,
    encoder: Arc<Encoder>,
}

impl TransformerEmbedding {
    /// Reads the model in `folder`. It blocks while the weights are read and hashed: tenths of a second for 100 MB.
    ///
    /// # Errors
    ///
    /// `Embedding` when a file is missing, cut short, not of BERT's family, or not what the manifest of the folder says
    /// was installed. The message names the file and what is wrong with it.
    pub fn open(folder: &Path) -> Result<Self> {
        let name = folder_name(folder);
        let (encoder, described, fingerprint) = Encoder::open(folder, &name)?;
        let space = EmbeddingSpace {
            model: format!("{name}@{}", fingerprint.chars().take(8).collect::<String>()),
            dimensions: described.dimensions,
        };
        let room = described.max_tokens.saturating_sub(encoder.longest_blank());
        Ok(Self { space, limits: limits(room), prompts: described.prompts, encoder: Arc::new(encoder) })
    }

    fn with_prompt(&self, texts: &[String], purpose: EmbeddingPurpose) -> Vec<String> {
        let prompt = match purpose {
            EmbeddingPurpose::Query => &self.prompts.query,
            EmbeddingPurpose::Document => &self.prompts.document,
        };
        texts.iter().map(|text| format!("{prompt}{text}")).collect()
    }
}

/// What a model takes that reads `room` tokens of a text.
///
/// Limits count tokens of `cl100k_base`; the model's own tokenizer makes more of the same text, most of all of code and
/// identifiers, and needs room for them. What is too long nevertheless is cut.
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
        let (encoder, texts) = (Arc::clone(&self.encoder), self.with_prompt(texts, purpose));
        let encoded = match Handle::try_current() {
            Ok(runtime) => {
                let encoded = runtime.spawn_blocking(move || encoder.encode(texts, purpose)).await;
                encoded.map_err(|source| failed("the model was interrupted").with_source(source))?
            }
            Err(_) => encoder.encode(texts, purpose),
        };
        encoded.map_err(|error| error.with("model", &self.space.model))
    }
}

fn failed(what: &str) -> Error {
    Error::new(ErrorKind::Embedding, what)
}

/// What the vectors depend on beside weights and tokenizer.
fn settings(described: &ModelDescription) -> String {
    let ModelDescription { pooling, prompts, max_tokens, .. } = described;
    format!("{}\n{max_tokens}\n{:?}\n{:?}", pooling.as_str(), prompts.query, prompts.document)
}

#[cfg(test)]
mod tests;
