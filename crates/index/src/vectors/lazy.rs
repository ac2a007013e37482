//! A segment that is read on demand.

use std::{
    ops::Range,
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use super::segment::{SegmentEntry, Table};
use crate::{error::PartError, files::Stamp};

/// A segment of which only the used parts are in memory.
#[derive(Debug)]
pub(super) struct LazySegment {
    pub(super) entry: SegmentEntry,
    table: OnceLock<Table>,
    codes: OnceLock<Vec<u8>>,
    searched: AtomicBool,
}

impl LazySegment {
    /// Opens a segment. If the length or the times of its file have changed, checks its bytes.
    pub(super) fn open(folder: &Path, mut entry: SegmentEntry) -> Result<Self, PartError> {
        let path = folder.join(&entry.name);
        let stamp = Stamp::of(&path).map_err(|error| PartError::reading(&error, &path))?;
        if stamp != entry.stamp {
            Table::open(folder, &entry)?.stream_codes(&mut |_, _| {})?;
            entry.stamp = stamp;
        }
        let (table, codes) = (OnceLock::new(), OnceLock::new());
        Ok(Self { entry, table, codes, searched: AtomicBool::new(false) })
    }

    /// Reads the table, once.
    pub(super) fn prepare(&self, folder: &Path) -> Result<(), PartError> {
        if self.table.get().is_none() {
            let table = Table::open(folder, &self.entry)?;
            self.table.get_or_init(|| table);
        }
        Ok(())
    }

    /// The table, if it was read.
    pub(super) fn table(&self) -> Option<&Table> {
        self.table.get()
    }

    /// Calls `each` with the codes of these ranges of rows, in order, and their first row. A range may be split into
    /// several calls.
    ///
    /// The first search of a process reads the file and keeps nothing, because there may be no second search, and
    /// allocating memory costs several times as much as reading. The second search keeps the codes.
    pub(super) fn each_stretch(
        &self,
        stretches: &[Range<usize>],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), PartError> {
        let Some(table) = self.table().filter(|_| !stretches.is_empty()) else { return Ok(()) };
        let mut overlaps = |first: usize, codes: &[u8]| {
            let end = first + codes.len() / table.dimensions.max(1);
            for stretch in stretches {
                let rows = stretch.start.max(first)..stretch.end.min(end);
                let bytes = rows.start.saturating_sub(first) * table.dimensions
                    ..rows.end.saturating_sub(first) * table.dimensions;
                if let Some(codes) = codes.get(bytes).filter(|codes| !codes.is_empty()) {
                    each(rows.start, codes);
                }
            }
        };
        if self.codes.get().is_none() && !self.searched.swap(true, Ordering::Relaxed) {
            return table.stream_codes(&mut overlaps);
        }
        if self.codes.get().is_none() {
            // If two threads read them at the same time, one copy is dropped.
            let codes = table.read_codes()?;
            self.codes.get_or_init(|| codes);
        }
        overlaps(0, self.codes.get().map_or(&[], Vec::as_slice));
        Ok(())
    }
}
