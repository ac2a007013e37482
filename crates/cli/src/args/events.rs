//! `events`.

use amplifier_session_storage::model::Level;
use clap::{Args, builder::NonEmptyStringValueParser};

use super::{FilterArgs, NarrowArgs, at_least_one};

/// Find events in the event logs
#[derive(Debug, Args)]
#[command(long_about = "\
Finds events in the event logs of all sessions, newest first: requests to models and their answers, uses of tools, \
errors. Every option narrows; names are compared in full, as they stand, and --text finds what errors say. \
`show SESSION --events` shows the log of one session from its beginning, `show` with the address of an event, such as \
3a7c1e90_evt_14, the event alone and whole; `stats` counts events.")]
#[command(after_long_help = "\
In a pipe each event is one line of fields separated by tabs, `-` where nothing is known: time, level, type, tool, \
model, session, number in its log, duration in milliseconds, tokens in, tokens out, kind of error. The owner \
follows when --scope is not own, then what the error says, then the event's line as it came in with --full.

When there are more events than --limit, --json has a `next` that --after takes. Exit code 3 says that nothing was \
found.

Examples:
  amplifier-sessions events --level error --since 7d
  amplifier-sessions events --text 'rate limit' --category llm
  amplifier-sessions events --category llm --session 3a7c1e90
  amplifier-sessions events --type tool:post --tool bash --limit 5 --full
  amplifier-sessions events --type llm:response --model gpt-5 | cut -f 8 | sort -n | tail -1")]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) narrow: NarrowArgs,
    /// Only this session, by its address
    #[arg(long, value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Only events whose error or summary holds all these words, or words that they are part of; case and accents make no
    /// difference
    #[arg(long, value_name = "WORDS", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) text: Option<String>,
    /// Only this type, for example llm:request; llm.request is the same
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) event_type: Option<String>,
    /// Only types of this category, what stands before the colon: llm, tool, session, …
    #[arg(long, value_name = "CATEGORY")]
    pub(crate) category: Option<String>,
    /// Only events about this tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// Only events about this model
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Only events about this provider
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,
    /// Only events of this level: debug, info, warn or error
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(crate) level: Option<Level>,
    /// Only events that report this kind of error
    #[arg(long, value_name = "TYPE")]
    pub(crate) error_type: Option<String>,
    /// The most events, up to 10000
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    pub(crate) limit: usize,
    /// Go on behind the page whose `next` this is
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
    /// Show the whole lines of the event log
    #[arg(long)]
    pub(crate) full: bool,
}

fn level(text: &str) -> Result<Level, String> {
    Level::parse(text).ok_or_else(|| "must be debug, info, warn or error".to_owned())
}
