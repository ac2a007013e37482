//! `sessions`.

use amplifier_session_storage::storage::SessionOrder;
use clap::{Args, ValueEnum};

use super::{FilterArgs, NarrowArgs, number};
use crate::failure::Failure;

/// List sessions, newest first, or by project
#[derive(Debug, Args)]
#[command(long_about = "\
Lists sessions, newest first. With words, lists only sessions with all of them in the title or description; `search` finds \
what was said. --since and --until refer to the last change of a session. The title of a session without a name is its first \
user message.

--sort cost lists the sessions with the most expensive model calls first, --sort messages the longest conversations, and \
--sort duration those with the longest time between beginning and last change. All sessions that match are compared, not only \
the newest. Costs are as reported by the event logs; sessions without a known cost are last, with `-`. A call that several \
sessions have, such as a session and its fork, counts for one of them, as in `stats`.

With --tree, sub-agents and forks are listed under the session that they came from, oldest first. Sessions whose parent is \
not in the list are at the top level.

With --by project, shows the projects with sessions that were active in the period, the most recent first, and the newest \
sessions of each. A session is active from when it was created until it last changed. Messages and events are counted for \
whole sessions. --sort sorts the projects, and the sessions of each. With --scope visible or all, users are shown too. Words, --tree and --superseded can't be combined with it.")]
#[command(after_long_help = "\
In a pipe, each session is one line of tab-separated fields: session, time of the last change, project, messages, turns, \
events, title; then the owner if --scope is not own. With --tree, three fields come first: depth from 0, origin (root, \
sub_agent or fork), parent or `-`. With --superseded, the fields are: session, when its last line was superseded, project, \
superseded messages, superseded events, bytes, reasons; then the owner. With --by project, each project, session and user \
is one line:
  project  SLUG  sessions, messages, events, last activity, users
  session  SLUG  session, time of the last change, messages, title, owner
  user     ID    sessions, messages, events, last activity, projects
With --sort cost or duration, lines of sessions and projects have one more field at the end: the cost, or `-` if it is not \
known, or the duration in seconds.

Exits with 3 if no session matches.

Examples:
  amplifier-sessions sessions --since yesterday
  amplifier-sessions sessions payment retry --tag incident --min-turns 3
  amplifier-sessions sessions --project -home-ana-payments --tree
  amplifier-sessions sessions --repo github.com/acme/payments
  amplifier-sessions sessions --sort cost --since 30d
  amplifier-sessions sessions --by project
  amplifier-sessions sessions --by project --days 30 --limit 1
  amplifier-sessions sessions --by project --tag incident --until 'last week'
  amplifier-sessions sessions --scope visible --team payments --limit 5 --json")]
pub(crate) struct SessionsArgs {
    /// Words in the title or the description
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) narrow: NarrowArgs,
    /// Show recent projects with their newest sessions
    #[arg(long, value_name = "WHAT", conflicts_with_all = LIST_OPTIONS)]
    pub(crate) by: Option<SessionsByArg>,
    /// With --by project, the number of days to look back, if neither --since nor --until is given [default: 7]
    #[arg(long, value_name = "N", value_parser = number::<u32>, conflicts_with = "since")]
    pub(crate) days: Option<u32>,
    /// What to sort by: updated, cost, messages or duration [default: updated]
    #[arg(long, value_name = "WHAT", hide_possible_values = true, conflicts_with_all = ["tree", "superseded"])]
    pub(crate) sort: Option<SessionsSortArg>,
    /// List sub-agents and forks under the session that they came from
    #[arg(long)]
    pub(crate) tree: bool,
    /// List only sessions with superseded lines, which are no longer in their files: how many, since when and why
    #[arg(long, conflicts_with_all = ["tree", "words"])]
    pub(crate) superseded: bool,
    /// Maximum number of sessions, or with --by project, of sessions per project [default: 50, or 3 per project]
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        value_parser = number::<usize>,
        default_value_t = 50,
        default_value_if("by", "project", "3"),
        hide_default_value = true
    )]
    pub(crate) limit: usize,
    /// Do not read recent changes in ~/.amplifier first; by default they are read if that takes less than a second
    #[arg(long)]
    pub(crate) no_refresh: bool,
}

/// Options of the list that `--by` does not have.
const LIST_OPTIONS: [&str; 3] = ["words", "tree", "superseded"];

/// The grouping of listed sessions.
// No doc comments on the values: they would turn every help text into its long form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SessionsByArg {
    Project,
}

/// The order of listed sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SessionsSortArg {
    Updated,
    Cost,
    Messages,
    Duration,
}

impl From<SessionsSortArg> for SessionOrder {
    fn from(arg: SessionsSortArg) -> Self {
        match arg {
            SessionsSortArg::Updated => Self::Updated,
            SessionsSortArg::Cost => Self::Cost,
            SessionsSortArg::Messages => Self::Messages,
            SessionsSortArg::Duration => Self::Duration,
        }
    }
}

impl SessionsArgs {
    /// The order.
    pub(crate) fn order(&self) -> SessionOrder {
        self.sort.map(Into::into).unwrap_or_default()
    }

    /// Checks what depends on `--by`.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.days.filter(|_| self.by.is_none()) {
            Some(days) => {
                let hint = format!("add --by project, or use --since {days}d");
                Err(Failure::wrong_use("--days needs --by project", hint))
            }
            None => Ok(()),
        }
    }

    /// The beginning of the period of `--by project`, in the syntax of `--since`.
    pub(crate) fn since(&self) -> Option<String> {
        const DAYS: u32 = 7;
        let days = self.days.or(self.filter.until.is_none().then_some(DAYS));
        self.filter.since.clone().or(days.map(|days| format!("{days}d")))
    }

    /// The words, if there are any.
    pub(crate) fn text(&self) -> Option<String> {
        Some(self.words.join(" ")).filter(|text| !text.trim().is_empty())
    }
}
