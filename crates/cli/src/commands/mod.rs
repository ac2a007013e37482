//! One file a command.

mod completions;
mod context;
mod quickstart;
mod search;
mod sessions;
mod show;
mod sync;

use crate::{
    app::App,
    args::Command,
    failure::{Failure, Outcome},
};

/// Runs a command.
pub(crate) async fn run(app: &mut App, command: Command) -> Result<Outcome, Failure> {
    match command {
        Command::Quickstart(args) => quickstart::run(app, args).await,
        Command::Sync(args) => sync::run(app, args).await,
        Command::Search(args) => search::run(app, args).await,
        Command::Sessions(args) => sessions::run(app, args).await,
        Command::Show(args) => show::run(app, args).await,
        Command::Context(args) => context::run(app, args).await,
        Command::Completions(args) => completions::run(app, &args),
    }
}
