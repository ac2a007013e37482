//! `embeddings` and its subcommands.

use amplifier_session_api::operations::vectors::EmbedRequest;
use clap::{Args, Subcommand};

use super::{ModelsArgs, PlaceArgs, TurnsArgs};

/// Count and create vectors, estimate their cost, and install models
#[derive(Debug, Args)]
#[command(after_help = "\
Search by meaning compares vectors. `sync` creates them, `embeddings backfill` creates missing ones, and `embeddings rebuild` \
creates all of them again. A message with something to embed has its vectors, or they are pending, or one of its texts failed.

In a pipe, each model is one line of tab-separated fields: searched or being made, model, dimensions, messages with vectors, \
vectors, messages with pending vectors, messages that failed.

Examples:
  amplifier-sessions embeddings
  amplifier-sessions embeddings --session 3a7c1e90
  amplifier-sessions embeddings backfill
  amplifier-sessions --embedding openai embeddings estimate --all --price 0.02")]
pub(crate) struct EmbeddingsArgs {
    /// Show which texts of each message in this session have vectors
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    #[command(subcommand)]
    pub(crate) action: Option<EmbeddingsAction>,
}

impl EmbeddingsAction {
    /// The name of the subcommand, as it is typed.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Status(_) => "status",
            Self::Estimate(_) => "estimate",
            Self::Backfill(_) => "backfill",
            Self::Rebuild(_) => "rebuild",
            Self::Models(_) => "models",
        }
    }
}

/// The subcommands of `embeddings`.
#[derive(Debug, Subcommand)]
pub(crate) enum EmbeddingsAction {
    Status(VectorStatusArgs),
    /// Estimate the cost of creating vectors; nothing is sent anywhere
    #[command(after_help = "\
Counts pending vectors, or with --all those of all messages, as `embeddings rebuild` would create them, for the model given by \
--embedding. Vectors in the cache of this machine cost nothing; the estimate does not take this into account.

Examples:
  amplifier-sessions --embedding openai embeddings estimate --price 0.02
  amplifier-sessions embeddings estimate --all --project my-project --json")]
    Estimate(EstimateArgs),
    Backfill(BackfillArgs),
    Rebuild(RebuildArgs),
    Models(ModelsArgs),
}

/// Show how many messages have vectors, by model
#[derive(Debug, Args)]
pub(crate) struct VectorStatusArgs {
    /// Show which texts of each message in this session have vectors
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

/// `embeddings estimate`.
#[derive(Debug, Args)]
pub(crate) struct EstimateArgs {
    /// All messages, not only those with pending vectors
    #[arg(long)]
    pub(crate) all: bool,
    /// Price of a million tokens, in any currency; by default `price_per_million_tokens` of the configuration
    #[arg(long, value_name = "PRICE", value_parser = price)]
    pub(crate) price: Option<f64>,
    #[command(flatten)]
    pub(crate) part: PartArgs,
}

/// A part of the store.
#[derive(Debug, Clone, Args)]
pub(crate) struct PartArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Only this session, by its address
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

impl PartArgs {
    /// The request for the missing vectors of the part, or for all.
    pub(crate) fn request(&self, everything: bool) -> EmbedRequest {
        let Self { place: PlaceArgs { projects, repo }, session } = self.clone();
        EmbedRequest { project: None, projects, repo: repo.repo, session, everything }
    }
}

/// Create missing vectors
#[derive(Debug, Args)]
#[command(after_help = "\
Creates vectors that a sync could not create, because it had no model or because the service did not respond. Retries texts \
that were refused. With --turns, also embeds the turns that have no vector of their current text; --dry-run does not count \
them. If it is interrupted, the vectors created so far are kept.

Exits with 1 if vectors are still missing.

Examples:
  amplifier-sessions embeddings backfill
  amplifier-sessions --embedding openai embeddings backfill --project my-project --dry-run")]
pub(crate) struct BackfillArgs {
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) turns: TurnsArgs,
    /// Only count what would be embedded
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Create all vectors again, possibly with another model
#[derive(Debug, Args)]
#[command(after_help = "\
With the same model as before, creates the vectors of all your messages again, or of some of them.

With another model or other dimensions, creates new vectors for everything in the store, of all users, beside the old ones. \
Searches use the old vectors until the new ones are complete. If it is interrupted, run it again to continue; with \
the old model, it abandons the new vectors.

Exits with 1 if it is not complete.

Examples:
  amplifier-sessions embeddings rebuild --session 3a7c1e90
  amplifier-sessions --embedding openai embeddings rebuild")]
pub(crate) struct RebuildArgs {
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) turns: TurnsArgs,
    /// Only count what would be embedded
    #[arg(long)]
    pub(crate) dry_run: bool,
}

fn price(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(price) if price.is_finite() && price >= 0.0 => Ok(price),
        _ => Err("must be a number, 0 or greater".to_owned()),
    }
}
