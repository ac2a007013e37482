//! `config init`.

use amplifier_session_storage::model::UserId;
use clap::Args;

use super::parse;

/// Create a store without reading sessions, for a team
#[derive(Debug, Args)]
#[command(long_about = "\
Creates the store, if it does not exist, and reads no sessions. Other commands that write create it as well; this one is for an \
administrator who prepares a store for others.

With --with-rls, a PostgreSQL store gets row level security: each role of the database can then read and write only the rows \
of the user with the same name, whatever program it uses. The role that owns the tables and runs this command is not \
restricted, and neither is a superuser. Each person gets a role of their own. Sessions that others share are not visible in \
such a store.")]
#[command(after_long_help = "\
--role prints the statements that create a role and let it use the store. The role has no password yet.

--json prints one object: store, row_security (whether --with-rls was given), roles (with user_id, statements).

Examples:
  amplifier-sessions --store postgres://admin@db/team config init
  amplifier-sessions --store postgres://admin@db/team config init --with-rls --role ana | psql -h db team
  amplifier-sessions --store postgres://ana@db/team --user ana sync")]
pub(crate) struct InitArgs {
    /// Restrict each role of a PostgreSQL database to the rows of the user with the same name
    #[arg(long)]
    pub(crate) with_rls: bool,
    /// Print the statements that create the role of this user; may be repeated
    #[arg(long = "role", value_name = "USER", value_parser = parse::<UserId>, requires = "with_rls")]
    pub(crate) roles: Vec<UserId>,
}
