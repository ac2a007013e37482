//! Charts as SVG, for files and pages.

mod bars;
mod page;
mod statistics;
mod timeline;

pub use statistics::statistics;
pub use timeline::{summary, timeline};
