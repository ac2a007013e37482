//! `context`.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::LimitArgs;

/// Show a turn or a message with its context
#[derive(Debug, Args)]
#[command(long_about = "\
Shows a turn with the turns around it, or a message with the messages around it, for example to see the context of a search \
result. Turns are counted from 1 and messages from 0, as in `show` and `search`. The output looks like that of `show`.")]
#[command(after_long_help = "\
Examples:
  amplifier-sessions context 3a7c1e90#14
  amplifier-sessions context latest --turn 2
  amplifier-sessions context 3a7c1e90 --message 14 --before 5 --after 0 --json")]
pub(crate) struct ContextArgs {
    /// The session, or a message such as 3a7c1e90#14
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) position: PositionArgs,
    /// Number of turns (or messages) before it [default: 1 turn, 3 messages]
    #[arg(long, value_name = "N")]
    pub(crate) before: Option<u32>,
    /// Number of turns (or messages) after it [default: 1 turn, 3 messages]
    #[arg(long, value_name = "N")]
    pub(crate) after: Option<u32>,
    /// Show complete tool output
    #[arg(long)]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// One of the two is needed, unless the address names a message.
#[derive(Debug, Clone, Copy, Args)]
#[group(multiple = false)]
pub(crate) struct PositionArgs {
    /// The turn, counted from 1
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<u32>,
    /// The message, counted from 0
    #[arg(long, value_name = "N")]
    pub(crate) message: Option<u32>,
}
