//! `user`.

use amplifier_session_storage::model::UserId;
use clap::{Args, Subcommand};

use super::parse;

/// Show your user id, or rename a user
#[derive(Debug, Args)]
#[command(after_help = "\
Sessions belong to the user given by --user or AMPLIFIER_SESSIONS_USER, or else to the account that the Azure CLI is signed \
in with, or else to the system user. The store remembers the first user who wrote it, and warns if your default user is a \
different one. If both are the same person, use `user rename`.

In a pipe, each field is one line: its name and its value, separated by a tab.

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
    /// Show your user id and where it comes from
    Show,
    /// Change the owner of all sessions of a user
    #[command(after_help = "\
Everything that belongs to OLD then belongs to NEW. If both have a session with the same id, nothing is changed.

Examples:
  amplifier-sessions user rename ana ana@example.com")]
    Rename(RenameArgs),
}

/// `user rename`.
#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    /// The user id in the store
    #[arg(value_name = "OLD", value_parser = parse::<UserId>)]
    pub(crate) old: UserId,
    /// The new user id
    #[arg(value_name = "NEW", value_parser = parse::<UserId>)]
    pub(crate) new: UserId,
}
