//! `verify`.

use std::path::PathBuf;

use clap::{Args, builder::NonEmptyStringValueParser};

use super::PlaceArgs;

/// Compare the store with the session folders and with itself
#[derive(Debug, Args)]
#[command(long_about = "\
Compares your sessions in the store with their folders in DIR/projects/*/sessions/*, line by line, and the store with \
itself: the digest of every stored line, sequences, counts, turns, the vectors of each message, the pieces of large events, \
and the search index. Prints one line for each difference, with the session and the place. Without SESSION, compares all of \
your sessions.

Whatever a sync leaves alone is not reported as a difference, but only counted as known: deleted and rewound sessions, \
stored sessions without a folder, rows that were kept when a file was damaged, and lines that can't be read. Events that the \
store does not keep are ignored.

With --repair, reads the complete folders of the sessions that differ, writes lines that are missing or wrong, and rebuilds \
counts, turns, vectors and the search index where the lines are right. Lists the differences that remain.

With --gaps, only lists the sequences of messages and events that are missing from sessions, here those in --scope, although \
the session has later ones or counts more. An undamaged store has no gaps. It can only be combined with SESSION.")]
#[command(after_long_help = "\
Exits with 0 if nothing differs or everything was repaired, and with 1 otherwise. In a pipe, a difference is one line of \
tab-separated fields: session (`-` for the store as a whole), difference. --json prints one object: sessions, on_disk, \
messages, events, vectors, pending_vectors, lines, bytes, known, newer_than_index, differences, difference_count, left, \
left_count, seconds.

With --gaps, exits with 0 if nothing is missing, and with 1 otherwise. In a pipe, each gap is one line of tab-separated \
fields: session, messages or events, first sequence, last sequence. --json prints one object: sessions, missing_messages, \
missing_events, and gaps with user_id, session_id, row, first, last.

Examples:
  amplifier-sessions verify
  amplifier-sessions verify 3a7c1e90 --repair
  amplifier-sessions verify --no-disk --json
  amplifier-sessions verify --gaps
  amplifier-sessions verify --root /backup/amplifier --project -home-ana-payments")]
pub(crate) struct VerifyArgs {
    /// The sessions to compare, each by its address; by default, all of your own
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) sessions: Vec<String>,
    /// A folder that contains projects/; by default `root` of the configuration, or ~/.amplifier and ~/.amplifier-agent;
    /// may be repeated
    #[arg(long, value_name = "DIR", conflicts_with = "no_disk")]
    pub(crate) root: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Only compare the store with itself
    #[arg(long)]
    pub(crate) no_disk: bool,
    /// Repair what differs
    #[arg(long)]
    pub(crate) repair: bool,
    /// Only list missing messages and events, of all sessions in --scope
    #[arg(long, conflicts_with_all = ["root", "project", "repo", "no_disk", "repair"])]
    pub(crate) gaps: bool,
}
