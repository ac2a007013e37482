//! `recent`.

use clap::Args;

use super::at_least_one;

/// Show what was worked on lately
#[derive(Debug, Args)]
#[command(long_about = "\
Shows what was worked on lately: the projects with sessions that were active in the period, the latest first, and \
below each its newest sessions. A session is active from when it was created to when it last changed; the \
counts of messages and events are those of whole sessions. With --scope visible or all, users are shown \
too.")]
#[command(after_long_help = "\
In a pipe each project, session and user is one line of fields separated by tabs:
  project  SLUG  sessions, messages, events, last activity, users
  session  SLUG  session, time of the last change, messages, title, owner
  user     ID    sessions, messages, events, last activity, projects

Exit code 3 says that there was no session in the period.

Examples:
  amplifier-sessions recent
  amplifier-sessions recent --days 30 --limit 1
  amplifier-sessions recent --since yesterday --scope visible --team payments
  amplifier-sessions recent | grep ^project | cut -f 2")]
pub(crate) struct RecentArgs {
    /// The last so many days [default: 7]
    #[arg(long, value_name = "N", conflicts_with = "since")]
    pub(crate) days: Option<u32>,
    /// From then on
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<String>,
    /// The most sessions below each project
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one)]
    pub(crate) limit: usize,
}

impl RecentArgs {
    /// The beginning of the period, as a date is typed.
    pub(crate) fn since(&self) -> String {
        const DAYS: u32 = 7;
        self.since.clone().unwrap_or_else(|| format!("{}d", self.days.unwrap_or(DAYS)))
    }
}
