//! The definition of the command line.

mod archive;
mod backup;
mod completions;
mod config;
mod context;
mod copy;
mod delete;
mod doctor;
mod edit;
mod embeddings;
mod events;
mod files;
mod filter;
mod global;
mod group;
mod help;
mod init;
mod mcp;
mod mcp_install;
mod models;
mod moved;
mod parse;
mod push;
mod query;
mod quickstart;
mod restore;
mod rewind;
mod salvage;
mod search;
mod secrets;
#[cfg(feature = "server")]
mod serve;
mod sessions;
mod share;
mod show;
mod skill;
mod sql;
mod stats;
mod sync;
mod timeline;
#[cfg(feature = "server")]
mod token;
mod turn;
mod unquoted;
mod upgrade;
mod user;
mod verify;
#[cfg(feature = "watch")]
mod watch;

use clap::{Parser, Subcommand};

pub(crate) use archive::{ExportArgs, ImportArgs};
pub(crate) use backup::BackupArgs;
pub(crate) use completions::CompletionsArgs;
pub(crate) use config::{ConfigAction, ConfigArgs};
pub(crate) use context::{ContextArgs, PositionArgs};
pub(crate) use copy::CopyArgs;
pub(crate) use delete::DeleteArgs;
pub(crate) use doctor::DoctorArgs;
pub(crate) use edit::{EditArgs, TagArgs};
pub(crate) use embeddings::{BackfillArgs, EmbeddingsAction, EmbeddingsArgs, EstimateArgs, RebuildArgs};
pub(crate) use events::EventsArgs;
pub(crate) use files::FilesArgs;
pub(crate) use filter::{FilterArgs, LimitArgs, NarrowArgs, PlaceArgs, RepoArgs};
pub(crate) use global::{GlobalArgs, ScopeArg, When, quoted};
pub(crate) use group::GroupArg;
pub(crate) use help::{command, command_of_width};
pub(crate) use init::InitArgs;
pub(crate) use mcp::McpCommand;
pub(crate) use mcp_install::{InstallMcpArgs, McpSubcommand, UninstallMcpArgs};
pub(crate) use models::{InstallModelArgs, ModelsAction, ModelsArgs, VerifyModelArgs};
pub(crate) use moved::{new_name, use_new_name};
pub(crate) use parse::{parse_arguments, parse_arguments_for};
pub(crate) use push::PushArgs;
#[cfg(feature = "client")]
pub(crate) use push::server_address;
pub(crate) use query::{CURRENT_SESSION, QueryArgs};
pub(crate) use quickstart::QuickstartArgs;
pub(crate) use restore::RestoreArgs;
pub(crate) use rewind::RewindArgs;
pub(crate) use salvage::SalvageArgs;
pub(crate) use search::{ResultUnitArg, SearchArgs};
pub(crate) use secrets::SecretsArgs;
#[cfg(feature = "server")]
pub(crate) use serve::ServeArgs;
pub(crate) use sessions::SessionsArgs;
pub(crate) use share::ShareArgs;
pub(crate) use show::{ShowArgs, ShownPart};
pub(crate) use skill::SkillArgs;
pub(crate) use sql::SqlArgs;
#[cfg(feature = "duckdb-system")]
pub(crate) use sql::SqlFormat;
pub(crate) use stats::{By, StatsArgs};
pub(crate) use sync::SyncArgs;
pub(crate) use timeline::TimelineArgs;
#[cfg(feature = "server")]
pub(crate) use token::{CreateTokenArgs, TokenAction, TokenArgs};
pub(crate) use turn::{TurnArgs, TurnsArgs};
pub(crate) use unquoted::QueryLine;
pub(crate) use upgrade::UpgradeArgs;
pub(crate) use user::{RenameArgs, UserAction, UserArgs};
pub(crate) use verify::VerifyArgs;
#[cfg(feature = "watch")]
pub(crate) use watch::{
    InstallServiceArgs, LogFormat, ServiceAction, ServiceArgs, StatusArgs, WatchAction, WatchArgs,
    WatchedArgs,
};

