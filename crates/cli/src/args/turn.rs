//! `turn`, `summaries`, and whether turns are embedded.

use std::path::PathBuf;

use clap::{Args, Subcommand, builder::NonEmptyStringValueParser};

/// Whether turns are embedded.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct TurnsArgs {
    /// Also embed turns, for `search --unit turn` [default: if the model is on this machine]
    #[arg(long, overrides_with = "no_turns")]
    turns: bool,
    /// Do not embed turns
    #[arg(long, overrides_with = "turns")]
    no_turns: bool,
}

impl TurnsArgs {
    /// The choice, if there is one.
    pub(crate) fn choice(self) -> Option<bool> {
        (self.turns || self.no_turns).then_some(self.turns)
    }
}

/// Show a turn: what was asked, and the last answer
#[derive(Debug, Args)]
#[command(long_about = "\
Shows one turn in full: the user's text, the last text of the assistant, and the summary if there is one. The address of any \
message of the turn names it. `context` shows all messages of a turn, including its tool calls.")]
#[command(after_long_help = "\
--json has the same, with the ids of both messages, where the summary comes from, and what was embedded of the turn \
(`embedding`): the text, its SHA-256 and the model.

Examples:
  amplifier-sessions turn 3a7c1e90#14
  amplifier-sessions turn latest --turn 2
  amplifier-sessions turn 3a7c1e90 --turn 2 --json")]
pub(crate) struct TurnArgs {
    /// The session, or a message of the turn such as 3a7c1e90#14
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// The turn, counted from 1
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<u32>,
}

/// Set summaries of turns
#[derive(Debug, Args)]
#[command(after_help = "\
A summary replaces the assistant's answer in the embedding of its turn, and `search --unit turn` finds its words.

Examples:
  amplifier-sessions summaries import summaries.jsonl")]
pub(crate) struct SummariesArgs {
    #[command(subcommand)]
    pub(crate) action: SummariesAction,
}

/// The subcommands of `summaries`.
#[derive(Debug, Subcommand)]
pub(crate) enum SummariesAction {
    /// Read summaries from a file of JSON lines
    #[command(after_help = "\
Each line is an object with `message_id` and `text`: the id or the address of a message of the turn, and its summary of at \
most 10,000 characters. If a line is invalid, nothing is stored.

The lines of transcripts do not change. A later `sync` keeps the summaries as long as the user's message stays the same. \
These turns are embedded again.

Examples:
  echo '{\"message_id\": \"3a7c1e90#4\", \"text\": \"Retries moved to the outbox\"}' | amplifier-sessions summaries import -")]
    Import(ImportSummariesArgs),
}

/// `summaries import`.
#[derive(Debug, Args)]
pub(crate) struct ImportSummariesArgs {
    /// The file; `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
