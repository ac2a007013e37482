//! What is typed.

use std::path::PathBuf;

use amplifier_session_storage::{model::ContentType, model::Role, search::SearchMode, storage::EventDetail};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, builder::NonEmptyStringValueParser};

const ABOUT: &str = "Keeps the sessions of AI agents and finds them again";

const AFTER_HELP: &str = "\
Examples:
  amplifier-sessions quickstart                        see it work, on your sessions or on samples
  amplifier-sessions sync                              take in new sessions of ~/.amplifier
  amplifier-sessions search why did the import fail    find by words and by meaning
  amplifier-sessions sessions --since 7d               what was worked on lately
  amplifier-sessions show 3a7c1e90                     read a conversation

Exit codes:
  0  done
  1  failed
  2  wrong use
  3  found nothing

Results go to stdout, messages to stderr; --json gives results with stable fields.
Dates are 7d, 12h, 2w, today, yesterday, 2026-01-31 or 2026-01-31T09:30, in local time.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "amplifier-sessions", version, about = ABOUT, after_help = AFTER_HELP)]
#[command(subcommand_required = true, arg_required_else_help = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Where the sessions are kept
    #[arg(long, global = true, value_name = "URL", env = "AMPLIFIER_SESSIONS_STORE", default_value = DEFAULT_STORE)]
    #[arg(hide_env_values = true)]
    pub(crate) store: String,
    /// Whose sessions; the Azure CLI's account or the system's user by default
    #[arg(long, global = true, value_name = "ID", env = "AMPLIFIER_SESSIONS_USER", hide_env_values = true)]
    pub(crate) user: Option<String>,
    /// What makes vectors for search by meaning: `local` is compiled in, `none` searches by words alone
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "AMPLIFIER_SESSIONS_EMBEDDING",
        default_value = "local"
    )]
    #[arg(hide_env_values = true)]
    pub(crate) embedding: String,
    /// Print results as one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours; NO_COLOR turns them off too
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
    /// Say more on stderr; twice for still more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// The store when none is named.
pub(crate) const DEFAULT_STORE: &str = "sqlite:~/.amplifier/sessions.sqlite";

impl GlobalArgs {
    /// What to log, in the syntax of `tracing_subscriber::EnvFilter`; nothing unless asked.
    pub(crate) fn log_level(&self) -> Option<&'static str> {
        match self.verbose {
            0 => None,
            1 => Some("info"),
            _ => Some("debug"),
        }
    }
}

/// When to do something that by default only a terminal gets.
// No doc comments on the values of an argument: they would turn every help text into its long form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Take in sessions, show what there is and answer a question from it
    Quickstart(QuickstartArgs),
    /// Take in new and changed sessions
    Sync(SyncArgs),
    /// Find messages by words and by meaning
    Search(SearchArgs),
    /// List sessions, newest first
    Sessions(SessionsArgs),
    /// Show the conversation of a session
    Show(ShowArgs),
    /// Show what stands around a turn or a message
    Context(ContextArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// `quickstart`.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes the newest 200 sessions of ~/.amplifier into the store. Where there are none, it takes the \
sample sessions that come with the program into a store that is thrown away again.

Examples:
  amplifier-sessions quickstart
  amplifier-sessions quickstart why was the card charged twice")]
pub(crate) struct QuickstartArgs {
    /// Your own question, instead of the ones chosen for you
    #[arg(value_name = "QUESTION")]
    pub(crate) question: Vec<String>,
}

/// `sync`.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads DIR/projects/*/sessions/* and never writes there. What is unchanged is not read again; \
lines that can't be read are listed and skipped, with exit code 0.

Examples:
  amplifier-sessions sync
  amplifier-sessions sync --since 30d --events summary
  amplifier-sessions sync --root /backup/amplifier --exclude '*-scratch/*' --dry-run")]
pub(crate) struct SyncArgs {
    /// The folder that holds projects/; ~/.amplifier by default
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Only say what would be taken in
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Only sessions whose files changed since then
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<String>,
    /// Leave out sessions whose PROJECT/SESSION matches; may be repeated
    #[arg(long, value_name = "GLOB", allow_hyphen_values = true)]
    pub(crate) exclude: Vec<String>,
    /// How much of the event logs to keep: whole lines, their fields (few bytes), or nothing
    #[arg(long, value_name = "DETAIL", default_value = "full")]
    pub(crate) events: EventsArg,
    /// Only the N sessions that changed last
    #[arg(long, value_name = "N")]
    pub(crate) newest: Option<usize>,
}

/// How much of the event logs to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsArg {
    Full,
    Summary,
    None,
}

