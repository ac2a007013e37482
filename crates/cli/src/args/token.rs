//! `token`.

use std::path::PathBuf;

use amplifier_session_api::AccessRight;
use clap::{Args, Subcommand, ValueEnum};

use super::ScopeArg;

/// The variable that names the file of the tokens.
pub(super) const TOKENS_VARIABLE: &str = "AMPLIFIER_SESSIONS_TOKENS";

/// Make, list and revoke the tokens of `serve`
#[derive(Debug, Args)]
#[command(after_help = "\
The file has only hashes of tokens. A running `serve` reads it again within two seconds after a change.

Examples:
  amplifier-sessions token create --user ana@example.com --reach visible --expires 90d
  amplifier-sessions token list
  amplifier-sessions token revoke h4Kd92Lm")]
pub(crate) struct TokenArgs {
    /// The file of the tokens; by default ~/.config/amplifier-sessions/tokens.toml
    #[arg(long, global = true, value_name = "FILE", env = TOKENS_VARIABLE, hide_env_values = true)]
    pub(crate) tokens: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) action: TokenAction,
}

/// The commands for tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenAction {
    Create(CreateTokenArgs),
    /// List tokens, without their text
    #[command(after_help = "\
In a pipe, a line has the id, the user, the reach, the rights, the time of creation, that of expiry, and the name. Exits \
with 3 if there are no tokens.")]
    List,
    /// End a token
    #[command(after_help = "Exits with 3 if there is no such token.")]
    Revoke {
        /// The id of the token, as `token list` shows it
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Make a token for a user (--user), which is printed only now
#[derive(Debug, Args)]
#[command(long_about = "\
Makes a token for a user: for --user, or for yourself. Prints it on stdout, alone. It can't be shown again, because only its \
hash is kept.

The token belongs to the teams and the organisation of --team and --org, which decide what --reach visible shows.")]
#[command(after_long_help = "\
The rights by default are to read, and to send and edit own sessions. Deleting can't be undone, so it must be asked for. The \
right `admin` changes what belongs to all users.

Examples:
  amplifier-sessions token create
  amplifier-sessions token create --user ana@example.com --team payments --reach visible --expires 90d --name laptop
  amplifier-sessions token create --user ci --rights write")]
pub(crate) struct CreateTokenArgs {
    /// Whose sessions it can read: those of the user, also those shared with them, or everyone's
    #[arg(long, value_name = "SCOPE", default_value = "own")]
    pub(crate) reach: ScopeArg,
    /// What it can do
    #[arg(long, value_name = "RIGHTS", default_value = "read,write", value_delimiter = ',')]
    pub(crate) rights: Vec<RightArg>,
    /// When it ends: after a time such as 90d, 12h or 4w; by default never
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<String>,
    /// The number of sessions that its user may store with it; by default what `serve --quota-sessions` says
    #[arg(long, value_name = "N")]
    pub(crate) quota_sessions: Option<u64>,
    /// The number of messages and events that its user may store with it; by default what `serve --quota-rows` says
    #[arg(long, value_name = "N")]
    pub(crate) quota_rows: Option<u64>,
    /// What it is for, such as the name of a machine
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// A right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RightArg {
    Read,
    Write,
    Delete,
    Admin,
}

impl From<RightArg> for AccessRight {
    fn from(right: RightArg) -> Self {
        match right {
            RightArg::Read => Self::Read,
            RightArg::Write => Self::Write,
            RightArg::Delete => Self::Delete,
            RightArg::Admin => Self::Admin,
        }
    }
}
