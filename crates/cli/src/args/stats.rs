//! `stats`.

use std::path::PathBuf;

use amplifier_session_storage::search::PeriodUnit;
use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};

use super::{FilterArgs, NarrowArgs};

/// `stats`.
#[derive(Debug, Args)]
#[command(about = "Count and chart sessions, messages and events")]
#[command(long_about = "\
Counts sessions, messages and events, and charts them by day, project, bundle, event type, tool and model. Also shows the \
path and size of the store and its index. Each chart shows the ten largest rows. The chart by day shows the last 30 days or \
those of the period, including days without activity. --by week and --by month chart longer periods. Days are those of \
your time zone, or of UTC with --utc; weeks begin on Monday (ISO 8601).

With --since or --until, counts sessions that were active in the period, and messages and events in the period. Calls, \
tokens and cost of models are as reported by the event logs. A model call or tool use counts once, even if several \
events report it. So does what forks and copies of a session have of it: `left out` says how much that is. The uses of \
tools in sessions without events are the calls in their transcripts. If only some calls report a cost that can be \
read, `cost covers 18 of 238 calls` says so.")]
#[command(after_long_help = "\
In a pipe, everything is shown, one line of tab-separated fields each, with `-` for unknown values:
  total    NAME    NUMBER
  total    cost    cost of all model calls; the totals before it are numbers of rows
  total    calls, priced_calls, unreadable_costs
                   model calls, those that the cost covers, those whose cost can't be read; only if
                   the cost does not cover all
  left_out NAME    what is in several sessions, or twice in a log, and in no other number:
                   sessions with copies, messages, turns, events, calls, cost; only if there is any
  total    compacted_events
                   events that only superseded lines have now, if there are any
  day      DATE    sessions started, messages, messages of users, events, cost
  week     WEEK    the same by week (2026-W05), only with --by week
  month    MONTH   the same by month (2026-01), only with --by month
  project  SLUG    sessions, messages, turns, events
  bundle   BUNDLE  sessions, messages, turns, events
  event    TYPE    events, failures
  tool     TOOL    uses, failures
  model    MODEL   calls, input tokens, output tokens, cache reads, cache writes, cost, failures,
                   provider
  place    WHAT    bytes, path
  vectors  MODEL   dimensions, messages with pending vectors (1000+ if there are more)
Totals are of whole sessions. --json has everything, regardless of --by.

Exits with 3 if no session matches.

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
    /// Show only these charts; may be repeated
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) by: Vec<By>,
    /// Show all rows of each chart, not only the largest ten or the last 30 days
    #[arg(long)]
    pub(crate) all: bool,
    /// Draw messages and tokens by day (or week or month, with --by), tools and models to an SVG file, which only you
    /// can read; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

/// The breakdowns of the statistics, in the order in which they are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Day,
    Week,
    Month,
    Project,
    Bundle,
    #[value(aliases = ["event_type", "event-type"])]
    Event,
    Tool,
    Model,
}

impl By {
    /// Whether it is shown by default.
    pub(crate) fn is_usual(self) -> bool {
        !matches!(self, Self::Week | Self::Month)
    }

    /// Whether the cost of model calls is a column.
    pub(crate) fn has_cost(self) -> bool {
        matches!(self, Self::Day | Self::Week | Self::Month | Self::Model)
    }

    /// The unit of the bars in a picture: the first requested one, or days.
    pub(crate) fn unit(by: &[Self]) -> PeriodUnit {
        let unit = |by: &Self| match by {
            Self::Day => Some(PeriodUnit::Day),
            Self::Week => Some(PeriodUnit::Week),
            Self::Month => Some(PeriodUnit::Month),
            _ => None,
        };
        by.iter().find_map(unit).unwrap_or(PeriodUnit::Day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_requested_unit_is_used() {
        assert_eq!(By::unit(&[By::Tool, By::Month, By::Day]), PeriodUnit::Month);
        assert_eq!(By::unit(&[By::Week]), PeriodUnit::Week);
        assert_eq!(By::unit(&[By::Tool]), PeriodUnit::Day);
    }
}
