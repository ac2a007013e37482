//! `salvage`.

use clap::{Args, builder::NonEmptyStringValueParser};

/// Copy what can still be read from a damaged store to a new one
#[derive(Debug, Args)]
#[command(long_about = "\
Copies everything that can still be read from a damaged store to a new store: sessions of all users with their messages, \
events, vectors and superseded lines. The damaged store is not changed. Lists the sessions, messages and events that can't \
be read.

A SQLite file is read page by page, without SQLite, so that a damaged page loses only its own content. If the fields of a \
session are lost, they are derived again from its metadata and messages. From other kinds of stores, `salvage` copies what \
can be read by opening them.

First stop other programs that write to the store, such as `watch`.")]
#[command(after_long_help = "\
The next `sync` into the new store reads the missing lines again from the session folders, if they are still there, and \
creates missing vectors. Rows after a missing one are renumbered until then.

Exits with 1 if anything is missing. --json prints one object: store, sessions, derived (sessions with fields that were \
derived again), messages, events, vectors, superseded, missing, lost (what is missing besides sessions), unreadable (parts \
of the old store that can't be read).

Examples:
  amplifier-sessions salvage --to ~/saved.sqlite
  amplifier-sessions --store sqlite:/mnt/old/sessions.sqlite salvage --to sqlite:~/.amplifier/sessions.sqlite")]
pub(crate) struct SalvageArgs {
    /// The new store: a URL, or the path of a file
    #[arg(long, value_name = "NEW", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) to: String,
}
