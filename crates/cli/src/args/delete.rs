//! `delete`.

use clap::{Args, builder::NonEmptyStringValueParser};

/// `delete`.
#[derive(Debug, Args)]
#[command(about = "Remove sessions from the store")]
#[command(long_about = "\
Removes your sessions from the store, with their messages, events and vectors. Shows what would be deleted and asks; if input \
is not a terminal, --yes is required. If one of the sessions is not found, nothing is deleted.

The files of the session are not touched. The store remembers the deletion: later syncs skip the session, unless \
`sync --include-deleted` is used. `import` restores it from an archive. Its sub-agents and forks are not deleted.")]
#[command(after_long_help = "\
In a pipe, each deleted session is one line of tab-separated fields: `deleted`, session, project, messages, turns, events, \
title.

Examples:
  amplifier-sessions delete 3a7c1e90
  amplifier-sessions delete 3a7c1e90 5b8d2f10 --yes")]
pub(crate) struct DeleteArgs {
    /// The sessions to delete, each by its address
    #[arg(value_name = "SESSION", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) sessions: Vec<String>,
    /// Delete without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}
