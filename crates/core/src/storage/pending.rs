//! Rows that wait to be written, and the count of their session once they are.

use super::Extent;
use crate::backend::RowChange;

/// Rows of one kind, messages or events, of a session that is being taken in.
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
    /// Nothing yet, of a session that has `stored` rows.
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

    /// Lines come from the sequence `start` on; `stored` rows were counted.
    pub(super) fn begin(&mut self, start: u32, stored: u32) {
        (self.next, self.stored, self.begun) = (start, stored, true);
    }

    /// Whether lines come at all.
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

    /// The next line comes after all that is stored.
    pub(super) fn pass_over_stored(&mut self) {
        self.next = self.next.max(self.stored);
    }

    /// The next line is there already, as it is.
    pub(super) fn leave(&mut self) {
        self.next += 1;
    }

    /// The next line is to be written, as `row`, which has `bytes`.
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

    /// Whether the lines that came are known to be all there are.
    pub(super) fn is_whole(&self) -> bool {
        self.extent == Some(Extent::Whole)
    }

    /// Whether there is something to write.
    pub(super) fn has_changes(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Whether something is to be written, or was already.
    pub(super) fn touched(&self) -> bool {
        self.touched
    }

    /// The rows that wait, in order of sequence.
    pub(super) fn waiting(&mut self) -> &mut [T] {
        &mut self.rows.put
    }

    /// How much is waiting.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What is waiting, to be written now.
    pub(super) fn take(&mut self) -> RowChange<T> {
        self.bytes = 0;
        std::mem::take(&mut self.rows)
    }

    /// The number of rows once all that came is written.
    pub(super) fn count(&self) -> u32 {
        match (self.begun, self.is_whole()) {
            (false, _) => self.stored,
            (true, true) => self.next,
            (true, false) => self.next.max(self.stored),
        }
    }
}
