//! `restore`.

use std::path::PathBuf;

use clap::{Args, builder::NonEmptyStringValueParser};

use super::PlaceArgs;

/// Write sessions back as Amplifier's files
#[derive(Debug, Args)]
#[command(long_about = "\
Writes sessions from the store as folders DIR/projects/PROJECT/sessions/SESSION, as Amplifier does: transcript.jsonl, the \
event log and the metadata files. For example, the sessions of a lost laptop can be continued on another machine. Without \
SESSION, restores the sessions in --scope, by default all of your own.

The files are byte for byte those that were synced, and every line is checked before it is written. If a file cannot be \
identical, a message says why. Changes made only in the store, such as names and tags, are not restored.

A new session folder appears with all of its files. In an existing one, missing files are added, and equal ones are left \
alone. If a file exists and differs, its session is not restored unless --overwrite is given; the others are.")]
#[command(after_long_help = "\
--store may be the address of a server (see `serve`), with the token in AMPLIFIER_SESSIONS_TOKEN or in credentials.toml.

Only you can read the files. Exits with 1 if a session was not restored or a line can't be read, and with 3 if no session \
matches. --json prints one object: sessions, unchanged, messages, events, bytes, differing, failed, damaged.

Examples:
  amplifier-sessions restore --to ~/.amplifier
  amplifier-sessions restore 3a7c1e90 5b8d2f10 --to /tmp/sessions
  amplifier-sessions restore --to ~/.amplifier --project -home-ana-payments
  amplifier-sessions restore latest --to ~/.amplifier --overwrite
  amplifier-sessions restore 3a7c1e90 --store https://sessions.example.com --to ~/.amplifier")]
pub(crate) struct RestoreArgs {
    /// The sessions to restore, each by its address; by default, all in --scope
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) sessions: Vec<String>,
    /// The folder that contains, or will contain, `projects`, such as ~/.amplifier
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Replace files that exist and differ
    #[arg(long)]
    pub(crate) overwrite: bool,
}
