//! What the files in a model's folder say of it.
//!
//! The layout is that of sentence-transformers: beside the transformer's own `config.json` stand `modules.json` (what
//! comes behind it), `1_Pooling/config.json` (how one vector is made of many), `sentence_bert_config.json` (how much it
//! reads) and `config_sentence_transformers.json` (what to put before texts). All but the first may be missing.

use std::{
    fs, io,
    path::{Component, Path},
};

use amplifier_session_core::Result;
use serde::{Deserialize, de::DeserializeOwned};

use super::{broken, families::family};

pub(crate) const CONFIG: &str = "config.json";
pub(crate) const TOKENIZER: &str = "tokenizer.json";
pub(crate) const WEIGHTS: &str = "model.safetensors";
pub(crate) const MODULES: &str = "modules.json";
pub(crate) const POOLING: &str = "1_Pooling/config.json";
pub(crate) const LENGTH: &str = "sentence_bert_config.json";
pub(crate) const PROMPTS: &str = "config_sentence_transformers.json";

/// A model that reads less than this is of no use, and a tokenizer has no room for its own tokens.
const LEAST_TOKENS: usize = 16;

/// How the vectors of a text's tokens become the one of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// That of the first token, which stands for the whole text.
    Cls,
    /// The greatest value in each dimension.
    Max,
}

impl Pooling {
    /// The name, as in the configuration of sentence-transformers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Cls => "cls",
            Self::Max => "max",
        }
    }
}

/// What is put before texts; empty for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompts {
    /// Before what is searched for.
    pub query: String,
    /// Before what is to be found.
    pub document: String,
}

/// What a folder says of its model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelDescription {
    /// The length of its vectors.
    pub dimensions: usize,
    /// The most tokens of its own that it reads, with those that mark beginning and end.
    pub max_tokens: usize,
    /// How many different tokens it knows.
    pub vocabulary: usize,
    /// How a text's vector is made.
    pub pooling: Pooling,
    /// What is put before texts.
    pub prompts: Prompts,
}

/// Reads what the files in `folder` say of a model that is called `name`.
///
/// # Errors
///
/// `Embedding` when a file is missing, broken, or says something that can't be carried out. The message names the file.
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
    let length: Length = optional(folder, LENGTH)?.unwrap_or_default();
    let max_tokens = length.max_seq_length.unwrap_or(usize::MAX).min(config.max_position_embeddings);
    if max_tokens < LEAST_TOKENS {
        let file = if length.max_seq_length == Some(max_tokens) { LENGTH } else { CONFIG };
        return Err(broken(folder, file, format_args!("says that the model reads {max_tokens} tokens only")));
    }
    let (dimensions, vocabulary) = (config.hidden_size, config.vocab_size);
    Ok(ModelDescription { dimensions, max_tokens, vocabulary, pooling, prompts })
}

/// `config.json`: what is needed to refuse a model that can't be read. The transformer itself reads the rest.
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
            let what = format!("is of a model of the type {kind:?}; only BERT's family can be read");
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
        Err(broken(folder, CONFIG, format_args!("makes no sense: {sizes}")))
    }
}

/// An entry of `modules.json`.
#[derive(Deserialize)]
struct Module {
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

/// How the folder says that vectors are pooled, if it does.
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
                let what = format!("names a module {kind:?}; known are Transformer, Pooling and Normalize");
                return Err(broken(folder, MODULES, what));
            }
        }
    }
    match file {
        Some(file) => required::<PoolingConfig>(folder, &file)?.pooling(folder, &file).map(Some),
        None => Err(broken(folder, MODULES, "names no module that pools")),
    }
}

/// A path that leads nowhere but into the folder.
fn inner<'a>(folder: &Path, path: &'a str) -> Result<&'a str> {
    let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    if inside && !path.is_empty() {
        return Ok(path);
    }
    Err(broken(folder, MODULES, format_args!("names the path {path:?}, which is not in the folder")))
}

/// `1_Pooling/config.json`; a flag a kind, or, from newer versions, one word.
#[derive(Deserialize)]
struct PoolingConfig {
    pooling_mode: Option<String>,
    #[serde(flatten)]
    flags: serde_json::Map<String, serde_json::Value>,
}

impl PoolingConfig {
    fn pooling(&self, folder: &Path, file: &str) -> Result<Pooling> {
        if self.flags.get("include_prompt") == Some(&serde_json::Value::Bool(false)) {
            return Err(broken(folder, file, "leaves prompts out when it pools, which is not known here"));
        }
        let on = self.flags.iter().filter(|(_, value)| **value == serde_json::Value::Bool(true));
        let mut modes: Vec<&str> = on.filter_map(|(flag, _)| flag.strip_prefix("pooling_mode_")).collect();
        modes.extend(self.pooling_mode.as_deref());
        match modes.as_slice() {
            ["cls_token" | "cls"] => Ok(Pooling::Cls),
            // Divided by another number, which makes no difference to a vector of unit length.
            ["mean_tokens" | "mean" | "mean_sqrt_len_tokens" | "mean_sqrt_len"] => Ok(Pooling::Mean),
            ["max_tokens" | "max"] => Ok(Pooling::Max),
            [] => Err(broken(folder, file, "says nothing of how to pool")),
            modes => {
                let what = format!(
                    "asks for {} pooling; known are mean, cls and max, one of them",
                    modes.join(" and ")
                );
                Err(broken(folder, file, what))
            }
        }
    }
}

/// `sentence_bert_config.json`.
#[derive(Default, Deserialize)]
struct Length {
    max_seq_length: Option<usize>,
}

/// `config_sentence_transformers.json`.
#[derive(Deserialize)]
struct PromptConfig {
    #[serde(default)]
    prompts: serde_json::Map<String, serde_json::Value>,
    default_prompt_name: Option<String>,
}

/// The prompts that the folder names, if it names any.
fn prompts(folder: &Path) -> Result<Option<Prompts>> {
    let Some(config) = optional::<PromptConfig>(folder, PROMPTS)? else { return Ok(None) };
    let prompt = |name: &str| config.prompts.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    let default = config.default_prompt_name.as_deref().and_then(prompt).unwrap_or_default();
    let query = prompt("query");
    let document = ["document", "passage", "corpus"].into_iter().find_map(prompt);
    let prompts =
        Prompts { query: query.unwrap_or_else(|| default.clone()), document: document.unwrap_or(default) };
    // Newer versions write empty ones for every model, also for those that need some.
    Ok(Some(prompts).filter(|prompts| *prompts != Prompts::default()))
}

fn required<T: DeserializeOwned>(folder: &Path, file: &str) -> Result<T> {
    optional(folder, file)?.ok_or_else(|| broken(folder, file, "is missing"))
}

fn optional<T: DeserializeOwned>(folder: &Path, file: &str) -> Result<Option<T>> {
    let text = match fs::read(folder.join(file)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(broken(folder, file, "can't be read").with_source(error)),
    };
    let parsed = serde_json::from_slice(&text);
    parsed.map(Some).map_err(|error| broken(folder, file, "is not what it should be").with_source(error))
}

#[cfg(test)]
mod tests;
