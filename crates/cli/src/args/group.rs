//! `--group`: how results are grouped.

use clap::ValueEnum;

use crate::out::Out;

/// How to group the results of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupArg {
    Session,
    None,
}

impl GroupArg {
    /// Whether to group by session: the typed choice, or else only on a terminal. JSON and lines keep their shape.
    pub(crate) fn by_session(typed: Option<Self>, out: &Out) -> bool {
        typed.map_or(out.is_terminal() && !out.is_json(), |group| group == Self::Session)
    }
}
