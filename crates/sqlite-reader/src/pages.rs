//! The pages of a database file, read without SQLite.

use std::{
    cell::RefCell,
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use super::{is_page_size, log::Log, number_at};

/// The first bytes of a database.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// A database file with its write-ahead log. Pages are counted from 1.
#[derive(Debug)]
pub struct PageFile {
    file: File,
    log: Option<Log>,
    page_size: usize,
    /// The bytes of a page that SQLite uses.
    usable: usize,
    /// The number of pages.
    count: u32,
    /// The first page of the list of free pages, if known.
    free: Option<u32>,
    application_id: Option<i32>,
    /// The last page from which a row was read: consecutive rows are often on the same page.
    pub(super) last: RefCell<Option<(u32, Vec<u8>)>>,
}

/// The position of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPlace {
    /// The number of its page.
    pub page: u32,
    /// The number of its cell.
    pub cell: u16,
    /// Whether its page was found through the pages above it. Otherwise, it may be an earlier version of the row.
    pub is_linked: bool,
}

impl PageFile {
    /// Opens a file with its log. `page_size` is used if the header can't be read.
    ///
    /// # Errors
    ///
    /// If the file can't be opened. A file with any content can be.
    pub fn open(path: &Path, page_size: usize) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut log_path = path.as_os_str().to_owned();
        log_path.push("-wal");
        let mut pages = Self {
            file,
            log: Log::open(&PathBuf::from(log_path)),
            page_size,
            usable: page_size,
            count: 1,
            free: None,
            application_id: None,
            last: RefCell::default(),
        };
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
            let reserved = first.get(20).copied().map_or(0, usize::from);
            pages.usable = pages.page_size.saturating_sub(reserved);
            pages.free = number_at(&first, 32, 4);
            pages.application_id = number_at(&first, 68, 4).map(u32::cast_signed);
        }
        Ok(pages)
    }

    /// The `application_id` in the header; `None` if the header can't be read.
    #[must_use]
    pub fn application_id(&self) -> Option<i32> {
        self.application_id
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
