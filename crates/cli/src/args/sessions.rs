//! `sessions`.

use clap::Args;

use super::{FilterArgs, NarrowArgs};

/// List sessions, newest first
#[derive(Debug, Args)]
#[command(long_about = "\
Lists sessions, newest first. Words narrow the list to sessions whose title or description holds all of them; `search` \
looks into what was said. --since and --until are about when a session last changed. A session without a \
name goes by its first user message.

With --tree, sub-agents and forks stand below the session that they came from, the oldest first; one whose parent is \
not in the list stands at the top.")]
#[command(after_long_help = "\
In a pipe each session is one line of fields separated by tabs: session, time of the last change, project, messages, \
turns, events, title; the owner follows when --scope is not own. With --tree three fields come first: depth \
from 0, origin (root, sub_agent or fork), parent or `-`.

Exit code 3 says that no session matches.

Examples:
  amplifier-sessions sessions --since yesterday
  amplifier-sessions sessions payment retry --tag incident --min-turns 3
  amplifier-sessions sessions --project -home-ana-payments --tree
  amplifier-sessions sessions --scope visible --team payments --limit 5 --json")]
pub(crate) struct SessionsArgs {
    /// Words of the title or the description
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) narrow: NarrowArgs,
    /// Show sub-agents and forks below the session that they came from
    #[arg(long)]
    pub(crate) tree: bool,
    /// The most sessions
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Answer from the store as it is; without it, what changed below ~/.amplifier is first taken in if that takes less
    /// than a second
    #[arg(long)]
    pub(crate) no_refresh: bool,
}

impl SessionsArgs {
    /// The words, if there are any.
    pub(crate) fn text(&self) -> Option<String> {
        Some(self.words.join(" ")).filter(|text| !text.trim().is_empty())
    }
}
