//! `recent`.

use clap::Args;

use super::{RepoArgs, at_least_one};

/// Show recent projects and sessions
#[derive(Debug, Args)]
#[command(long_about = "\
Shows the projects with sessions that were active in the period, the most recent first, and the newest sessions of each. A \
session is active from when it was created until it last changed. Messages and events are counted for whole sessions. With \
--scope visible or all, users are shown too.")]
#[command(after_long_help = "\
In a pipe, each project, session and user is one line of tab-separated fields:
  project  SLUG  sessions, messages, events, last activity, users
  session  SLUG  session, time of the last change, messages, title, owner
  user     ID    sessions, messages, events, last activity, projects

Exits with 3 if no session was active in the period.

Examples:
  amplifier-sessions recent
  amplifier-sessions recent --days 30 --limit 1
  amplifier-sessions recent --repo .
  amplifier-sessions recent --since yesterday --scope visible --team payments
  amplifier-sessions recent | grep ^project | cut -f 2")]
pub(crate) struct RecentArgs {
    /// Number of days to look back [default: 7]
    #[arg(long, value_name = "N", conflicts_with = "since")]
    pub(crate) days: Option<u32>,
    /// Only from this date on
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<String>,
    #[command(flatten)]
    pub(crate) repo: RepoArgs,
    /// Maximum number of sessions per project
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one)]
    pub(crate) limit: usize,
}

impl RecentArgs {
    /// The beginning of the period, in the syntax of `--since`.
    pub(crate) fn since(&self) -> String {
        const DAYS: u32 = 7;
        self.since.clone().unwrap_or_else(|| format!("{}d", self.days.unwrap_or(DAYS)))
    }
}
