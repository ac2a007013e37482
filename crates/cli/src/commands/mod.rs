//! The commands, one file each.

mod archive;
mod backup;
mod completions;
mod config;
mod confirm;
mod context;
mod copy;
mod delete;
mod doctor;
mod edit;
mod embeddings;
mod events;
mod gaps;
mod init;
mod masking;
mod models;
mod prune;
mod quickstart;
mod recent;
mod restore;
mod rewind;
mod salvage;
mod search;
mod secrets;
#[cfg(feature = "watch")]
mod service;
mod sessions;
mod share;
mod show;
#[cfg_attr(not(feature = "duckdb-system"), path = "sql_unsupported.rs")]
mod sql;
mod stats;
#[cfg(feature = "watch")]
mod status;
mod store_folder;
mod summaries;
mod superseded;
mod sync;
mod tag;
mod timeline;
mod turn;
mod upgrade;
mod user;
mod verify;
#[cfg(feature = "watch")]
mod watch;

use crate::{
    app::App,
    args::Command,
    failure::{Failure, Outcome, damaged_sessions_note, report_damage, say},
};

/// Runs a command, and lists the sessions that it skipped because they can't be read. If they are missing from the
/// answer, the command fails.
pub(crate) async fn run(app: &mut App, command: Command) -> Result<Outcome, Failure> {
    let lists_sessions = matches!(
        command,
        Command::Sessions(_)
            | Command::Recent(_)
            | Command::Stats(_)
            | Command::Tag(_)
            | Command::Embeddings(_)
            | Command::Backfill(_)
            | Command::Rebuild(_)
            | Command::Restore(_)
            | Command::Gaps(_)
            | Command::Secrets(_)
            | Command::User(_)
    );
    let outcome = dispatch(app, command).await;
    let damaged = app.out.damaged_sessions();
    if lists_sessions && outcome.is_ok() {
        app.out.finish()?;
        report_damage(&damaged)?;
    } else if let Some(note) = damaged_sessions_note(&damaged) {
        say("note", &note);
    }
    outcome
}

async fn dispatch(app: &mut App, command: Command) -> Result<Outcome, Failure> {
    match command {
        Command::Quickstart(args) => quickstart::run(app, args).await,
        Command::Init(args) => init::run(app, args).await,
        Command::Sync(args) => sync::run(app, args).await,
        #[cfg(feature = "watch")]
        Command::Watch(args) => watch::run(app, args).await,
        #[cfg(feature = "watch")]
        Command::Status(args) => status::run(app, args).await,
        #[cfg(feature = "watch")]
        Command::Service(args) => service::run(app, args),
        Command::Search(args) => search::run(app, args).await,
        Command::Timeline(args) => timeline::run(app, args).await,
        Command::Sessions(args) => sessions::run(app, args).await,
        Command::Recent(args) => recent::run(app, args).await,
        Command::Show(args) => show::run(app, args).await,
        Command::Context(args) => context::run(app, args).await,
        Command::Turn(args) => turn::run(app, args).await,
        Command::Events(args) => events::run(app, args).await,
        Command::Stats(args) => stats::run(app, args).await,
        Command::Sql(args) => sql::run(app, args).await,
        Command::Edit(args) => edit::run(app, args).await,
        Command::Tag(args) => tag::run(app, args).await,
        Command::Share(args) => share::run(app, args).await,
        Command::Summaries(args) => summaries::run(app, args).await,
        Command::Rewind(args) => rewind::run(app, args).await,
        Command::Delete(args) => delete::run(app, args).await,
        Command::Prune(args) => prune::run(app, args).await,
        Command::Secrets(args) => secrets::run(app, args).await,
        Command::Export(args) => archive::export(app, args).await,
        Command::Import(args) => archive::import(app, args).await,
        Command::Copy(args) => copy::run(app, args).await,
        Command::Restore(args) => restore::run(app, args).await,
        Command::Backup(args) => backup::run(app, args).await,
        Command::Verify(args) => verify::run(app, args).await,
        Command::Gaps(args) => gaps::run(app, args).await,
        Command::Salvage(args) => salvage::run(app, args).await,
        Command::Doctor(_) => doctor::run(app).await,
        Command::Embeddings(args) => embeddings::run(app, args).await,
        Command::Backfill(args) => embeddings::backfill(app, args).await,
        Command::Rebuild(args) => embeddings::rebuild(app, args).await,
        Command::Upgrade(args) => upgrade::run(app, args).await,
        Command::User(args) => user::run(app, args).await,
        Command::Config(args) => config::run(app, &args),
        Command::Models(args) => models::run(app, args).await,
        Command::Completions(args) => completions::run(app, &args),
    }
}