const ABOUT: &str = "Stores and searches the sessions of AI agents";

const EXAMPLES: &str = "\
Examples:
  amplifier-sessions quickstart                        try it on your sessions or on samples
  amplifier-sessions sync                              read new sessions from ~/.amplifier
  amplifier-sessions search why did the import fail    search by words and by meaning
  amplifier-sessions sessions --by project             list what you worked on recently
  amplifier-sessions show 3a7c1e90                     read a conversation
  amplifier-sessions help search                       print the manual of a command";

const CONVENTIONS: &str = "\
Exit codes:
  0  success
  1  failure
  2  usage error
  3  nothing found

Results go to stdout, messages to stderr. A terminal gets tables and blocks; a pipe gets one line per result, with \
tab-separated fields; --json prints one object with stable fields.
Dates are 7d, 12h, 2w, '3 months ago', today, yesterday, monday, 'last week', 2026-01-31 or 2026-01-31T09:30, in local time.
A session is named by its id, a unique prefix of the id, or `latest`; 3a7c1e90#14 is a message of a session.

Environment:
  AMPLIFIER_SESSIONS_STORE, _USER, _SCOPE, _TEAMS, _ORG, _EMBEDDING
                                the same as the options of these names
  AMPLIFIER_SESSIONS_CONFIG     the configuration file
  AMPLIFIER_SESSIONS_FORCE_TTY  treat a pipe as a terminal with this number of columns
  AMPLIFIER_SESSIONS_PAGER, PAGER
                                the pager; `cat` or nothing turns it off
  VISUAL, EDITOR                the editor of `show --editor`
  NO_COLOR                      no colours";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "amplifier-sessions", version, about = ABOUT)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{CONVENTIONS}"))]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands. Their help is on their arguments: a comment here would replace the long help.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Quickstart(QuickstartArgs),
    Sync(SyncArgs),
    #[cfg(feature = "watch")]
    Watch(WatchArgs),
    Search(SearchArgs),
    Timeline(TimelineArgs),
    Sessions(SessionsArgs),
    Show(ShowArgs),
    Files(FilesArgs),
    Events(EventsArgs),
    Stats(StatsArgs),
    // Hidden, but it still reports which build has it.
    #[cfg_attr(not(feature = "duckdb-system"), command(hide = true))]
    Sql(SqlArgs),
    Mcp(McpCommand),
    #[cfg(feature = "server")]
    Serve(ServeArgs),
    #[cfg(feature = "server")]
    Token(TokenArgs),
    Edit(EditArgs),
    Tag(TagArgs),
    Share(ShareArgs),
    Rewind(RewindArgs),
    Delete(DeleteArgs),
    Secrets(SecretsArgs),
    Export(ExportArgs),
    Import(ImportArgs),
    Copy(CopyArgs),
    Restore(RestoreArgs),
    Backup(BackupArgs),
    Verify(VerifyArgs),
    Salvage(SalvageArgs),
    Doctor(DoctorArgs),
    Embeddings(EmbeddingsArgs),
    Upgrade(UpgradeArgs),
    User(UserArgs),
    Skill(SkillArgs),
    Config(ConfigArgs),
    Completions(CompletionsArgs),
}

impl Command {
    /// Whether the output goes through a pager on a terminal: that of commands that only print what they find.
    pub(crate) fn is_paged(&self) -> bool {
        match self {
            // Without a query, it is interactive.
            Self::Search(args) => args.query.is_given(),
            Self::Show(args) => !args.editor,
            Self::Timeline(_)
            | Self::Sessions(_)
            | Self::Files(_)
            | Self::Events(_)
            | Self::Stats(_)
            | Self::Sql(_) => true,
            _ => false,
        }
    }
}

/// Parses a type of the library. Its errors say what is valid.
fn parse<T: std::str::FromStr<Err = amplifier_session_storage::Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.message().to_owned())
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "must be a number, 0 or greater".to_owned())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("must be a number, 1 or greater".to_owned()),
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_is_sound() {
        super::command().debug_assert();
    }
}
