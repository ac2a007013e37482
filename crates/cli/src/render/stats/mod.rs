//! Statistics: charts for people, lines for a pipe.

mod charts;
mod svg;
mod tabbed;
mod text;
mod time;

use std::path::Path;

use amplifier_session_storage::{
    backend::StorePlace,
    model::EmbeddingSpace,
    storage::{DamagedRow, Statistics},
};
use serde::Serialize;
pub(crate) use svg::svg;
pub(crate) use tabbed::tabbed;
use text::{places, totals};
pub(crate) use time::Unit;

use crate::{args::By, paint::Paint};

/// Everything there is to tell. As JSON it is one object.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    #[serde(flatten)]
    pub(crate) statistics: Statistics,
    /// Where store and index lie.
    pub(crate) places: Vec<StorePlace>,
    pub(crate) vectors: Vectors,
    /// Sessions that can't be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) damaged: Vec<DamagedRow>,
}

/// The vectors of the store.
#[derive(Debug, Serialize)]
pub(crate) struct Vectors {
    /// What made them; `None` when there are none.
    pub(crate) space: Option<EmbeddingSpace>,
    /// Messages that owe theirs; `None` when the sessions of more than one user are looked at.
    pub(crate) owing_messages: Option<usize>,
    /// Whether there are more of these than were counted.
    pub(crate) owing_more: bool,
}

/// What is to be shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'a> {
    /// Only these charts; everything when empty.
    pub(crate) by: &'a [By],
    /// All rows of each.
    pub(crate) all: bool,
    /// Whether a period was named.
    pub(crate) has_period: bool,
    /// The folder that `~` stands for.
    pub(crate) home: Option<&'a Path>,
}

impl Shown<'_> {
    fn everything(&self) -> bool {
        self.by.is_empty()
    }

    /// The charts that are to be shown, in their order.
    fn sections(&self) -> impl Iterator<Item = By> {
        By::ALL.into_iter().filter(|by| match self.everything() {
            true => by.is_usual(),
            false => self.by.contains(by),
        })
    }
}

/// Totals, charts and places; or only the charts that were asked for.
pub(crate) fn blocks(facts: &Facts, shown: Shown<'_>, width: usize, paint: Paint) -> Vec<String> {
    let mut blocks = Vec::new();
    if shown.everything() {
        blocks.push(totals(&facts.statistics, shown.has_period, width));
    }
    for by in shown.sections() {
        let chart = charts::chart(&facts.statistics, by);
        if !chart.rows.is_empty() || !shown.everything() {
            blocks.push(charts::section(chart, by, shown, width, paint));
        }
    }
    if shown.everything() {
        blocks.push(places(facts, shown.home, width, paint));
    }
    blocks.join(&String::new())
}
