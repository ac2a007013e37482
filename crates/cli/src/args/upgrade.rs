//! `upgrade`.

use std::path::PathBuf;

use clap::Args;

/// Copy sessions from a database of the Python library to a store
#[derive(Debug, Args)]
#[command(after_help = "\
Reads SQLite and DuckDB files of the Python library amplifier_session_storage, of all its generations: all sessions, \
messages, events and vectors. The content of OLD never changes.

Without --store, the sessions go to the configured store. If OLD is where that store should be, OLD is renamed to \
OLD.python-backup when the new store is complete. Close the programs that use OLD first.

If an upgrade is interrupted, run it again. Sessions that the store already has are skipped.

Examples:
  amplifier-sessions upgrade --check
  amplifier-sessions upgrade
  amplifier-sessions upgrade old.sqlite --store duckdb:new.duckdb")]
pub(crate) struct UpgradeArgs {
    /// The file of the Python library; by default that of the configured store
    pub(crate) old: Option<PathBuf>,
    /// Only report what would be done
    #[arg(long)]
    pub(crate) check: bool,
}
