//! `backup`.

use std::path::PathBuf;

use clap::Args;

/// Copy the store to a file while it is in use
#[derive(Debug, Args)]
#[command(long_about = "\
Copies a SQLite store to FILE, in one consistent state. Other programs may read and write the store meanwhile. Copying the \
file with other tools can miss what is still in its write-ahead log.

The copy has the sessions of all users, with their vectors. It is a complete store: use it with --store sqlite:FILE, or move \
it to the place of the original. Without the search index beside it, searches take longer; the next `sync` rebuilds the \
index.")]
#[command(after_long_help = "\
Only you can read FILE, which must not exist yet. It appears when it is complete. --json prints one object: file, bytes.

For other kinds of stores, `copy` copies the sessions to another store, and `export` to a file for `import`.

Examples:
  amplifier-sessions backup ~/backup/sessions-2026-01-31.sqlite
  amplifier-sessions --store sqlite:~/backup/sessions-2026-01-31.sqlite sessions")]
pub(crate) struct BackupArgs {
    /// The file to write
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
