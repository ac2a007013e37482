//! The configuration files in a model's folder.
//!
//! The layout is that of sentence-transformers. Besides the transformer's own `config.json` there may be `modules.json`
//! (the modules after the transformer), `1_Pooling/config.json` (how the vectors of tokens become one),
//! `sentence_bert_config.json` (the maximum number of tokens in a text) and `config_sentence_transformers.json`
//! (prompts).

use std::{
    fs, io,
    path::{Component, Path},
};

use amplifier_session_core::Result;
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    broken,
    families::{Pooling, Prompts, family},
};

pub(crate) const CONFIG: &str = "config.json";
pub(crate) const TOKENIZER: &str = "tokenizer.json";
pub(crate) const WEIGHTS: &str = "model.safetensors";
pub(crate) const MODULES: &str = "modules.json";
pub(crate) const POOLING: &str = "1_Pooling/config.json";
pub(crate) const LENGTH: &str = "sentence_bert_config.json";
pub(crate) const PROMPTS: &str = "config_sentence_transformers.json";

/// A model that reads fewer tokens than this is useless: the tokenizer's own tokens need room as well.
const LEAST_TOKENS: usize = 16;

/// The properties of a model, read from its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelDescription {
    /// The length of its vectors.
    pub dimensions: usize,
    /// The maximum number of its own tokens in a text, including the tokens that mark beginning and end.
    pub max_tokens: usize,
    /// The size of the vocabulary.
    pub vocabulary: usize,
    /// How the vectors of tokens are combined into one.
    pub pooling: Pooling,
    /// The texts to put before queries and documents.
    pub prompts: Prompts,
}

/// Reads the configuration in `folder` of the model `name`.
///
/// # Errors
///
/// `Embedding` if a file is missing, invalid, or asks for something that is not supported. The message names the file.
pub(crate) fn describe(folder: &Path, name: &str) -> Result<ModelDescription> {
    let config: Config = required(folder, CONFIG)?;
    config.check(folder)?;
    let family = family(name).or_else(|| family(config.name_or_path.as_deref().unwrap_or_default()));
    let pooling = match pooling(folder)? {
        Some(pooling) => pooling,
        None => family.map_or(Pooling::Mean, |family| family.pooling),
    };
    let prompts = match prompts(folder)? {
        Some(prompts) => prompts,
        None => family.map(|family| family.prompts()).unwrap_or_default(),
    };
    let length: LengthFile = optional(folder, LENGTH)?.unwrap_or_default();
    let max_tokens = length.max_seq_length.unwrap_or(usize::MAX).min(config.max_position_embeddings);
    if max_tokens < LEAST_TOKENS {
        let file = if length.max_seq_length == Some(max_tokens) { LENGTH } else { CONFIG };
        return Err(broken(
            folder,
            file,
            format_args!("limits texts to {max_tokens} tokens, which is too few"),
        ));
    }
    let (dimensions, vocabulary) = (config.hidden_size, config.vocab_size);
    Ok(ModelDescription { dimensions, max_tokens, vocabulary, pooling, prompts })
}

/// The parts of `config.json` that determine whether the model is supported. The transformer itself reads the rest.
#[derive(Deserialize)]
struct Config {
    model_type: Option<String>,
    #[serde(default)]
    architectures: Vec<String>,
    hidden_size: usize,
    num_attention_heads: usize,
    max_position_embeddings: usize,
    vocab_size: usize,
    #[serde(rename = "_name_or_path")]
    name_or_path: Option<String>,
}

impl Config {
    fn check(&self, folder: &Path) -> Result<()> {
        let architecture = self.architectures.first().map_or("", String::as_str);
        let kind = self.model_type.as_deref().unwrap_or(architecture);
        if !matches!(kind, "bert" | "BertModel" | "BertForMaskedLM") {
            let what = format!("has the model type {kind:?}, but only the BERT family is supported");
            return Err(broken(folder, CONFIG, what));
        }
        let whole = self.num_attention_heads > 0
            && self.hidden_size > 0
            && self.hidden_size.is_multiple_of(self.num_attention_heads);
        if whole {
            return Ok(());
        }
        let sizes =
            format!("{} dimensions for {} attention heads", self.hidden_size, self.num_attention_heads);
        Err(broken(folder, CONFIG, format_args!("is invalid: {sizes}")))
    }
}

