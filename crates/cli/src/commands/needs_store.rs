//! Commands that need the store itself, and not only a server that has it.

use crate::{
    app::App,
    args::{Command, ConfigAction, EmbeddingsAction, quoted},
    failure::Failure,
    program,
};

/// Refuses a command that can't be carried out with a server, and says where it can.
pub(super) fn check(app: &App, command: &Command) -> Result<(), Failure> {
    if !app.has_server()? {
        return Ok(());
    }
    let (name, program, server) = (name(command), program::name(), quoted(&app.global.store));
    let hint = match command {
        Command::Sync(_) => format!("`{program} sync --push {server}` sends new and changed sessions there"),
        #[cfg(feature = "watch")]
        Command::Watch(_) => {
            format!("`{program} watch --push {server}` sends sessions there while they are written")
        }
        Command::Import(_) => {
            format!("import it into a store on this machine; `{program} sync --push {server}` sends it on")
        }
        Command::Backup(_) => format!(
            "run it on the machine of the server; `{program} copy --from {server} --to URL` copies your sessions"
        ),
        _ => "run it on the machine of the server, with the store that `serve` uses there".to_owned(),
    };
    match name {
        None => Ok(()),
        Some(name) => {
            Err(Failure::wrong_use(format!("`{name}` needs the store itself, and a server has it"), hint))
        }
    }
}

/// The name of a command that needs the store itself.
fn name(command: &Command) -> Option<&'static str> {
    Some(match command {
        Command::Quickstart(_) => "quickstart",
        Command::Sync(_) => "sync",
        #[cfg(feature = "watch")]
        Command::Watch(_) => "watch",
        Command::Sql(_) => "sql",
        #[cfg(feature = "server")]
        Command::Serve(_) => "serve",
        Command::Import(args) if !args.summaries => "import",
        Command::Backup(_) => "backup",
        Command::Verify(args) if !args.gaps => "verify",
        Command::Salvage(_) => "salvage",
        Command::Upgrade(_) => "upgrade",
        Command::Config(args) if matches!(args.action, Some(ConfigAction::Init(_))) => "config init",
        Command::Embeddings(args) => match args.action {
            Some(EmbeddingsAction::Estimate(_)) => "embeddings estimate",
            Some(EmbeddingsAction::Backfill(_)) => "embeddings backfill",
            Some(EmbeddingsAction::Rebuild(_)) => "embeddings rebuild",
            _ => return None,
        },
        _ => return None,
    })
}