impl From<EventsArg> for EventDetail {
    fn from(arg: EventsArg) -> Self {
        match arg {
            EventsArg::Full => Self::Full,
            EventsArg::Summary => Self::Summary,
            EventsArg::None => Self::None,
        }
    }
}

/// `search`.
#[derive(Debug, Args)]
#[command(after_help = "\
Any text is plain input: there are no operators. In a pipe each result is one line of fields \
separated by tabs: score, session, message, time, project, content type, snippet. Exit code 3 says \
that nothing was found.

Examples:
  amplifier-sessions search connection pool exhausted
  amplifier-sessions search 'what did we decide about retries' --in assistant,thinking
  amplifier-sessions search ECONNRESET --mode full-text --in tool
  amplifier-sessions search timeout --project -home-ana-payments --since 2w --limit 3 --json")]
pub(crate) struct SearchArgs {
    /// Words or a question; quotes around it are optional
    #[arg(value_name = "QUERY", value_parser = query, allow_hyphen_values = true)]
    query: String,
    /// Further words
    #[arg(value_name = "WORD", hide = true)]
    further_words: Vec<String>,
    /// How to find: by words, by meaning, or by both
    #[arg(long, default_value = "hybrid")]
    pub(crate) mode: ModeArg,
    /// Where to look: user, assistant, thinking, tool, system; all but system by default
    #[arg(long = "in", value_name = "TYPES", value_delimiter = ',', value_parser = parse::<ContentType>)]
    pub(crate) content_types: Vec<ContentType>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Only this session, by its id or the beginning of it
    #[arg(long, value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Only messages of this role: user, assistant, tool, system, developer
    #[arg(long, value_parser = parse::<Role>)]
    pub(crate) role: Option<Role>,
    /// The most results, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) limit: usize,
    /// Relevance against variety, 0 to 1; 1 is relevance alone
    #[arg(long, value_name = "X", default_value_t = 0.7, allow_negative_numbers = true)]
    pub(crate) mmr_lambda: f32,
    /// The least similarity of what is found by meaning, -1 to 1
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) min_similarity: Option<f32>,
    /// Show whole messages
    #[arg(long)]
    pub(crate) full: bool,
}

/// How to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    Hybrid,
    Semantic,
    #[value(alias = "full_text")]
    FullText,
}

impl From<ModeArg> for SearchMode {
    fn from(arg: ModeArg) -> Self {
        match arg {
            ModeArg::Hybrid => Self::Hybrid,
            ModeArg::Semantic => Self::Semantic,
            ModeArg::FullText => Self::FullText,
        }
    }
}

/// What narrows sessions and messages.
#[derive(Debug, Args)]
pub(crate) struct FilterArgs {
    /// Only this project, as its folder is called
    // Slugs begin with a hyphen.
    #[arg(long, value_name = "SLUG", allow_hyphen_values = true)]
    pub(crate) project: Option<String>,
    /// Only from then on
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<String>,
    /// Only until then; a day is meant whole
    #[arg(long, value_name = "DATE")]
    pub(crate) until: Option<String>,
}

/// `sessions`.
#[derive(Debug, Args)]
#[command(after_help = "\
In a pipe each session is one line of fields separated by tabs: session, time of the last change, \
project, messages, turns, events, title. A session without a name goes by its first user message.

Examples:
  amplifier-sessions sessions --since yesterday
  amplifier-sessions sessions --project -home-ana-payments --limit 5 --json")]
pub(crate) struct SessionsArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// The most sessions
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
}

/// `show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  amplifier-sessions show 3a7c1e90
  amplifier-sessions show 3a7c1e90 --from 40 --limit 10 --full
  amplifier-sessions show 3a7c1e90 --events --json")]
