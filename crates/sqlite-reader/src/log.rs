//! The write-ahead log: newer versions of pages.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

use super::{is_page_size, number_at};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The first four bytes; in the second form, checksums are of big-endian words.
const MAGIC: [u32; 2] = [0x377f_0682, 0x377f_0683];

/// A write-ahead log.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) file: File,
    pub(super) page_size: usize,
    /// The position in the file of the last committed version of each page.
    pub(super) pages: HashMap<u32, u64>,
    /// The position after the last committed page.
    end: u64,
}

/// The length of the part of a log that was committed; `None` if the file is missing, empty or not a log.
#[must_use]
pub fn committed_length(path: &Path) -> Option<u64> {
    Log::open(path).map(|log| log.end)
}

impl Log {
    /// The log in this file; `None` if it is missing, empty or not a log. Ends before the first broken frame, as SQLite
    /// does.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let mut reader = BufReader::new(file.try_clone().ok()?);
        let mut header = [0; HEADER];
        reader.read_exact(&mut header).ok()?;
        let magic = number_at(&header, 0, 4)?;
        let page_size = number_at(&header, 8, 4)? as usize;
        if !MAGIC.contains(&magic) || !is_page_size(page_size) {
            return None;
        }
        let mut log = Self { file, page_size, pages: HashMap::new(), end: HEADER as u64 };
        let mut checksum = LogChecksum { is_big_endian: magic == MAGIC[1], sums: (0, 0) };
        checksum.add(header.get(..24)?);
        if checksum.sums == (number_at(&header, 24, 4)?, number_at(&header, 28, 4)?) {
            // The frames before an error are read.
            let _ = log.read_frames(&mut reader, header.get(16..24)?, checksum);
        }
        Some(log)
    }

    fn read_frames(
        &mut self,
        reader: &mut impl Read,
        salt: &[u8],
        mut checksum: LogChecksum,
    ) -> io::Result<()> {
        let mut frame = vec![0; FRAME_HEADER + self.page_size];
        let mut at = HEADER as u64;
        let mut uncommitted = Vec::new();
        loop {
            reader.read_exact(&mut frame)?;
            let (head, page) = frame.split_at(FRAME_HEADER);
            checksum.add(head.get(..8).unwrap_or_default());
            checksum.add(page);
            let field = |at| number_at(head, at, 4).unwrap_or_default();
            if head.get(8..16) != Some(salt) || checksum.sums != (field(16), field(20)) {
                return Ok(());
            }
            uncommitted.push((field(0), at + FRAME_HEADER as u64));
            at += frame.len() as u64;
            if field(4) > 0 {
                self.pages.extend(uncommitted.drain(..));
                self.end = at;
            }
        }
    }
}

/// The checksum of the log so far.
struct LogChecksum {
    is_big_endian: bool,
    sums: (u32, u32),
}

impl LogChecksum {
    fn add(&mut self, bytes: &[u8]) {
        let (pairs, _) = bytes.as_chunks::<8>();
        for [a, b, c, d, e, f, g, h] in pairs {
            let word = |bytes| {
                if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
            };
            let (first, second) = (word([*a, *b, *c, *d]), word([*e, *f, *g, *h]));
            self.sums.0 = self.sums.0.wrapping_add(first).wrapping_add(self.sums.1);
            self.sums.1 = self.sums.1.wrapping_add(second).wrapping_add(self.sums.0);
        }
    }
}
