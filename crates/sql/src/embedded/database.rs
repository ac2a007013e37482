//! The trait that an embedded database implements. Every call blocks.

use amplifier_session_core::{
    Result,
    backend::{VectorCandidate, VectorQuery},
};
use amplifier_session_index::IndexUpdater;

use super::rows::RowSnapshots;
use crate::backend::Database;

/// An embedded database with a search index beside it.
pub trait EmbeddedDatabase: Database {
    /// The search index.
    fn index(&self) -> &IndexUpdater<RowSnapshots<Self::Connections>>;

    /// Removes what deleted rows have left in the files of the database. May take as long as rewriting it, and may need as
    /// much space again. Fails if something is left.
    fn erase(&self) -> Result<()>;

    /// The nearest vectors by an index of the database's own, if it has one that can answer the query.
    fn nearest(&self, _: &VectorQuery) -> Result<Nearest> {
        Ok(Nearest::NotAsked)
    }
}

/// The answer of an index of the database's own to a vector query.
#[derive(Debug)]
pub enum Nearest {
    /// These are the nearest.
    Found(Vec<VectorCandidate>),
    /// There is no such index, or the query is not for it.
    NotAsked,
    /// There should be one, but it cannot be used, for this reason.
    Unavailable(String),
}