pub(crate) struct ShowArgs {
    /// The session, by its id or the beginning of it
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// The first message (or event, with --events), counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) from: u32,
    /// The most messages (or events)
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = at_least_one)]
    pub(crate) limit: usize,
    /// Show tool output whole (and the lines of events)
    #[arg(long)]
    pub(crate) full: bool,
    /// Show the event log instead of the conversation
    #[arg(long)]
    pub(crate) events: bool,
}

/// `context`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  amplifier-sessions context 3a7c1e90 --turn 2
  amplifier-sessions context 3a7c1e90 --message 14 --before 5 --after 0 --json")]
pub(crate) struct ContextArgs {
    /// The session, by its id or the beginning of it
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// How many turns (or messages) before it [default: 1 turn, 3 messages]
    #[arg(long, value_name = "N")]
    pub(crate) before: Option<u32>,
    /// How many turns (or messages) behind it [default: 1 turn, 3 messages]
    #[arg(long, value_name = "N")]
    pub(crate) after: Option<u32>,
    /// Show tool output whole
    #[arg(long)]
    pub(crate) full: bool,
}

/// One of the two.
#[derive(Debug, Clone, Copy, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct PlaceArgs {
    /// The turn, counted from 1
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<u32>,
    /// The message, counted from 0
    #[arg(long, value_name = "N")]
    pub(crate) message: Option<u32>,
}

/// `completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  amplifier-sessions completions bash > ~/.local/share/bash-completion/completions/amplifier-sessions
  amplifier-sessions completions fish > ~/.config/fish/completions/amplifier-sessions.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Reads a type of the library, whose errors say what they take.
fn parse<T: std::str::FromStr<Err = amplifier_session_storage::Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

impl SearchArgs {
    /// The whole query.
    pub(crate) fn query(&self) -> String {
        [std::slice::from_ref(&self.query), &self.further_words].concat().join(" ")
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("must be a number of at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// Any text is a query, also `- that` or `-1`; but `--limt` is a slip of the keyboard.
fn query(text: &str) -> Result<String, String> {
    let is_option_like = text.strip_prefix("--").is_some_and(|name| {
        name.starts_with(|first: char| first.is_ascii_alphabetic()) && !name.contains(char::is_whitespace)
    });
    match is_option_like {
        true => Err(format!("there is no such option; to search for it, put a space before it: ' {text}'")),
        false => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn slugs_with_a_hyphen_and_negative_numbers_are_values() {
        let typed =
            ["x", "search", "a", "b", "--project", "-home-ana", "--min-similarity", "-0.5", "--limit", "3"];
        let Command::Search(search) = Cli::parse_from(typed).command else { panic!("not a search") };
        assert_eq!(search.query(), "a b");
        assert_eq!(search.filter.project.as_deref(), Some("-home-ana"));
        assert_eq!(search.min_similarity, Some(-0.5));
        assert_eq!(search.limit, 3);
    }

    #[test]
    fn a_query_may_begin_with_a_hyphen_but_a_mistyped_option_is_no_query() {
        let query = |typed: &[&str]| match Cli::try_parse_from([&["x", "search"], typed].concat()) {
            Ok(Cli { command: Command::Search(search), .. }) => Some((search.query(), search.limit)),
            _ => None,
        };
        assert_eq!(query(&["- That", "--limit", "3"]), Some(("- That".to_owned(), 3)));
        assert_eq!(query(&["--limit", "3", "-1", "%"]), Some(("-1 %".to_owned(), 3)));
        assert_eq!(query(&["--limit", "3", " --flag"]), Some((" --flag".to_owned(), 3)));
        assert_eq!(query(&["--limt", "3", "a"]), None);
        assert_eq!(query(&[]), None);
    }

    #[test]
    fn content_types_come_as_a_list() {
        let typed = ["x", "search", "a", "--in", "user,tool", "--in", "system", "--mode", "full_text"];
        let Command::Search(search) = Cli::parse_from(typed).command else { panic!("not a search") };
        assert_eq!(
            search.content_types,
            [ContentType::UserQuery, ContentType::ToolOutput, ContentType::System]
        );
        assert_eq!(search.mode, ModeArg::FullText);
        assert!(Cli::try_parse_from(["x", "search", "a", "--in", "answers"]).is_err());
    }
}
