//! Statistics: charts for a terminal, lines for a pipe.

mod charts;
mod svg;
mod tabbed;
mod text;

use std::path::Path;

use amplifier_session_storage::{
    backend::StorePlace,
    model::{DamagedRow, EmbeddingSpace},
    storage::Statistics,
};
use clap::ValueEnum as _;
use serde::Serialize;
pub(crate) use svg::svg;
pub(crate) use tabbed::tabbed;
use text::{places, totals};

use crate::{args::By, paint::Paint};

/// All data for the output; as JSON, one object.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    #[serde(flatten)]
    pub(crate) statistics: Statistics,
    /// The files of the store and its index.
    pub(crate) places: Vec<StorePlace>,
    pub(crate) vectors: StoreVectors,
    /// Sessions that can't be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) damaged: Vec<DamagedRow>,
}

/// The vectors of the store.
#[derive(Debug, Serialize)]
pub(crate) struct StoreVectors {
    /// Their model; `None` if there are no vectors.
    pub(crate) space: Option<EmbeddingSpace>,
    /// Messages with pending vectors; `None` if the scope includes more than one user.
    #[serde(rename = "owing_messages")]
    pub(crate) pending_messages: Option<usize>,
    /// Whether there are more of these than were counted.
    #[serde(rename = "owing_more")]
    pub(crate) pending_more: bool,
}

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
pub(crate) fn blocks(facts: &Facts, shown: StatsOptions<'_>, width: usize, paint: Paint) -> Vec<String> {
    let mut blocks = Vec::new();
    if shown.everything() {
        blocks.push(totals(&facts.statistics, shown.has_period, width));
    }
    for by in shown.sections() {
        let chart = charts::chart(&facts.statistics, by);
        if !chart.rows.is_empty() || !shown.everything() {
            let mut lines = charts::section(chart, by, shown, width, paint);
            // The totals say it too.
            let covered = text::covered(facts.statistics.usage).filter(|_| !shown.everything());
            lines.extend(covered.filter(|_| by.has_cost()).map(|covered| paint.aside(&covered)));
            blocks.push(lines);
        }
    }
    if shown.everything() {
        blocks.push(places(facts, shown.home, width, paint));
    }
    blocks.join(&String::new())
}
