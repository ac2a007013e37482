//! `user`.

use amplifier_session_storage::model::UserId;
use clap::{Args, Subcommand};

use super::parse;

/// Show who you are to the program, or give a user another name
#[derive(Debug, Args)]
#[command(after_help = "\
Sessions belong to the user that --user or AMPLIFIER_SESSIONS_USER names, else to the account that the Azure CLI is \
signed in with, else to the system's user. The first one to write a store is kept in it: another one, found by \
default, is told of the difference. When it is the same person under another name, `user rename` puts it right.

In a pipe, one line each of field and value, separated by a tab.

Examples:
  amplifier-sessions user
  amplifier-sessions user rename ana ana@example.com")]
pub(crate) struct UserArgs {
    #[command(subcommand)]
    pub(crate) action: Option<UserAction>,
}

/// What to do with users.
#[derive(Debug, Subcommand)]
pub(crate) enum UserAction {
    /// Show who you are to the program, and how it knows
    Show,
    /// Make the sessions of one user those of another
    #[command(after_help = "\
Everything of OLD belongs to NEW then, also in searches. Nothing is changed when both have a session of the same id.

Examples:
  amplifier-sessions user rename ana ana@example.com")]
    Rename(RenameArgs),
}

/// `user rename`.
#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    /// The name in the store
    #[arg(value_name = "OLD", value_parser = parse::<UserId>)]
    pub(crate) old: UserId,
    /// The name from now on
    #[arg(value_name = "NEW", value_parser = parse::<UserId>)]
    pub(crate) new: UserId,
}
