//! `sync`.

use std::path::PathBuf;

use amplifier_session_storage::storage::EventDetail;
use clap::{Args, ValueEnum};

use super::{PushArgs, TurnsArgs, number};

/// Read new and changed sessions
#[derive(Debug, Args)]
#[command(long_about = "\
Reads the new and changed sessions in DIR/projects/*/sessions/* into the store, and never writes to those folders. Unchanged \
files are not read again, so a sync with nothing to do is fast. Searches that run at the same time take precedence. A session \
whose folder is gone stays in the store. Names, descriptions and tags that were set with `edit` and `tag` do not change.")]
#[command(after_long_help = "\
A file that is suddenly empty, binary or cut off in the middle of a line removes nothing: its stored messages and events \
are kept, and each sync reports how many, until the file is complete again or --accept-removals is given. Other lines that a file has \
lost or that have changed are superseded: they are hidden, and stay in the store until `delete --superseded` removes them. \
The same happens to the later messages if a transcript ends earlier than before, at the end of a turn: that is a rewind. \
`sessions --superseded` lists the sessions that have superseded lines. --mirror keeps nothing.

Lines that can't be read are reported and skipped, without changing the exit code; `show` also reports them. With --dry-run, \
each session that would be read is one line of tab-separated fields: new or changed, project, session, size.

With --push, or with `push.to` in the configuration, sessions are then sent to servers: only what they lack. The first push \
to a server says what it sends. With --dry-run, each session that would be sent is one line too: push new or push changed, \
project, session, messages, events, server. If a server does not get all sessions, it exits with 1.

The first sync with --redact mask also masks what is stored already, and this can't be undone. It shows what it would mask \
and asks; without a terminal, it needs --yes.

Exits with 1 if a session could not be read or stored; all others are.

Examples:
  amplifier-sessions sync
  amplifier-sessions sync --since 30d --events summary
  amplifier-sessions sync --root /backup/amplifier --exclude '*-scratch/*' --dry-run
  amplifier-sessions sync --push https://sessions.example.com")]
pub(crate) struct SyncArgs {
    /// A folder that contains projects/; by default `root` of the configuration, or ~/.amplifier and ~/.amplifier-agent;
    /// may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,
    /// Only report what would be read
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Only sessions whose files changed since this date
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<String>,
    /// Skip sessions whose PROJECT/SESSION matches, in addition to `exclude` of the configuration; may be repeated
    #[arg(long, value_name = "GLOB", allow_hyphen_values = true)]
    pub(crate) exclude: Vec<String>,
    /// How much of the event logs to store: complete lines, only their fields (a few bytes), or nothing; by default
    /// `events` of the configuration, or complete lines
    #[arg(long, value_name = "DETAIL")]
    pub(crate) events: Option<EventsArg>,
    /// Only the N most recently changed sessions
    #[arg(long, value_name = "N", value_parser = number::<usize>)]
    pub(crate) newest: Option<usize>,
    /// Also read sessions that you deleted from the store, and send those that were deleted from a server; by default they
    /// are skipped
    #[arg(long)]
    pub(crate) include_deleted: bool,
    /// Supersede stored messages and events that a damaged file no longer contains; by default they stay in their place
    #[arg(long)]
    pub(crate) accept_removals: bool,
    /// Make the sessions equal to their files: keep nothing that a file no longer contains; includes --accept-removals
    #[arg(long)]
    pub(crate) mirror: bool,
    /// Read all files from their beginning and compare every line, even if a file looks unchanged
    #[arg(long)]
    pub(crate) verify: bool,
    /// With --redact mask: mask what is stored already without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) push: PushArgs,
    #[command(flatten)]
    pub(crate) turns: TurnsArgs,
}

/// How much of the event logs to store.
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
