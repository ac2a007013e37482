//! `models`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// List, install and verify stronger models for search by meaning
#[derive(Debug, Args)]
#[command(after_help = "\
`local` needs no model: it is compiled in. A stronger one is a folder with the files of a sentence embedder of BERT's \
family, which --embedding local:NAME uses once it is installed, and --embedding local:FOLDER where it lies. It finds \
more by meaning, and takes a thousand times longer to make vectors. Vectors of different models can't be compared: use \
the one that the store was made with.

The program must be built with the feature local-transformer to use one. Nothing is ever downloaded but by \
`models install NAME`.

In a pipe, one line a model: name, state, dimensions, bytes, and where it is from, separated by tabs.

Examples:
  amplifier-sessions models
  amplifier-sessions models install bge-small-en-v1.5
  amplifier-sessions --embedding local:bge-small-en-v1.5 sync")]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) action: Option<ModelsAction>,
}

/// What to do with models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsAction {
    /// List the models that are installed, and those that can be installed by name
    List,
    /// Install a model: from the hub by its name, or from a folder
    // Typed all the same, it says which build can use one.
    #[cfg_attr(not(feature = "local-transformer"), command(hide = true))]
    #[command(after_help = "\
By name, the files come from https://huggingface.co (or what HF_ENDPOINT says) at a fixed revision; the weights are \
compared with a known checksum. From a folder, they are copied. Either way a checksum of each is kept, which \
`models verify` compares.

Examples:
  amplifier-sessions models install e5-small-v2
  amplifier-sessions models install --from ~/Downloads/gte-small
  amplifier-sessions models install my-model --from ./model")]
    Install(InstallModelArgs),
    /// Compare the files of a model, or of all, with what was installed
    Verify(VerifyModelArgs),
}

/// `models install`.
#[derive(Debug, Args)]
pub(crate) struct InstallModelArgs {
    /// The model; with --from what to call it, by default as its folder is called
    #[arg(value_name = "NAME", required_unless_present = "from")]
    pub(crate) name: Option<String>,
    /// A folder with config.json, tokenizer.json and model.safetensors
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
}

/// `models verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyModelArgs {
    /// The model; all by default
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}
