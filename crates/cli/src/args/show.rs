//! `show`.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::{LimitArgs, at_least_one};

/// Show the conversation of a session
#[derive(Debug, Args)]
#[command(long_about = "\
Shows the details of a session and its conversation, a page at a time: turns, speakers, thinking, tool calls and tool output. \
A tool call is one line with its most informative argument, and tool output is cut after a few lines; --full shows both \
completely. On a terminal, text is wrapped; code is not.

A session is named by its id, a unique prefix of the id, or `latest` for the most recently updated one. An address such as \
3a7c1e90#14, as printed by `search`, names a message. It is shown alone and in full, or together with the following messages \
if --limit is given.

With --events, shows the event log of the session; `events` finds events in all sessions. An address such as \
3a7c1e90_evt_14, as printed by `events`, names an event, which is shown alone and in full.")]
#[command(after_long_help = "\
JSON has complete messages, unless --max-chars or --budget cuts them. `truncated` then has the number of characters `shown` \
and the total (`of`), and `left_out` the number of messages that do not fit into the budget.

Exits with 3 if the page is beyond the end.

Examples:
  amplifier-sessions show 3a7c1e90
  amplifier-sessions show 3a7c1e90#14
  amplifier-sessions show latest --from 40
  amplifier-sessions show 3a7c1e90 --no-thinking --no-tools
  amplifier-sessions show 3a7c1e90 --from 40 --limit 10 --full
  amplifier-sessions show 3a7c1e90 --json --budget 8000
  amplifier-sessions show 3a7c1e90 --events --json")]
pub(crate) struct ShowArgs {
    /// The session, a message such as 3a7c1e90#14, or an event such as 3a7c1e90_evt_14
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// The first message (or event, with --events), counted from 0
    #[arg(long, value_name = "N")]
    pub(crate) from: Option<u32>,
    /// Maximum number of messages (or events) [default: 100, or 1 if the address names one]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) limit: Option<usize>,
    /// Show complete tool calls and tool output (and the original lines of events)
    #[arg(long)]
    pub(crate) full: bool,
    /// Leave out thinking
    #[arg(long, conflicts_with = "events")]
    pub(crate) no_thinking: bool,
    /// Leave out tool calls and their output
    #[arg(long, conflicts_with = "events")]
    pub(crate) no_tools: bool,
    /// Show the event log instead of the conversation
    #[arg(long, conflicts_with_all = ["max_chars", "budget"])]
    pub(crate) events: bool,
    /// Show only superseded messages (or events, with --events), which are no longer in the files of the session
    #[arg(long, conflicts_with = "budget")]
    pub(crate) superseded: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}
