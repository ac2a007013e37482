//! `stats`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};

use super::{FilterArgs, NarrowArgs};

/// `stats`.
#[derive(Debug, Args)]
#[command(about = "Count sessions, messages and events, and chart them")]
#[command(long_about = "\
Counts sessions, messages and events, and charts them by day, project, bundle, type of event, tool and model; then says \
where the store and its index lie and how large they are. Each chart has its ten largest; days are the last 30, \
those without activity included, or those of the period. --by week and --by month chart longer times. Days are days in \
UTC, weeks begin on Monday (ISO 8601).

With --since or --until, sessions count that were active then, and messages and events of then. What models took (calls, \
tokens, cost) is as far as the event logs tell it. A call of a model and a use of a tool count once, however many events \
report them.")]
#[command(after_long_help = "\
In a pipe everything is shown, one line each, its fields separated by tabs; `-` stands for what is not known:
  total    NAME    NUMBER
  total    cost    cost of all calls of models; the totals before it are numbers of rows
  day      DATE    sessions begun, messages, messages of users, events, cost
  week     WEEK    the same by week (2026-W05) and by month (2026-01): only with --by week
  month    MONTH   and --by month
  project  SLUG    sessions, messages, turns, events
  bundle   BUNDLE  sessions, messages, turns, events
  event    TYPE    events, failures
  tool     TOOL    uses, failures
  model    MODEL   calls, tokens in, tokens out, read from cache, put into cache, cost, failures,
                   provider
  place    WHAT    bytes, where
  vectors  MODEL   dimensions, messages that owe theirs (1000+ when they are more)
Totals are of whole sessions. --json has everything, whatever --by says.

Exit code 3 says that no session matches.

Examples:
  amplifier-sessions stats
  amplifier-sessions stats --since 30d --by day
  amplifier-sessions stats --by week,month,model
  amplifier-sessions stats --by tool --all --project -home-ana-payments
  amplifier-sessions stats --session 3a7c1e90
  amplifier-sessions stats --since 90d --plot activity.svg
  amplifier-sessions stats --by month --plot months.svg
  amplifier-sessions stats | awk -F'\\t' '$1 == \"model\" { print $2, $8 }'")]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) narrow: NarrowArgs,
    /// Only this session, by its address
    #[arg(long, value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Only these charts; may be repeated
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) by: Vec<By>,
    /// Show all rows of each chart, not the largest ten or the last 30 days
    #[arg(long)]
    pub(crate) all: bool,
    /// Draw messages and tokens by day (or by what --by names: week, month), tools and models as a picture, an SVG file that
    /// is made for you alone; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

/// What things are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Day,
    Week,
    Month,
    Project,
    Bundle,
    Event,
    Tool,
    Model,
}

impl By {
    /// All, in the order in which they are shown.
    pub(crate) const ALL: [Self; 8] = [
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Project,
        Self::Bundle,
        Self::Event,
        Self::Tool,
        Self::Model,
    ];

    /// Whether it is shown when nothing is asked for.
    pub(crate) fn is_usual(self) -> bool {
        !matches!(self, Self::Week | Self::Month)
    }
}
