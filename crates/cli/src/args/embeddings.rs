//! `embeddings`, `backfill` and `rebuild`.

use clap::{Args, Subcommand};

/// Show how far the vectors are, or what making them would cost
#[derive(Debug, Args)]
#[command(after_help = "\
Vectors are what search by meaning compares. `sync` makes them; `backfill` makes those that are missing, `rebuild` makes \
them anew. Of each message with something to embed, vectors are there, owed, or a text of it failed.

In a pipe, one line a model: searched or being made, model, dimensions, messages with vectors, vectors, messages that owe \
them, messages that failed; separated by tabs.

Examples:
  amplifier-sessions embeddings
  amplifier-sessions embeddings --session 3a7c1e90
  amplifier-sessions --embedding openai embeddings estimate --all --price 0.02")]
pub(crate) struct EmbeddingsArgs {
    /// Show which texts of each message of one session have vectors; the beginning of its id is enough
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    #[command(subcommand)]
    pub(crate) action: Option<EmbeddingsAction>,
}

/// What to know about vectors.
#[derive(Debug, Subcommand)]
pub(crate) enum EmbeddingsAction {
    /// Show how far the vectors are, by model
    Status,
    /// Show what making vectors would cost; nothing is sent anywhere
    #[command(after_help = "\
Counts the vectors that are owed, or with --all those of all messages, as `rebuild` would make them, for the model that \
--embedding names. What is in the cache on this machine costs nothing, which is not taken off here.

Examples:
  amplifier-sessions --embedding openai embeddings estimate --price 0.02
  amplifier-sessions embeddings estimate --all --project my-project --json")]
    Estimate(EstimateArgs),
}

/// `embeddings estimate`.
#[derive(Debug, Args)]
pub(crate) struct EstimateArgs {
    /// All messages, not only those that owe vectors
    #[arg(long)]
    pub(crate) all: bool,
    /// What a million tokens cost, in any currency; `price_per_million_tokens` of the configuration by default
    #[arg(long, value_name = "PRICE", value_parser = price)]
    pub(crate) price: Option<f64>,
    #[command(flatten)]
    pub(crate) part: PartArgs,
}

/// Which part of the store.
#[derive(Debug, Args)]
pub(crate) struct PartArgs {
    /// Only sessions of this project: its slug, a part of the slug that no other has, or its folder
    #[arg(long, value_name = "PROJECT", allow_hyphen_values = true)]
    pub(crate) project: Option<String>,
    /// Only one session, by its address
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

/// Make the vectors that are missing
#[derive(Debug, Args)]
#[command(after_help = "\
Makes what a sync without a model, or with a service that did not answer, has left, and asks once more for texts that were \
refused. What was made stays when it is broken off.

Exit code 1 says that vectors are still owed.

Examples:
  amplifier-sessions backfill
  amplifier-sessions --embedding openai backfill --project my-project --dry-run")]
pub(crate) struct BackfillArgs {
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Only count what would be embedded
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Make vectors anew, also with another model
#[derive(Debug, Args)]
#[command(after_help = "\
With the model of the store's vectors it makes those of all your messages, or of a part, one after the other.

With another model, or other dimensions, it makes the vectors of everything in the store, whosever it is, beside the old \
ones. Searches use the old ones until the new ones are complete. What is broken off goes on when it is called again; \
`rebuild` with the model of before gives it up.

Exit code 1 says that it is not complete.

Examples:
  amplifier-sessions rebuild --session 3a7c1e90
  amplifier-sessions --embedding openai rebuild")]
pub(crate) struct RebuildArgs {
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Only count what would be embedded
    #[arg(long)]
    pub(crate) dry_run: bool,
}

fn price(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(price) if price.is_finite() && price >= 0.0 => Ok(price),
        _ => Err("must be a number of at least 0".to_owned()),
    }
}
