//! Limits what is read for one answer, so that a reader that asks for everything can't use the memory of a server.

use std::fmt;

use super::store::StoreContext;
use crate::Result;

/// Counts the lines that are read for one answer: see
/// [`SessionStorage::with_read_meter`](super::SessionStorage::with_read_meter).
pub trait ReadMeter: fmt::Debug + Send + Sync {
    /// Counts lines of this size in bytes, which are in memory until the answer is sent.
    ///
    /// # Errors
    ///
    /// If they are too many. Reading fails with this error.
    fn count(&self, bytes: usize) -> Result<()>;

    /// The size in bytes at which a page of lines ends, whatever number of lines was requested. It has at least one line.
    fn page_bytes(&self) -> usize;
}

impl StoreContext {
    /// Counts lines that were read for an answer.
    ///
    /// # Errors
    ///
    /// Those of the meter.
    pub(super) fn count_read(&self, bytes: usize) -> Result<()> {
        self.read_meter.as_ref().map_or(Ok(()), |meter| meter.count(bytes))
    }

    /// The size in bytes at which a page of lines ends.
    pub(super) fn page_bytes(&self) -> usize {
        self.read_meter.as_ref().map_or(usize::MAX, |meter| meter.page_bytes())
    }
}
