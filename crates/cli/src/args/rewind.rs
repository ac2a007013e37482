//! `rewind`.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::number;

/// `rewind`.
#[derive(Debug, Args)]
#[command(about = "Remove the last turns of a session from the store")]
#[command(long_about = "\
Removes everything after turn N of one of your sessions from the store: messages, their vectors, and events. Shows what would \
be removed and asks; if input is not a terminal, --yes or --dry-run is required. Either everything is removed or, if the \
command fails, nothing. A session that has no later turn is not changed.

Events are removed from the prompt of the next turn on, in the order of the log. If the log does not have that prompt, the time \
of the message decides. If that is unknown, the command fails, unless --keep-events is given.

The files of the session are not touched. Later syncs do not bring back the removed turns, unless the files change: then \
everything in them is stored again. Sub-agents and forks of the session are not changed. The default store is refreshed \
first, as before a search. `show` shows the numbers of turns.")]
#[command(after_long_help = "\
In a pipe, the result is one line of tab-separated fields: `rewound`, `would rewind` or `unchanged`; session, last turn, \
removed turns, messages, messages with vectors, events, title.

Examples:
  amplifier-sessions rewind 3a7c1e90 --to-turn 4 --dry-run
  amplifier-sessions rewind 3a7c1e90 --to-turn 4
  amplifier-sessions rewind latest --to-turn 0 --yes")]
pub(crate) struct RewindArgs {
    /// The session, by its address
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// The last turn to keep; 0 keeps only what comes before the first turn
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    pub(crate) to_turn: u32,
    /// Remove messages only, and keep all events
    #[arg(long)]
    pub(crate) keep_events: bool,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Rewind without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}
