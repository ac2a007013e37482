//! A segment that is read on demand.

use std::{
    ops::Range,
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use super::segment::{SegmentEntry, SegmentTable, row_of};
use crate::{error::PartError, files::FileStamp};

/// A segment of which only the used parts are in memory.
#[derive(Debug)]
pub(super) struct LazySegment {
    pub(super) entry: SegmentEntry,
    table: OnceLock<SegmentTable>,
    coarse: OnceLock<Vec<u8>>,
    fine: OnceLock<Vec<u8>>,
    searched: AtomicBool,
}

impl LazySegment {
    /// Opens a segment. If the length or the times of its file have changed, checks its bytes.
    pub(super) fn open(folder: &Path, mut entry: SegmentEntry) -> Result<Self, PartError> {
        let path = folder.join(&entry.name);
        let stamp = FileStamp::of(&path).map_err(|error| PartError::reading(&error, &path))?;
        if stamp != entry.stamp {
            SegmentTable::open(folder, &entry)?.check_codes()?;
            entry.stamp = stamp;
        }
        let (coarse, fine) = (OnceLock::new(), OnceLock::new());
        Ok(Self { entry, table: OnceLock::new(), coarse, fine, searched: AtomicBool::new(false) })
    }

    /// Reads the table, once.
    pub(super) fn prepare(&self, folder: &Path) -> Result<(), PartError> {
        if self.table.get().is_none() {
            let table = SegmentTable::open(folder, &self.entry)?;
            self.table.get_or_init(|| table);
        }
        Ok(())
    }

    /// The table, if it was read.
    pub(super) fn table(&self) -> Option<&SegmentTable> {
        self.table.get()
    }

    /// Calls `each` with the coarse codes of these ranges of rows, in order, and their first row. A range may be split
    /// into several calls.
    ///
    /// The first search of a process reads the file and keeps nothing, because there may be no second search, and
    /// allocating memory costs several times as much as reading. Later searches keep the codes.
    pub(super) fn each_stretch(
        &self,
        stretches: &[Range<usize>],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), PartError> {
        let Some(table) = self.table().filter(|_| !stretches.is_empty()) else { return Ok(()) };
        let mut overlaps = |first: usize, codes: &[u8]| {
            let end = first + codes.len() / table.bytes_per_row.max(1);
            for stretch in stretches {
                let rows = stretch.start.max(first)..stretch.end.min(end);
                let bytes = rows.start.saturating_sub(first) * table.bytes_per_row
                    ..rows.end.saturating_sub(first) * table.bytes_per_row;
                if let Some(codes) = codes.get(bytes).filter(|codes| !codes.is_empty()) {
                    each(rows.start, codes);
                }
            }
        };
        if !self.searched.swap(true, Ordering::Relaxed) {
            return table.stream_coarse(&mut overlaps);
        }
        overlaps(0, read_once(&self.coarse, || table.read_coarse())?);
        Ok(())
    }

    /// Appends the fine codes of these rows, which ascend. The first search of a process reads only them, and later ones
    /// keep all.
    pub(super) fn fine_codes(&self, rows: &[usize], fine: &mut Vec<u8>) -> Result<(), PartError> {
        let Some(table) = self.table() else { return Ok(()) };
        if self.coarse.get().is_none() {
            return table.read_fine_of(rows, fine);
        }
        let codes = read_once(&self.fine, || table.read_fine())?;
        rows.iter().for_each(|row| fine.extend_from_slice(row_of(codes, *row, table.bytes_per_row)));
        Ok(())
    }
}

/// Reads into the cell if it is empty. If two threads read at the same time, one copy is dropped.
fn read_once(
    cell: &OnceLock<Vec<u8>>,
    read: impl FnOnce() -> Result<Vec<u8>, PartError>,
) -> Result<&[u8], PartError> {
    if cell.get().is_none() {
        let codes = read()?;
        cell.get_or_init(|| codes);
    }
    Ok(cell.get().map_or(&[], Vec::as_slice))
}
