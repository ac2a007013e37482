//! `sync`.

use std::path::PathBuf;

use amplifier_session_storage::storage::EventDetail;
use clap::{Args, ValueEnum};

/// Take in new and changed sessions
#[derive(Debug, Args)]
#[command(long_about = "\
Takes in the sessions of a folder: those that are new, and of those that grew or changed what is new. Reads \
DIR/projects/*/sessions/* and never writes there. What is unchanged is not read again, so that a sync that finds nothing \
to do is quick. Searches beside it go first. A session whose folder has vanished stays in the store; name, description and tags stay as `edit` and \
`tag` set them.")]
#[command(after_long_help = "\
A file that is suddenly empty, binary or cut off in the middle of a line removes nothing: its stored messages and events \
are kept, and each sync reports how many, until the file is whole again or --accept-removals is given. A file that ends \
with a whole line is mirrored, also when it is shorter than before: that is a rewind.

Lines that can't be read are listed and skipped, with exit code 0; `show` tells of them too. With --dry-run, each session \
that would be taken in is one line of fields separated by tabs: what it is (new or changed), project, session, size.

Exit code 1 says that a session could not be taken in; all others are.

Examples:
  amplifier-sessions sync
  amplifier-sessions sync --since 30d --events summary
  amplifier-sessions sync --root /backup/amplifier --exclude '*-scratch/*' --dry-run")]
pub(crate) struct SyncArgs {
    /// The folder that holds projects/; by default the `root` of the configuration, which is ~/.amplifier
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Only say what would be taken in
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Only sessions whose files changed since then
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<String>,
    /// Leave out sessions whose PROJECT/SESSION matches, beside those that the configuration excludes; may be repeated
    #[arg(long, value_name = "GLOB", allow_hyphen_values = true)]
    pub(crate) exclude: Vec<String>,
    /// How much of the event logs to keep: whole lines, their fields (few bytes), or nothing; by default what the
    /// configuration says, or whole lines
    #[arg(long, value_name = "DETAIL")]
    pub(crate) events: Option<EventsArg>,
    /// Only the N sessions that changed last
    #[arg(long, value_name = "N")]
    pub(crate) newest: Option<usize>,
    /// Take in sessions that you deleted from the store; without it they are passed over
    #[arg(long)]
    pub(crate) include_deleted: bool,
    /// Remove stored messages and events that a damaged file no longer contains; without it they are kept
    #[arg(long)]
    pub(crate) accept_removals: bool,
}

/// How much of the event logs to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsArg {
    Full,
    Summary,
    None,
}

impl From<EventsArg> for EventDetail {
    fn from(arg: EventsArg) -> Self {
        match arg {
            EventsArg::Full => Self::Full,
            EventsArg::Summary => Self::Summary,
            EventsArg::None => Self::None,
        }
    }
}
