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

    /// The size of a page of lines in bytes, whatever number of lines was requested. A longer line is a page of its own.
    fn page_bytes(&self) -> usize;
}

/// How many rows of these sizes fit into `most` bytes after `taken` bytes, to which it adds theirs. The first row always
/// fits.
pub(super) fn fitting(sizes: impl Iterator<Item = usize>, taken: &mut usize, most: usize) -> usize {
    let fit = sizes.take_while(|size| {
        let bytes = taken.saturating_add(*size);
        let fits = *taken == 0 || bytes <= most;
        if fits {
            *taken = bytes;
        }
        fits
    });
    fit.count()
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

    /// The size of a page of lines in bytes.
    pub(super) fn page_bytes(&self) -> usize {
        self.read_meter.as_ref().map_or(usize::MAX, |meter| meter.page_bytes())
    }
}
