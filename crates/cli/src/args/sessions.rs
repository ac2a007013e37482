//! `sessions`.

use clap::Args;

use super::{FilterArgs, NarrowArgs};

/// List sessions, newest first
#[derive(Debug, Args)]
#[command(long_about = "\
Lists sessions, newest first. With words, lists only sessions with all of them in the title or description; `search` finds \
what was said. --since and --until refer to the last change of a session. The title of a session without a name is its first \
user message.

With --tree, sub-agents and forks are listed under the session that they came from, oldest first. Sessions whose parent is \
not in the list are at the top level.")]
#[command(after_long_help = "\
In a pipe, each session is one line of tab-separated fields: session, time of the last change, project, messages, turns, \
events, title; then the owner if --scope is not own. With --tree, three fields come first: depth from 0, origin (root, \
sub_agent or fork), parent or `-`. With --superseded, the fields are: session, when its last line was superseded, project, \
superseded messages, superseded events, bytes, reasons; then the owner.

Exits with 3 if no session matches.

Examples:
  amplifier-sessions sessions --since yesterday
  amplifier-sessions sessions payment retry --tag incident --min-turns 3
  amplifier-sessions sessions --project -home-ana-payments --tree
  amplifier-sessions sessions --repo github.com/acme/payments
  amplifier-sessions sessions --scope visible --team payments --limit 5 --json")]
pub(crate) struct SessionsArgs {
    /// Words in the title or the description
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) narrow: NarrowArgs,
    /// List sub-agents and forks under the session that they came from
    #[arg(long)]
    pub(crate) tree: bool,
    /// List only sessions with superseded lines, which are no longer in their files: how many, since when and why
    #[arg(long, conflicts_with_all = ["tree", "words"])]
    pub(crate) superseded: bool,
    /// Maximum number of sessions
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Do not read recent changes in ~/.amplifier first; by default they are read if that takes less than a second
    #[arg(long)]
    pub(crate) no_refresh: bool,
}

impl SessionsArgs {
    /// The words, if there are any.
    pub(crate) fn text(&self) -> Option<String> {
        Some(self.words.join(" ")).filter(|text| !text.trim().is_empty())
    }
}
