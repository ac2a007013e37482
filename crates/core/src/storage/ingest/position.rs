//! The lines of a session compared with its stored rows: which of them change.

use super::{Extent, kept::KeptRows};
use crate::model::Digest;

/// The position among the stored rows of one kind, messages or events, of a session that is being ingested.
#[derive(Debug)]
pub(super) struct RowPosition {
    stored: u32,
    next: u32,
    begun: bool,
    extent: Option<Extent>,
    /// The first row that was written or removed, if any.
    touched: Option<u32>,
    /// The digests of the stored rows from `first` on.
    digests: Vec<Digest>,
    first: u32,
    /// The digests of the last stored rows, with which lines are not compared.
    hidden: Vec<Digest>,
    /// The stored rows after a damaged part of the file.
    kept: Option<KeptRows>,
    /// Whether there may be more stored rows than are known.
    has_unknown_rows: bool,
}

impl RowPosition {
    /// The beginning of a session with `stored` rows.
    pub(super) fn new(stored: u32) -> Self {
        Self {
            stored,
            next: 0,
            begun: false,
            extent: None,
            touched: None,
            digests: Vec::new(),
            hidden: Vec::new(),
            first: 0,
            kept: None,
            has_unknown_rows: false,
        }
    }

    /// Removes all rows after the last line, even if none is known.
    pub(super) fn expect_unknown_rows(&mut self) {
        self.has_unknown_rows = true;
    }

    /// Begins lines at the sequence `start`; `digests` are those of the stored rows from there on. Returns the number of
    /// stored rows.
    pub(super) fn begin(&mut self, start: u32, digests: Vec<Digest>) -> u32 {
        (self.next, self.stored, self.begun) = (start, start + digests.len() as u32, true);
        (self.first, self.digests, self.kept) = (start, digests, None);
        self.hidden = Vec::new();
        self.stored
    }

    /// Does not compare lines with the stored rows from this one on: they are replaced.
    pub(super) fn hide(&mut self, row: u32) {
        let shown = (row.saturating_sub(self.first) as usize).min(self.digests.len());
        self.hidden = self.digests.split_off(shown);
        self.stored = self.first + self.digests.len() as u32;
    }

    /// Compares the next lines with all stored rows again.
    pub(super) fn show_hidden(&mut self) {
        self.digests.append(&mut self.hidden);
        self.stored = self.first + self.digests.len() as u32;
    }

    /// Whether lines were begun.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// The sequence of the next line.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// The digests of the stored rows from the next line on.
    pub(super) fn following(&self) -> &[Digest] {
        self.digests.get((self.next - self.first) as usize..).unwrap_or_default()
    }

    /// The digests of the stored rows before the next line.
    pub(super) fn preceding(&self) -> &[Digest] {
        self.digests.get(..(self.next - self.first) as usize).unwrap_or(&self.digests)
    }

    /// Whether the next line differs from the stored row with its sequence.
    pub(super) fn differs(&self, line: impl FnOnce() -> Digest) -> bool {
        // Most lines are new: they need no digest here.
        !self.following().is_empty() && self.replaces_stored(line())
    }

    /// Whether the next line is already stored under its sequence.
    pub(super) fn is_stored(&self, line: Digest) -> bool {
        self.following().first() == Some(&line)
    }

    /// Keeps all stored rows after the last line read. Returns `false` if there are none or they are already kept.
    pub(super) fn keep_stored(&mut self) -> bool {
        if self.kept.is_some() || self.following().is_empty() {
            return false;
        }
        self.kept = Some(KeptRows::new(self.next, self.following().iter().copied()));
        self.next = self.stored;
        true
    }

    /// Whether a line is one of the kept rows after those found before.
    pub(super) fn finds(&mut self, line: Digest) -> bool {
        self.kept.as_mut().is_some_and(|kept| kept.finds(line))
    }

    /// The number of stored rows that the lines do not contain.
    pub(super) fn missing(&self) -> u32 {
        let not_reached = || self.stored.saturating_sub(self.next);
        self.kept.as_ref().map_or_else(not_reached, KeptRows::missing)
    }

    /// Whether the line would replace a stored row that is not the last one.
    pub(super) fn cuts_off(&self, line: Digest) -> bool {
        self.next + 1 < self.stored && self.replaces_stored(line)
    }

    fn replaces_stored(&self, line: Digest) -> bool {
        self.kept.is_none() && !self.following().is_empty() && !self.is_stored(line)
    }

    /// Records that the next line is already stored.
    pub(super) fn leave(&mut self) {
        self.next += 1;
    }

    /// Records that the next line must be written, and returns its sequence.
    pub(super) fn put(&mut self) -> u32 {
        self.touch(self.next);
        self.next += 1;
        self.next - 1
    }

    /// Records that there are no more lines. Returns the number of rows to keep if others are to be removed.
    pub(super) fn end(&mut self, extent: Extent) -> Option<u32> {
        self.extent = Some(extent);
        let is_longer = self.next < self.stored;
        if extent == Extent::Whole && is_longer {
            self.touch(self.next);
        }
        (extent == Extent::Whole && (is_longer || self.has_unknown_rows)).then_some(self.next)
    }

    fn touch(&mut self, sequence: u32) {
        self.touched = Some(self.touched.map_or(sequence, |first| first.min(sequence)));
    }

    /// Keeps only the first `count` rows.
    pub(super) fn cut(&mut self, count: u32) {
        (self.next, self.begun) = (count, true);
        self.touch(count);
        self.extent = Some(Extent::Whole);
    }

    /// Whether the lines are known to be complete.
    pub(super) fn is_whole(&self) -> bool {
        self.extent == Some(Extent::Whole)
    }

    /// Whether rows are pending or were written already.
    pub(super) fn touched(&self) -> bool {
        self.touched.is_some()
    }

    /// Whether only rows from `sequence` on are pending or were written.
    pub(super) fn is_untouched_before(&self, sequence: u32) -> bool {
        self.touched.is_none_or(|first| first >= sequence)
    }
}
