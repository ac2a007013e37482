//! Tokenizer and transformer.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
};

use amplifier_session_core::{Error, Result};
use candle_core::{Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config, DTYPE};
use tokenizers::{Encoding, Tokenizer, TruncationParams};

use super::{
    batch::{self, Length, batches},
    failed,
    pooling::pool,
    settings,
};
use crate::models::{
    CONFIG, Manifest, ModelDescription, Pooling, TOKENIZER, WEIGHTS, broken, check_weights, describe,
    of_bytes, read,
};

/// A loaded model.
pub(super) struct Encoder {
    tokenizer: Tokenizer,
    /// It computes one batch at a time.
    transformer: Mutex<BertModel>,
    pooling: Pooling,
    dimensions: usize,
    padding: u32,
}

impl Encoder {
    /// Reads the model in `folder`. Also returns a hash of everything on which its vectors depend.
    pub(super) fn open(folder: &Path, name: &str) -> Result<(Self, ModelDescription, String)> {
        let described = describe(folder, name)?;
        check_weights(folder, &described)?;
        let config: Config = serde_json::from_slice(&read(folder, CONFIG)?)
            .map_err(|error| broken(folder, CONFIG, "can't be used").with_source(error))?;
        let tokenizer_json = read(folder, TOKENIZER)?;
        let tokenizer = tokenizer(folder, &tokenizer_json, &described)?;
        let weights = read(folder, WEIGHTS)?;
        let hash = of_bytes(&weights);
        check_manifest(folder, &hash)?;
        let fingerprint =
            of_bytes(format!("{hash}\n{}\n{}", of_bytes(&tokenizer_json), settings(&described)).as_bytes());
        let encoder = Self {
            tokenizer,
            transformer: Mutex::new(transformer(folder, weights, &config)?),
            pooling: described.pooling,
            dimensions: described.dimensions,
            padding: u32::try_from(config.pad_token_id)
                .map_err(|error| broken(folder, CONFIG, "has no valid `pad_token_id`").with_source(error))?,
        };
        Ok((encoder, described, fingerprint))
    }

    /// The number of tokens of an empty text after `prompt`: those of the prompt, and of the beginning and the end.
    pub(super) fn blank(&self, prompt: &str) -> Result<usize> {
        let encoded = self.tokenizer.encode(prompt, true);
        encoded
            .map(|encoding| encoding.len())
            .map_err(|source| failed("a prompt can't be tokenized").with_source(source))
    }

    /// Computes the vectors of `texts`, each after `prompt`.
    pub(super) fn encode(&self, prompt: &str, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let blank = self.blank(prompt)?;
        let texts: Vec<String> = texts.iter().map(|text| format!("{prompt}{text}")).collect();
        let encoded = self.tokenizer.encode_batch(texts, true);
        let encoded = encoded.map_err(|source| failed("a text can't be tokenized").with_source(source))?;
        // Empty texts keep these zeros.
        let mut vectors = vec![vec![0.0; self.dimensions]; encoded.len()];
        let lengths = encoded.iter().enumerate().map(|(at, text)| Length { at, tokens: text.len() });
        let lengths = lengths.filter(|length| length.tokens > blank).collect();
        for batch in batches(lengths, batch::TOKENS) {
            let of_batch: Vec<&Encoding> = batch.iter().filter_map(|at| encoded.get(*at)).collect();
            debug_assert_eq!(of_batch.len(), batch.len(), "a batch consists of these texts");
            for (at, vector) in batch.iter().zip(self.forward(&of_batch)?) {
                if let Some(place) = vectors.get_mut(*at) {
                    *place = vector;
                }
            }
        }
        if vectors.iter().flatten().all(|x| x.is_finite()) {
            return Ok(vectors);
        }
        Err(failed("the model computed a vector that is not finite: its weights are damaged"))
    }

    /// Computes the vectors of a batch.
    fn forward(&self, texts: &[&Encoding]) -> Result<Vec<Vec<f32>>> {
        let states =
            self.states(texts).map_err(|source| failed("running the model failed").with_source(source))?;
        let pooled = texts.iter().zip(&states).map(|(text, states)| {
            // The rest is padding.
            pool(states.get(..text.len()).unwrap_or(states), self.pooling)
        });
        Ok(pooled.collect())
    }

    /// Computes the states of all tokens of each text, including its padding.
    fn states(&self, texts: &[&Encoding]) -> candle_core::Result<Vec<Vec<Vec<f32>>>> {
        let longest = texts.iter().map(|text| text.len()).max().unwrap_or(0);
        let tensor = |of: fn(&Encoding) -> Vec<u32>, padding: u32| {
            let rows = texts.iter().flat_map(|text| {
                let mut row = of(text);
                row.resize(longest, padding);
                row
            });
            Tensor::from_vec(rows.collect::<Vec<u32>>(), (texts.len(), longest), &Device::Cpu)
        };
        let ids = tensor(|text| text.get_ids().to_vec(), self.padding)?;
        let types = tensor(|text| text.get_type_ids().to_vec(), 0)?;
        let mask = tensor(|text| vec![1; text.len()], 0)?;
        let transformer = self.transformer.lock().unwrap_or_else(PoisonError::into_inner);
        transformer.forward(&ids, &types, Some(&mask))?.to_vec3()
    }
}

fn tokenizer(folder: &Path, json: &[u8], described: &ModelDescription) -> Result<Tokenizer> {
    let wrong = |source| -> Error { broken(folder, TOKENIZER, "can't be used").with_source(source) };
    let mut tokenizer = Tokenizer::from_bytes(json).map_err(wrong)?;
    let known = tokenizer.get_vocab_size(true);
    if known > described.vocabulary {
        let what = format!("has {known} tokens, more than the {} of {CONFIG}", described.vocabulary);
        return Err(broken(folder, TOKENIZER, what));
    }
    // Many files set both lengths, some of them shorter than the model's input.
    tokenizer.with_padding(None);
    let truncation = TruncationParams { max_length: described.max_tokens, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation)).map_err(wrong)?;
    tokenizer.set_encode_special_tokens(true);
    Ok(tokenizer)
}

fn transformer(folder: &Path, weights: Vec<u8>, config: &Config) -> Result<BertModel> {
    let wrong = |source| broken(folder, WEIGHTS, "can't be used").with_source(source);
    let tensors = VarBuilder::from_buffered_safetensors(weights, DTYPE, &Device::Cpu).map_err(wrong)?;
    BertModel::load(tensors, config).map_err(wrong)
}

/// Checks that the weights are the ones that were installed.
fn check_manifest(folder: &Path, weights: &str) -> Result<()> {
    let manifest = Manifest::read(folder)?;
    let files = manifest.as_ref().map_or(&[][..], |manifest| &manifest.files);
    match files.iter().find(|file| file.path == WEIGHTS) {
        Some(file) if file.sha256 != weights => {
            let what = "has changed since it was installed; run `embeddings models verify`";
            Err(broken(folder, WEIGHTS, what))
        }
        _ => Ok(()),
    }
}
