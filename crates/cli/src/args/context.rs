//! `context`.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::LimitArgs;

/// Show what stands around a turn or a message
#[derive(Debug, Args)]
#[command(long_about = "\
Shows a turn with the turns around it, or a message with the messages around it: what a search result was about. Turns \
are counted from 1, messages from 0, as `show` and `search` number them. What looks as in `show` is explained \
there.")]
#[command(after_long_help = "\
Examples:
  amplifier-sessions context 3a7c1e90#14
  amplifier-sessions context latest --turn 2
  amplifier-sessions context 3a7c1e90 --message 14 --before 5 --after 0 --json")]
pub(crate) struct ContextArgs {
    /// The session, or the message as 3a7c1e90#14
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// How many turns (or messages) before it [default: 1 turn, 3 messages]
    #[arg(long, value_name = "N")]
    pub(crate) before: Option<u32>,
    /// How many turns (or messages) behind it [default: 1 turn, 3 messages]
    #[arg(long, value_name = "N")]
    pub(crate) after: Option<u32>,
    /// Show tool output whole
    #[arg(long)]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// One of the two, unless the address names a message.
#[derive(Debug, Clone, Copy, Args)]
#[group(multiple = false)]
pub(crate) struct PlaceArgs {
    /// The turn, counted from 1
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<u32>,
    /// The message, counted from 0
    #[arg(long, value_name = "N")]
    pub(crate) message: Option<u32>,
}
