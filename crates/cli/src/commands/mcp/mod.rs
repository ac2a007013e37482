//! `mcp`: agents ask through MCP.

mod install;

use crate::{
    app::App,
    args::{McpArgs, McpSubcommand},
    failure::{Failure, Outcome},
};

pub(super) fn run(app: &mut App, args: McpArgs) -> Result<Outcome, Failure> {
    match args.action {
        McpSubcommand::Install(args) => install::install(app, &args),
        McpSubcommand::Uninstall(args) => install::uninstall(app, &args),
    }
}
