//! `upgrade`.

use clap::Args;

/// Make a store of a database that the Python library wrote
#[derive(Debug, Args)]
#[command(after_help = "\
For files of the Python library amplifier_session_storage, SQLite or DuckDB, of all its generations. All sessions, messages, \
events and vectors are taken along; the old file stays beside the new one, as FILE.v2-backup. Close the programs that \
use the file first.

When it is broken off, the file is the old one or the new one; run it again. A file that needs no upgrade is left alone.

Examples:
  amplifier-sessions upgrade --check
  amplifier-sessions --store sqlite:old.sqlite upgrade")]
pub(crate) struct UpgradeArgs {
    /// Only say what would be done; nothing changes
    #[arg(long)]
    pub(crate) check: bool,
}
