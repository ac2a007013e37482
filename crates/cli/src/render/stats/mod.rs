//! Statistics: charts for a terminal, lines for a pipe.

mod charts;
mod tabbed;
mod text;

use std::path::Path;

use amplifier_session_api::operations::statistics::StatisticsResponse;
use clap::ValueEnum as _;
pub(crate) use tabbed::tabbed;
use text::{places, totals};

use crate::{args::By, paint::Paint};

/// The parts to show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatsOptions<'a> {
    /// Only these charts; everything if empty.
    pub(crate) by: &'a [By],
    /// Whether to show all rows of each chart.
    pub(crate) all: bool,
    /// Whether a period was given.
    pub(crate) has_period: bool,
    /// The folder that `~` stands for.
    pub(crate) home: Option<&'a Path>,
}

impl StatsOptions<'_> {
    fn everything(&self) -> bool {
        self.by.is_empty()
    }

    /// The charts to show, in their order.
    fn sections(&self) -> impl Iterator<Item = By> {
        By::value_variants()
            .iter()
            .copied()
            .filter(|by| if self.everything() { by.is_usual() } else { self.by.contains(by) })
    }
}

/// Totals, charts and files; or only the requested charts.
pub(crate) fn blocks(
    response: &StatisticsResponse,
    shown: StatsOptions<'_>,
    width: usize,
    paint: Paint,
) -> Vec<String> {
    let mut blocks = Vec::new();
    if shown.everything() {
        blocks.push(totals(&response.statistics, shown.has_period, width));
    }
    for by in shown.sections() {
        let chart = charts::chart(&response.statistics, by, &response.tz);
        if !chart.rows.is_empty() || !shown.everything() {
            let mut lines = charts::section(chart, by, shown, width, paint);
            // The totals say it too.
            let covered = text::covered(response.statistics.usage).filter(|_| !shown.everything());
            lines.extend(covered.filter(|_| by.has_cost()).map(|covered| paint.aside(&covered)));
            blocks.push(lines);
        }
    }
    if shown.everything() {
        blocks.push(places(response, shown.home, width, paint));
    }
    blocks.join(&String::new())
}
