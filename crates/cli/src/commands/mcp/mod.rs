//! `mcp`: serves an agent on stdin and stdout, and connects agents.

mod access;
mod install;
mod parent;
mod pipes;

use std::sync::Arc;

use amplifier_session_mcp::{ServeError, ToolServer, serve};

use self::{access::StoreAccess, parent::ParentProcess};
use crate::{
    app::App,
    args::{CURRENT_SESSION, McpCommand, McpSubcommand},
    failure::{Failure, Outcome},
};

pub(super) async fn run(app: &mut App, args: McpCommand) -> Result<Outcome, Failure> {
    match args.action {
        Some(McpSubcommand::Install(args)) => install::install(app, &args),
        Some(McpSubcommand::Uninstall(args)) => install::uninstall(app, &args),
        None => serve_agent(app).await,
    }
}

async fn serve_agent(app: &App) -> Result<Outcome, Failure> {
    let parent = ParentProcess::current();
    let current = app.environment.variable(CURRENT_SESSION).filter(|id| !id.is_empty());
    let server =
        ToolServer::new(Arc::new(StoreAccess::new(app))).with_current_session(current.map(str::to_owned));
    let input = pipes::input(&app.environment)?;
    let (output, written) = pipes::output(&app.environment)?;
    tokio::select! {
        served = serve(server, Box::new(input), Box::new(output)) => served?,
        // The client is gone, but another program has its end of the pipe.
        () = parent.gone() => {}
        // The client reads no answers any more.
        () = written.ended() => {}
    }
    written.ended_soon().await;
    Ok(Outcome::Done)
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        Self::failed(
            error.to_string(),
            "this command is started by agents: see `amplifier-sessions help mcp`",
        )
    }
}
