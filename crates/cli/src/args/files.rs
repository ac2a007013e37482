//! `files`.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::at_least_one;

/// List the files that a session read and changed
#[derive(Debug, Args)]
#[command(long_about = "\
Lists the files that a session changed (wrote, edited, moved or deleted), and then those that it read, each in order of the \
first message. Only tools for files count, such as read_file, write_file, edit_file and apply_patch: what a command in a \
shell does to a file is unknown, but `search --file` finds the sessions that name it. Sub-agents have sessions of their own.

Paths in the working folder of the session are relative to it. Calls that failed are counted apart.")]
#[command(after_long_help = "\
In a pipe, each file is one line of tab-separated fields: changed or read, path, number of calls, number of failed calls, \
address of the first message with a call, address of the last. The number of calls does not include failed ones; nor do the \
addresses name them, unless all calls failed. --json has the same as `files`, with the \
`session`, and with `has_more` if there are more files.

Exits with 3 if nothing is found.

Examples:
  amplifier-sessions files 3a7c1e90
  amplifier-sessions files latest --changed
  amplifier-sessions files latest --limit 500 --json")]
pub(crate) struct FilesArgs {
    /// The session
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// List only files that the session changed
    #[arg(long)]
    pub(crate) changed: bool,
    /// Maximum number of files; one that was read and changed counts twice
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = at_least_one)]
    pub(crate) limit: usize,
}
