//! The commands. Most have a file of their own; the forms of one command may have several, and `superseded` has those
//! of all commands with `--superseded`.

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
mod files;
#[cfg(feature = "client")]
mod follow;
mod gaps;
mod init;
mod masking;
mod mcp;
mod models;
mod needs_store;
#[cfg(any(feature = "server", feature = "watch"))]
mod notify;
mod prune;
#[cfg(feature = "client")]
mod pull;
#[cfg_attr(not(feature = "client"), path = "push_unsupported.rs")]
mod push;
mod pushed;
mod quickstart;
mod recent;
mod restore;
mod rewind;
mod salvage;
mod search;
mod secrets;
#[cfg(feature = "server")]
mod serve;
#[cfg(feature = "watch")]
mod service;
mod sessions;
mod share;
mod show;
mod show_in_editor;
mod show_line;
mod skill;
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
#[cfg(feature = "server")]
mod token;
mod turn;
mod upgrade;
mod user;
mod verify;
#[cfg(feature = "watch")]
mod watch;

#[cfg(feature = "watch")]
use crate::args::WatchAction;
use crate::{
    app::App,
    args::{Command, ConfigAction, ShownPart, VerifyArgs},
    failure::{Failure, Outcome, damaged_sessions_note, report_damage, say},
};

/// Runs a command, and lists the sessions that it skipped because they can't be read. If they are missing from the
/// answer, the command fails.
pub(crate) async fn run(app: &mut App, command: Command) -> Result<Outcome, Failure> {
    let lists_sessions = matches!(
        command,
        Command::Sessions(_)
            | Command::Stats(_)
            | Command::Tag(_)
            | Command::Embeddings(_)
            | Command::Restore(_)
            | Command::Verify(VerifyArgs { gaps: true, .. })
            | Command::Secrets(_)
            | Command::User(_)
    );
    needs_store::check(app, &command)?;
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
        Command::Sync(args) => sync::run(app, args).await,
        #[cfg(feature = "watch")]
        Command::Watch(args) => match args.action {
            None => watch::run(app, args).await,
            Some(WatchAction::Status(args)) => status::run(app, args).await,
            Some(WatchAction::Service(args)) => service::run(app, args),
        },
        Command::Search(args) => search::run(app, args).await,
        Command::Timeline(args) => timeline::run(app, args).await,
        Command::Sessions(args) if args.by.is_some() => recent::run(app, args).await,
        Command::Sessions(args) => sessions::run(app, args).await,
        Command::Show(args) if args.editor => show_in_editor::run(app, args).await,
        Command::Show(args) => show_part(app, args.part()?).await,
        Command::Files(args) => files::run(app, args).await,
        Command::Events(args) => events::run(app, args).await,
        Command::Stats(args) => stats::run(app, args).await,
        Command::Sql(args) => sql::run(app, args).await,
        Command::Edit(args) => edit::run(app, args).await,
        Command::Tag(args) => tag::run(app, args).await,
        Command::Share(args) => share::run(app, args).await,
        Command::Rewind(args) => rewind::run(app, args).await,
        Command::Delete(args) if args.superseded => prune::run(app, args).await,
        Command::Delete(args) => delete::run(app, args).await,
        Command::Secrets(args) => secrets::run(app, args).await,
        Command::Export(args) => archive::export(app, args).await,
        Command::Import(args) if args.summaries => summaries::run(app, args).await,
        Command::Import(args) => archive::import(app, args).await,
        Command::Copy(args) => copy::run(app, args).await,
        Command::Restore(args) => restore::run(app, args).await,
        Command::Backup(args) => backup::run(app, args).await,
        Command::Verify(args) if args.gaps => gaps::run(app, args).await,
        Command::Verify(args) => verify::run(app, args).await,
        Command::Salvage(args) => salvage::run(app, args).await,
        Command::Doctor(_) => doctor::run(app).await,
        Command::Embeddings(args) => embeddings::run(app, args).await,
        Command::Upgrade(args) => upgrade::run(app, args).await,
        Command::User(args) => user::run(app, args).await,
        Command::Mcp(args) => mcp::run(app, args).await,
        #[cfg(feature = "server")]
        Command::Serve(args) => serve::run(app, args).await,
        #[cfg(feature = "server")]
        Command::Token(args) => token::run(app, args),
        Command::Skill(_) => skill::run(app),
        Command::Config(args) => match args.action {
            None | Some(ConfigAction::Show) => config::run(app),
            Some(ConfigAction::Init(args)) => init::run(app, args).await,
        },
        Command::Completions(args) => completions::run(app, &args),
    }
}

async fn show_part(app: &mut App, part: ShownPart) -> Result<Outcome, Failure> {
    match part {
        ShownPart::Page(args) => show::run(app, args).await,
        ShownPart::Line(args) => show_line::run(app, args).await,
        ShownPart::Turn(args) => turn::run(app, args).await,
        ShownPart::Context(args) => context::run(app, args).await,
    }
}
