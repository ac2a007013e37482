//! `show`.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::at_least_one;

/// Show the conversation of a session
#[derive(Debug, Args)]
#[command(long_about = "\
Shows what a session is and its conversation, a page at a time: turns, who speaks, what was thought, which tools were \
called and what they answered. A call of a tool is one line with its most telling argument, its output is cut \
after a few lines; --full shows both whole. On a terminal, text is wrapped to its width and code is left alone.

With --events, the event log of the session instead; `events` finds events in all sessions.")]
#[command(after_long_help = "\
In JSON, messages are always whole, and nothing is left out.

Exit code 3 says that the page lies beyond the end.

Examples:
  amplifier-sessions show 3a7c1e90
  amplifier-sessions show 3a7c1e90 --no-thinking --no-tools
  amplifier-sessions show 3a7c1e90 --from 40 --limit 10 --full
  amplifier-sessions show 3a7c1e90 --events --json")]
pub(crate) struct ShowArgs {
    /// The session, by its id or the beginning of it
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// The first message (or event, with --events), counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) from: u32,
    /// The most messages (or events)
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = at_least_one)]
    pub(crate) limit: usize,
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
    #[arg(long)]
    pub(crate) events: bool,
}
