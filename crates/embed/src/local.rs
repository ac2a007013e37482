//! The embedding model that is compiled in.
//!
//! A table of one vector a token (`models/static-256`): a text's vector is the weighted mean of its tokens'
//! vectors, so word order and context play no part. It is modest and very fast, and it is there without a key,
//! a network or a file.
//!
//! The texts of one call are spread over all cores by the global thread pool of rayon, which `model2vec-rs` brings
//! along. A process that forks after such a call must not make another in the child, where the threads are
//! missing; `TOKENIZERS_PARALLELISM=false` in the environment keeps all work in the calling thread.

use std::sync::OnceLock;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    embedding::{EmbeddingLimits, EmbeddingProvider, EmbeddingPurpose, ModelStrength},
    model::EmbeddingSpace,
};
use async_trait::async_trait;
use model2vec_rs::model::StaticModel;
use tokio::runtime::Handle;

/// The name under which vectors of this model are stored.
///
/// Stores hold vectors of it: a changed table or tokenizer needs another name.
pub const MODEL: &str = "static-256";

/// The length of its vectors.
pub const DIMENSIONS: usize = 256;

const LIMITS: EmbeddingLimits = EmbeddingLimits {
    // Nothing in the model limits the length of a text, but the mean over a long one says little about any
    // part of it.
    chunk_threshold_tokens: 512,
    chunk_target_tokens: 512,
    batch_texts: 256,
    batch_tokens: 200_000,
    concurrent_calls: 1,
};

/// A single text of at most this many bytes is embedded without leaving the calling thread: it takes less time
/// than handing it over would.
///
/// The crate's call for a single text reads its first 512 tokens only. No token takes less than one byte, so
/// this many bytes are never cut.
const SHORT_BYTES: usize = 512;

static TOKENIZER_JSON: &[u8] = include_bytes!("../models/static-256/tokenizer.json");
static WEIGHTS: &[u8] = include_bytes!("../models/static-256/model.safetensors");
static CONFIG_JSON: &[u8] = include_bytes!("../models/static-256/config.json");

/// One copy of the table for the whole process; the error as text, since errors can't be cloned.
static LOADED: OnceLock<Result<StaticModel, String>> = OnceLock::new();

/// The model that is compiled in, `static-256`.
///
/// Building one costs nothing: the table is loaded by the first call that needs it (tens of milliseconds) and
/// shared by all instances of the process. [`LocalEmbedding::warm_up`] loads it ahead of time.
///
/// ```
/// use amplifier_session_core::embedding::EmbeddingProvider;
/// use amplifier_session_embed::LocalEmbedding;
///
/// let provider = LocalEmbedding::new();
/// assert_eq!(provider.space().model, "static-256");
/// assert_eq!(provider.space().dimensions, 256);
/// assert!(!LocalEmbedding::is_loaded());
/// ```
#[derive(Debug, Clone)]
pub struct LocalEmbedding {
    space: EmbeddingSpace,
}

impl LocalEmbedding {
    /// The provider; the table is not loaded yet.
    #[must_use]
    pub fn new() -> Self {
        Self { space: EmbeddingSpace { model: MODEL.to_owned(), dimensions: DIMENSIONS } }
    }

    /// Loads the table now, if it isn't there.
    ///
    /// It blocks for tens of milliseconds the first time: call it from a thread of its own while something else
    /// goes on. Calls to [`EmbeddingProvider::embed`] meanwhile wait for it.
    ///
    /// # Errors
    ///
    /// `Embedding` when the model that was compiled in can't be read, which is a mistake in the build.
    pub fn warm_up() -> Result<()> {
        loaded().map(|_| ())
    }

    /// Whether the table is in memory.
    #[must_use]
    pub fn is_loaded() -> bool {
        LOADED.get().is_some()
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
                let encoded = runtime.spawn_blocking(move || encode(&texts)).await;
                encoded.map_err(|source| failed("was interrupted").with_source(source))?
            }
            // Quick, or no runtime of tokio to hand it to.
            _ => encode(texts),
        }
    }
}

/// Whether `texts` are done sooner than another thread would have begun with them.
fn is_quick(texts: &[String]) -> bool {
    texts.is_empty() || (LocalEmbedding::is_loaded() && as_short(texts).is_some())
}

/// The only one of `texts`, if it is short.
fn as_short(texts: &[String]) -> Option<&str> {
    match texts {
        [text] if text.len() <= SHORT_BYTES => Some(text),
        _ => None,
    }
}

/// The vectors of `texts`; several texts are spread over all cores.
fn encode(texts: &[String]) -> Result<Vec<Vec<f32>>> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let model = loaded()?;
    Ok(match as_short(texts) {
        Some(text) => vec![model.encode_single(text)],
        // Not `encode`, which reads the first 512 tokens of a text only.
        None => model.encode_with_args(texts, None, texts.len()),
    })
}

fn loaded() -> Result<&'static StaticModel> {
    LOADED.get_or_init(load).as_ref().map_err(|reason| failed(&format!("can't be read: {reason}")))
}

fn load() -> Result<StaticModel, String> {
    let normalize = Some(true);
    let model = StaticModel::from_bytes(TOKENIZER_JSON, WEIGHTS, CONFIG_JSON, normalize)
        .map_err(|error| format!("{error:#}"))?;
    match model.dim() {
        DIMENSIONS => Ok(model),
        found => Err(format!("it has {found} dimensions, not {DIMENSIONS}")),
    }
}

fn failed(what: &str) -> Error {
    Error::new(ErrorKind::Embedding, format!("the built-in model {what}")).with("model", MODEL)
}

#[cfg(test)]
mod tests;
