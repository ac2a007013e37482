//! `show`.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::{LimitArgs, at_least_one};

/// Show the conversation of a session
#[derive(Debug, Args)]
#[command(long_about = "\
Shows what a session is and its conversation, a page at a time: turns, who speaks, what was thought, which tools were \
called and what they answered. A call of a tool is one line with its most telling argument, its output is cut \
after a few lines; --full shows both whole. On a terminal, text is wrapped to its width and code is left alone.

A session is named by its id, by the beginning of one that no other session has, or by `latest`: the one that was updated \
last. An address such as 3a7c1e90#14, which `search` prints, names a message: it is shown whole and alone, or with \
those after it if there is a --limit.

With --events, the event log of the session instead; `events` finds events in all sessions. 3a7c1e90_evt_14, which \
`events` prints, names an event, which is shown whole and alone.")]
#[command(after_long_help = "\
In JSON nothing of a message is left out but what --max-chars and --budget cut; `truncated` then says how many characters \
are `shown` `of` how many, and `left_out` how many messages do not fit into the budget.

Exit code 3 says that the page lies beyond the end.

Examples:
  amplifier-sessions show 3a7c1e90
  amplifier-sessions show 3a7c1e90#14
  amplifier-sessions show latest --from 40
  amplifier-sessions show 3a7c1e90 --no-thinking --no-tools
  amplifier-sessions show 3a7c1e90 --from 40 --limit 10 --full
  amplifier-sessions show 3a7c1e90 --json --budget 8000
  amplifier-sessions show 3a7c1e90 --events --json")]
pub(crate) struct ShowArgs {
    /// The session, or one message of it as 3a7c1e90#14, or one event as 3a7c1e90_evt_14
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// The first message (or event, with --events), counted from 0
    #[arg(long, value_name = "N")]
    pub(crate) from: Option<u32>,
    /// The most messages (or events) [default: 100, and 1 when the address names one]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) limit: Option<usize>,
    /// Show calls and output of tools whole (and the lines of events)
    #[arg(long)]
    pub(crate) full: bool,
    /// Leave out what was thought
    #[arg(long, conflicts_with = "events")]
    pub(crate) no_thinking: bool,
    /// Leave out calls of tools and their output
    #[arg(long, conflicts_with = "events")]
    pub(crate) no_tools: bool,
    /// Show the event log instead of the conversation
    #[arg(long, conflicts_with_all = ["max_chars", "budget"])]
    pub(crate) events: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}
