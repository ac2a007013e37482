//! `mcp`.

use clap::Args;

use super::McpSubcommand;

/// Connect agents to the store through MCP
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  amplifier-sessions mcp install claude-code")]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) action: McpSubcommand,
}
