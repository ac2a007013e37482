//! `embeddings models`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// List, install and verify stronger models for search by meaning
#[derive(Debug, Args)]
#[command(after_help = "\
`local` needs no model: it is compiled in. A stronger model is a folder with the files of a BERT-like sentence embedder. \
--embedding local:NAME uses an installed model, and --embedding local:FOLDER a model in a folder. Search by meaning finds \
more with it, but creating vectors takes a thousand times longer. Vectors of different models can't be compared: use the \
model that created the vectors of the store.

Models need a program that was built with the feature local-transformer. Only `embeddings models install NAME` downloads anything.

In a pipe, each model is one line of tab-separated fields: name, state, dimensions, bytes, and origin.

Examples:
  amplifier-sessions embeddings models
  amplifier-sessions embeddings models install bge-small-en-v1.5
  amplifier-sessions --embedding local:bge-small-en-v1.5 sync")]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) action: Option<ModelsAction>,
}

/// What to do with models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsAction {
    /// List installed models and models that can be installed by name
    List,
    /// Install a model from the hub by name, or from a folder
    // Hidden, but it still reports which build can use a model.
    #[cfg_attr(not(feature = "local-transformer"), command(hide = true))]
    #[command(after_help = "\
By name, the files are downloaded from https://huggingface.co (or HF_ENDPOINT) at a fixed revision, and the weights are \
compared with a known checksum. From a folder, they are copied. In both cases, a checksum of each file is stored for \
`embeddings models verify`.

Examples:
  amplifier-sessions embeddings models install e5-small-v2
  amplifier-sessions embeddings models install --from ~/Downloads/gte-small
  amplifier-sessions embeddings models install my-model --from ./model")]
    Install(InstallModelArgs),
    /// Compare the files of one or all models with the stored checksums
    Verify(VerifyModelArgs),
}

/// `embeddings models install`.
#[derive(Debug, Args)]
pub(crate) struct InstallModelArgs {
    /// The model; with --from, the new name (by default that of the folder)
    #[arg(value_name = "NAME", required_unless_present = "from")]
    pub(crate) name: Option<String>,
    /// A folder with config.json, tokenizer.json and model.safetensors
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
}

/// `embeddings models verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyModelArgs {
    /// The model; by default all
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}
