//! `timeline`.

use std::path::PathBuf;

use amplifier_session_storage::search::PeriodUnit;
use clap::{Args, ValueEnum};

use super::QueryArgs;

/// Show when messages that match a query were written
#[derive(Debug, Args)]
#[command(long_about = "\
Counts the messages that match by the day, week or month in which they were written. The query and the filters are those \
of `search`: all messages that have all of the words, or that meet the fields, are counted. A search by meaning has no end: with \
--mode semantic, or if no message has a word of the query, the best 100 are counted.

Without --by, the chart is by day for up to five weeks, by week for up to a year, and otherwise by month. Days are \
those of your time zone, or of UTC with --utc; weeks begin on Monday (ISO 8601). On a terminal, more than three empty periods in a row are shown as one line.")]
#[command(after_long_help = "\
In a pipe, each period is one line of tab-separated fields: its first day, its last day, number of messages. Empty periods \
between are included, except in gaps of more than 366 periods. --json has the same as `periods`, with `query`, `mode`, `tz`, \
`by`, the total number of `matches`, how many of these have an `estimated` time, the days of the `first` and the `last` one, and \
`has_more` if only the best 100 are counted and more messages match.

Exits with 3 if nothing is found.

Examples:
  amplifier-sessions timeline connection pool exhausted
  amplifier-sessions timeline 'flaky test' --mode full-text --by week --since 90d
  amplifier-sessions timeline rollback --in user --project .
  amplifier-sessions timeline deadlock --plot deadlock.svg
  amplifier-sessions timeline timeout --by month --json")]
pub(crate) struct TimelineArgs {
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// Count by day, week or month [default: depends on the time between the first message and the last]
    #[arg(long, value_name = "UNIT", hide_possible_values = true)]
    pub(crate) by: Option<PeriodUnitArg>,
    /// Draw the chart to an SVG file, which only you can read; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Do not read recent changes in ~/.amplifier first; by default they are read if that takes less than a second
    #[arg(long)]
    pub(crate) no_refresh: bool,
}

/// The unit of the periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PeriodUnitArg {
    Day,
    Week,
    Month,
}

impl From<PeriodUnitArg> for PeriodUnit {
    fn from(arg: PeriodUnitArg) -> Self {
        match arg {
            PeriodUnitArg::Day => Self::Day,
            PeriodUnitArg::Week => Self::Week,
            PeriodUnitArg::Month => Self::Month,
        }
    }
}
