//! The pages of a database file, read without SQLite.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
};

use amplifier_session_core::{Error, ErrorKind, Result};
use amplifier_session_sql::file::{beside, refused};

use super::{is_page_size, log::Log, number_at};
use crate::{peek::LOGS, schema::APPLICATION_ID};

/// The first bytes of a database.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// The page size of our files, if the header is unreadable.
const PAGE_SIZE: usize = 8192;

/// The pages of a file. Pages are counted from 1.
#[derive(Debug)]
pub(super) struct Pages {
    file: File,
    log: Option<Log>,
    page_size: usize,
    /// The bytes of a page that SQLite uses.
    usable: usize,
    /// The number of pages.
    count: u32,
    /// The first page of the list of free pages, if known.
    free: Option<u32>,
}

impl Pages {
    /// Opens a file with its log.
    ///
    /// # Errors
    ///
    /// `StorageConnection` if the file can't be opened, or if it is intact but not a store.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = |source: std::io::Error| {
            Error::new(ErrorKind::StorageConnection, format!("can't open the file: {source}"))
                .with("file", path.display())
                .with_source(source)
        };
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let log = Log::open(&beside(path, LOGS[0]));
        let mut pages = Self { file, log, page_size: PAGE_SIZE, usable: PAGE_SIZE, count: 1, free: None };
        let mut header = vec![0; 100];
        pages.read_at(0, &mut header).unwrap_or_default();
        let stated = number_at(&header, 16, 2).map(|size| if size == 1 { 65_536 } else { size as usize });
        let is_whole = header.starts_with(MAGIC);
        let of_log = pages.log.as_ref().map(|log| log.page_size);
        if let Some(size) = of_log.or(stated.filter(|size| is_whole && is_page_size(*size))) {
            pages.page_size = size;
        }
        pages.usable = pages.page_size;
        pages.count = u32::try_from(length / pages.page_size as u64).unwrap_or(u32::MAX);
        let in_log = pages.log.as_ref().and_then(|log| log.pages.keys().max().copied());
        pages.count = pages.count.max(in_log.unwrap_or(0));
        // The log may contain a newer header.
        let first = pages.page(1).unwrap_or_default();
        if first.starts_with(MAGIC) {
            let application = number_at(&first, 68, 4).map(u32::cast_signed);
            if application != Some(APPLICATION_ID) {
                return Err(refused(path, "is not a store of this program"));
            }
            let reserved = first.get(20).copied().map_or(0, usize::from);
            pages.usable = pages.page_size.saturating_sub(reserved);
            pages.free = number_at(&first, 32, 4);
        }
        Ok(pages)
    }

    /// The number of pages.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The bytes of a page that SQLite uses.
    pub(super) fn usable(&self) -> usize {
        self.usable
    }

    /// The first page of the list of free pages, if known and not empty.
    pub(super) fn free(&self) -> Option<u32> {
        self.free.filter(|page| *page > 0)
    }

    /// A page; `None` if there is no page with this number, or it can't be read.
    pub(super) fn page(&self, number: u32) -> Option<Vec<u8>> {
        let mut page = vec![0; self.page_size];
        if let Some((log, at)) = self.log.as_ref().and_then(|log| Some((log, log.pages.get(&number)?))) {
            read_at(&log.file, *at, &mut page)?;
            return Some(page);
        }
        let before = u64::from(number.checked_sub(1)?);
        self.read_at(before * self.page_size as u64, &mut page)?;
        Some(page)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Option<()> {
        read_at(&self.file, at, into)
    }
}

fn read_at(mut file: &File, at: u64, into: &mut [u8]) -> Option<()> {
    file.seek(SeekFrom::Start(at)).ok()?;
    file.read_exact(into).ok()
}
