//! Pages of lines that end before the number that was requested, if the lines are long and their reader is limited.

use std::sync::Arc;

use amplifier_session_core::storage::ReadMeter;

use crate::{Api, ApiError};

/// The lines of a page that are read one by one.
#[derive(Debug)]
pub(crate) struct GrowingPage<'a> {
    meter: Option<&'a Arc<dyn ReadMeter>>,
    bytes: usize,
}

impl Api<'_> {
    /// An empty page.
    pub(crate) fn page(&self) -> GrowingPage<'_> {
        GrowingPage { meter: self.storage.read_meter(), bytes: 0 }
    }
}

impl GrowingPage<'_> {
    /// Adds a line of this size that the storage has not counted.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.add_counted(bytes);
        Ok(self.meter.map_or(Ok(()), |meter| meter.count(bytes))?)
    }

    /// Adds a line of this size that the storage has counted.
    pub(crate) fn add_counted(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Whether a line of this size is also in the page. The first one always is.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let most = self.meter.map_or(usize::MAX, |meter| meter.page_bytes());
        self.bytes == 0 || self.bytes.saturating_add(bytes) <= most
    }
}