/// An entry of `modules.json`.
#[derive(Deserialize)]
struct Module {
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

/// The pooling that the folder names, if any.
fn pooling(folder: &Path) -> Result<Option<Pooling>> {
    let Some(modules) = optional::<Vec<Module>>(folder, MODULES)? else {
        return optional::<PoolingConfig>(folder, POOLING)?
            .map(|found| found.pooling(folder, POOLING))
            .transpose();
    };
    let mut file = None;
    for module in modules {
        match module.kind.rsplit('.').next().unwrap_or_default() {
            "Transformer" | "Normalize" => {}
            "Pooling" => file = Some(format!("{}/{CONFIG}", inner(folder, &module.path)?)),
            kind => {
                let what = format!(
                    "has a module of the type {kind:?}, but only Transformer, Pooling and Normalize are supported"
                );
                return Err(broken(folder, MODULES, what));
            }
        }
    }
    match file {
        Some(file) => required::<PoolingConfig>(folder, &file)?.pooling(folder, &file).map(Some),
        None => Err(broken(folder, MODULES, "has no pooling module")),
    }
}

/// Checks that `path` leads into the folder.
fn inner<'a>(folder: &Path, path: &'a str) -> Result<&'a str> {
    let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    if inside && !path.is_empty() {
        return Ok(path);
    }
    Err(broken(folder, MODULES, format_args!("has the path {path:?}, which is outside the folder")))
}

/// `1_Pooling/config.json`, with a flag for each kind of pooling or, in newer versions, one word.
#[derive(Deserialize)]
struct PoolingConfig {
    pooling_mode: Option<String>,
    #[serde(flatten)]
    flags: serde_json::Map<String, serde_json::Value>,
}

impl PoolingConfig {
    fn pooling(&self, folder: &Path, file: &str) -> Result<Pooling> {
        if self.flags.get("include_prompt") == Some(&serde_json::Value::Bool(false)) {
            return Err(broken(folder, file, "excludes prompts from pooling, which is not supported"));
        }
        let on = self.flags.iter().filter(|(_, value)| **value == serde_json::Value::Bool(true));
        let mut modes: Vec<&str> = on.filter_map(|(flag, _)| flag.strip_prefix("pooling_mode_")).collect();
        modes.extend(self.pooling_mode.as_deref());
        match modes.as_slice() {
            ["cls_token" | "cls"] => Ok(Pooling::Cls),
            // The divisor makes no difference, since vectors have unit length.
            ["mean_tokens" | "mean" | "mean_sqrt_len_tokens" | "mean_sqrt_len"] => Ok(Pooling::Mean),
            ["max_tokens" | "max"] => Ok(Pooling::Max),
            [] => Err(broken(folder, file, "names no pooling mode")),
            modes => {
                let what = format!(
                    "asks for {} pooling, but only one of mean, cls and max is supported",
                    modes.join(" and ")
                );
                Err(broken(folder, file, what))
            }
        }
    }
}

/// `sentence_bert_config.json`.
#[derive(Default, Deserialize)]
struct LengthFile {
    max_seq_length: Option<usize>,
}

/// `config_sentence_transformers.json`.
#[derive(Deserialize)]
struct PromptConfig {
    #[serde(default)]
    prompts: serde_json::Map<String, serde_json::Value>,
    default_prompt_name: Option<String>,
}

/// The prompts in the folder, if any.
fn prompts(folder: &Path) -> Result<Option<Prompts>> {
    let Some(config) = optional::<PromptConfig>(folder, PROMPTS)? else { return Ok(None) };
    let prompt = |name: &str| config.prompts.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    let default = config.default_prompt_name.as_deref().and_then(prompt).unwrap_or_default();
    let query = prompt("query");
    let document = ["document", "passage", "corpus"].into_iter().find_map(prompt);
    let prompts =
        Prompts { query: query.unwrap_or_else(|| default.clone()), document: document.unwrap_or(default) };
    // Newer versions write empty prompts for every model, even for those that need some.
    Ok(Some(prompts).filter(|prompts| *prompts != Prompts::default()))
}

/// Reads a file that every model has.
pub(super) fn required<T: DeserializeOwned>(folder: &Path, file: &str) -> Result<T> {
    parse(folder, file, &read(folder, file)?)
}

fn optional<T: DeserializeOwned>(folder: &Path, file: &str) -> Result<Option<T>> {
    content(folder, file)?.map(|text| parse(folder, file, &text)).transpose()
}

/// The bytes of a file that every model has.
pub(crate) fn read(folder: &Path, file: &str) -> Result<Vec<u8>> {
    content(folder, file)?.ok_or_else(|| broken(folder, file, "is missing"))
}

fn content(folder: &Path, file: &str) -> Result<Option<Vec<u8>>> {
    match fs::read(folder.join(file)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(broken(folder, file, "can't be read").with_source(error)),
    }
}

fn parse<T: DeserializeOwned>(folder: &Path, file: &str, text: &[u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(|error| broken(folder, file, "is invalid").with_source(error))
}

#[cfg(test)]
mod tests;
