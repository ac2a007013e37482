//! Pending rows of a session, and its counts after they are written.

use super::Extent;
use crate::backend::RowChange;

/// Pending rows of one kind, messages or events, of a session that is being ingested.
#[derive(Debug)]
pub(super) struct Pending<T> {
    stored: u32,
    next: u32,
    begun: bool,
    extent: Option<Extent>,
    rows: RowChange<T>,
    bytes: usize,
    touched: bool,
}

impl<T> Pending<T> {
    /// No pending rows, for a session with `stored` rows.
    pub(super) fn new(stored: u32) -> Self {
        Self {
            stored,
            next: 0,
            begun: false,
            extent: None,
            rows: RowChange::default(),
            bytes: 0,
            touched: false,
        }
    }

    /// Begins lines at the sequence `start`; `stored` rows were counted.
    pub(super) fn begin(&mut self, start: u32, stored: u32) {
        (self.next, self.stored, self.begun) = (start, stored, true);
    }

    /// Whether lines were begun.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// The sequence of the next line.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// The number of stored rows.
    pub(super) fn stored(&self) -> u32 {
        self.stored
    }

    /// Whether the next line is after all stored rows.
    pub(super) fn pass_over_stored(&mut self) {
        self.next = self.next.max(self.stored);
    }

    /// The next line is already stored.
    pub(super) fn leave(&mut self) {
        self.next += 1;
    }

    /// The next line must be written as `row`, with this size in bytes.
    pub(super) fn put(&mut self, row: T, bytes: usize) {
        self.next += 1;
        self.touched = true;
        self.bytes += bytes;
        self.rows.put.push(row);
    }

    /// There are no more lines.
    pub(super) fn end(&mut self, extent: Extent) {
        self.extent = Some(extent);
        if extent == Extent::Whole && self.next < self.stored {
            self.rows.truncate = Some(self.next);
            self.touched = true;
        }
    }

    /// Whether the lines are known to be complete.
    pub(super) fn is_whole(&self) -> bool {
        self.extent == Some(Extent::Whole)
    }

    /// Whether rows are pending.
    pub(super) fn has_changes(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Whether rows are pending or were written already.
    pub(super) fn touched(&self) -> bool {
        self.touched
    }

    /// The pending rows, in order of sequence.
    pub(super) fn waiting(&mut self) -> &mut [T] {
        &mut self.rows.put
    }

    /// The size of the pending rows in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the pending rows, to write them now.
    pub(super) fn take(&mut self) -> RowChange<T> {
        self.bytes = 0;
        std::mem::take(&mut self.rows)
    }

    /// The number of rows after all pending rows are written.
    pub(super) fn count(&self) -> u32 {
        match (self.begun, self.is_whole()) {
            (false, _) => self.stored,
            (true, true) => self.next,
            (true, false) => self.next.max(self.stored),
        }
    }
}
