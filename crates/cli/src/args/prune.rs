//! `prune`.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::RepoArgs;

/// `prune`.
#[derive(Debug, Args)]
#[command(about = "Remove superseded lines from the store")]
#[command(long_about = "\
Removes superseded lines of your sessions from the store: messages and events that a sync kept although their files no longer \
contain them. The sessions themselves stay as they are. Without a SESSION, removes those of all your sessions. Shows what \
would be removed and asks; if input is not a terminal, --yes is required. With --dry-run, only shows it.

`sessions --superseded` lists the sessions that have superseded lines, and `show SESSION --superseded` shows them. The words \
of the lines are erased from all files of the store, which means rewriting it once.")]
#[command(after_long_help = "\
In a pipe, each session is one line of tab-separated fields: `pruned` (`would-prune` with --dry-run), session, project, \
messages, events, bytes.

Examples:
  amplifier-sessions prune --dry-run
  amplifier-sessions prune 3a7c1e90
  amplifier-sessions prune --older-than 90d --yes")]
pub(crate) struct PruneArgs {
    /// Only these sessions, each by its address
    #[arg(value_name = "SESSION", conflicts_with_all = ["project", "repo"], value_parser = NonEmptyStringValueParser::new())]
    pub(crate) sessions: Vec<String>,
    /// Only sessions of this project: its slug, a unique part of the slug, or its folder (`.` is the current one)
    // Slugs begin with a hyphen.
    #[arg(long, value_name = "PROJECT", allow_hyphen_values = true)]
    pub(crate) project: Option<String>,
    #[command(flatten)]
    pub(crate) repo: RepoArgs,
    /// Only lines that were superseded before this long ago (90d, 12w), or before this date (2026-01-31)
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}
