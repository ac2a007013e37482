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
    /// Whether several processes use the database at the same time. Then a small write does not update the index: this
    /// would take many times as long as the write while other processes search.
    const IS_SHARED: bool = false;

    /// The search index.
    fn index(&self) -> &IndexUpdater<RowSnapshots<Self::Connections>>;

    /// Removes data of deleted rows from the files of the database. May take as long as rewriting it, and may need the
    /// same space again. Fails if something remains.
    fn erase(&self) -> Result<()>;

    /// Compares the database's own indexes with its tables; returns a description of each difference. For databases that
    /// find rows by their indexes.
    fn check_tables(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Rebuilds the database's own indexes from its tables.
    fn rebuild_tables(&self) -> Result<()> {
        Ok(())
    }

    /// The nearest vectors by the database's own index, if it has one that can answer the query.
    fn nearest(&self, _: &VectorQuery) -> Result<Nearest> {
        Ok(Nearest::NotAsked)
    }
}

/// The answer of the database's own index to a vector query.
#[derive(Debug)]
pub enum Nearest {
    /// The nearest vectors.
    Found(Vec<VectorCandidate>),
    /// There is no such index, or it does not support the query.
    NotAsked,
    /// There should be one, but it cannot be used, for this reason.
    Unavailable(String),
}
