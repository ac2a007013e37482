//! `events`.

use amplifier_session_storage::model::Level;
use clap::{Args, builder::NonEmptyStringValueParser};

use super::{FilterArgs, NarrowArgs, at_least_one};

/// Find events in the event logs
#[derive(Debug, Args)]
#[command(long_about = "\
Finds events in the event logs of all sessions, newest first: model requests and responses, tool calls, errors. An event must \
match all options. Names must match exactly; --text searches error messages. `show SESSION --events` shows the log of one \
session from its beginning, and `show 3a7c1e90_evt_14` a single event in full. `stats` counts events.")]
#[command(after_long_help = "\
In a pipe, each event is one line of tab-separated fields, with `-` for unknown values: time, level, type, tool, model, \
session, number in the log, duration in milliseconds, input tokens, output tokens, kind of error. They are followed by the \
owner if --scope is not own, the error message, and with --full the original line. With --superseded, the fields are: time, \
type, session, number in the log, when it was superseded, why; then the owner and with --full the line.

If there are more events than --limit, --json has a `next` cursor for --after. Exits with 3 if nothing is found.

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
    /// Only events whose error or summary contains all these words, even within longer words; ignores case and accents
    #[arg(long, value_name = "WORDS", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) text: Option<String>,
    /// Only events of this type, for example llm:request (or llm.request)
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) event_type: Option<String>,
    /// Only events of this category, the part of the type before the colon: llm, tool, session, …
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
    /// Only events with this kind of error
    #[arg(long, value_name = "TYPE")]
    pub(crate) error_type: Option<String>,
    /// Show only superseded events, which are no longer in their log, in the order of the log
    #[arg(long, conflicts_with_all = [
        "text", "category", "tool", "model", "provider", "level", "error_type", "after",
    ])]
    pub(crate) superseded: bool,
    /// Maximum number of events, up to 10000
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    pub(crate) limit: usize,
    /// Continue after a page, given its `next` cursor
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
    /// Show the original lines of the event log
    #[arg(long)]
    pub(crate) full: bool,
}

fn level(text: &str) -> Result<Level, String> {
    Level::parse(text).ok_or_else(|| "must be debug, info, warn or error".to_owned())
}
