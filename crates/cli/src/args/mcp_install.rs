//! `mcp install` and `mcp uninstall`.

use clap::{
    Args, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};

use crate::agent_clients::{AgentClient, CLIENTS};

/// What to do with the configuration of clients.
#[derive(Debug, Subcommand)]
pub(crate) enum McpSubcommand {
    Install(InstallMcpArgs),
    Uninstall(UninstallMcpArgs),
}

/// Add this program to the configuration of a client
#[derive(Debug, Args)]
#[command(after_help = "\
Adds the server `sessions` to the user's configuration of a client, so that its agents can search the store. Everything else \
in the file stays as it is. A client that runs has to be restarted.

The client starts the program with the options of this command that select store and sessions, such as --store and --user, \
also if they come from variables: not every client passes variables on. Keys are never written; put them into the configuration \
file, and the token of a server into credentials.toml beside it.

In a pipe, prints one line for each client: what was done (`installed`, `updated` or `unchanged`), the client and the file, \
separated by tabs.

Examples:
  amplifier-sessions mcp install claude-code
  amplifier-sessions mcp install codex amplifier
  amplifier-sessions mcp install cursor --print
  amplifier-sessions --store sqlite:~/work.sqlite mcp install codex
  amplifier-sessions --store https://sessions.example.com mcp install claude-code")]
pub(crate) struct InstallMcpArgs {
    /// The client; may be repeated
    #[arg(required = true, value_name = "CLIENT", value_parser = client())]
    pub(crate) clients: Vec<&'static AgentClient>,
    /// Print what would be added, and change nothing
    #[arg(long)]
    pub(crate) print: bool,
    /// Replace another server that has the name `sessions`
    #[arg(long, conflicts_with = "print")]
    pub(crate) force: bool,
}

/// Remove this program from the configuration of clients
#[derive(Debug, Args)]
#[command(after_help = "\
Removes the server `sessions` if `mcp install` or the client itself has added it for this program. Everything else in the file \
stays as it is.

In a pipe, prints one line for each client: what was done (`removed` or `unchanged`), the client and the file, separated by \
tabs.

Examples:
  amplifier-sessions mcp uninstall
  amplifier-sessions mcp uninstall codex")]
pub(crate) struct UninstallMcpArgs {
    /// The client; by default, all that are connected
    #[arg(value_name = "CLIENT", value_parser = client())]
    pub(crate) clients: Vec<&'static AgentClient>,
}

fn client() -> impl TypedValueParser<Value = &'static AgentClient> {
    PossibleValuesParser::new(CLIENTS.iter().map(|client| client.name))
        .try_map(|name| AgentClient::named(&name).ok_or("no such client"))
}
