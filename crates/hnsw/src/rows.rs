//! What the index reads of the store.

use amplifier_session_core::{Result, backend::meta::Generation, model::UserId};
use amplifier_session_index::RowRefs;
use duckdb::arrow::record_batch::RecordBatch;

/// The rows of a store, as one read transaction sees them.
pub trait VectorRows {
    /// The rows as the search index reads them.
    fn index(&mut self) -> &mut dyn RowRefs;

    /// The generation that is searched, if there are vectors.
    ///
    /// # Errors
    ///
    /// Those of the database, as in all methods.
    fn current_generation(&self) -> Result<Option<Generation>>;

    /// Whether every session is this user's.
    ///
    /// # Errors
    ///
    /// Those of the database.
    fn are_all_of(&self, user: &UserId) -> Result<bool>;

    /// The highest key of a vector of the current generation; 0 if there are no vectors.
    ///
    /// # Errors
    ///
    /// Those of the database.
    fn last_vector_key(&self) -> Result<i64>;

    /// Calls `each` with the vectors of the current generation above a key, in the order of their keys, in batches with the
    /// columns `key` and `vector`.
    ///
    /// # Errors
    ///
    /// Those of the database, and of `each`.
    fn vectors_above(&self, key: i64, each: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()>;
}
