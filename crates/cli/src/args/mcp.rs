//! `mcp`.

use clap::Args;

use super::McpSubcommand;

/// Let agents search and read your sessions, over MCP
#[derive(Debug, Args)]
#[command(long_about = "\
Lets agents search and read your sessions. `mcp install` connects an agent, which then starts this command and sends \
requests of the Model Context Protocol (MCP) to its stdin, one JSON object a line; the answers go to stdout, and messages to \
stderr. It ends when its input ends, or when the program that started it is gone.

It has five tools, which only read: search, read, list, events and statistics. Answers are text of at most 2,000 tokens, \
unless the agent asks for more, with addresses such as 7f3c9a52#14, which `show` takes too. Text from sessions is quoted, \
and its secrets are masked, whatever the store keeps. Before each call, changes in session folders are read, as before a \
search on the command line. --scope and the other global options apply to all calls. With the address of a server in --store, the server is asked for each call, and nothing is read first.

The session in AMPLIFIER_SESSION_ID, in which the agent works, is not searched, and neither is its parent.")]
#[command(after_long_help = "\
Exits with 1 if the other side does not speak the protocol.

Examples:
  amplifier-sessions mcp install claude-code
  claude mcp add sessions -- amplifier-sessions mcp
  amplifier-sessions mcp --store postgres://db.example.com/team --scope visible
  amplifier-sessions mcp --store https://sessions.example.com")]
pub(crate) struct McpCommand {
    #[command(subcommand)]
    pub(crate) action: Option<McpSubcommand>,
}
