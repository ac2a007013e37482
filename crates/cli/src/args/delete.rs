//! `delete`.

use clap::{Args, builder::NonEmptyStringValueParser};

/// `delete`.
#[derive(Debug, Args)]
#[command(about = "Remove sessions from the store")]
#[command(long_about = "\
Removes sessions of yours, with their messages, events and vectors, from the store. Shows what would go and asks; where \
nobody can be asked, because input is no terminal, it needs --yes. If one of the sessions is not found, nothing \
is deleted.

The session's files are not touched. The store remembers that you deleted the session: a later sync passes it over, unless \
`sync --include-deleted` asks for it. `import` brings it back from an archive. Sessions that it spawned or that were forked from it stay.")]
#[command(after_long_help = "\
In a pipe each deleted session is one line of fields separated by tabs: `deleted`, session, project, messages, turns, \
events, title.

Examples:
  amplifier-sessions delete 3a7c1e90
  amplifier-sessions delete 3a7c1e90 5b8d2f10 --yes")]
pub(crate) struct DeleteArgs {
    /// The sessions, each by its address
    #[arg(value_name = "SESSION", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) sessions: Vec<String>,
    /// Delete without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}
