//! Segment files: immutable files with vectors of many messages, sorted by session.
//!
//! A file has a header, a table, the coarse codes and the fine codes. The table contains the sessions (sorted by user
//! and session id, each with its key and its number of rows), then one array per field: key, time, scale of coarse codes,
//! of fine codes, content type, role; then a checksum for the fine codes of every 16 rows. The codes follow in the same
//! order. All numbers are little-endian. The header contains checksums of the table and of the coarse codes. Its own is
//! in the manifest.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::{Path, PathBuf},
};

use amplifier_session_core::KnownPart;
use amplifier_session_core::model::{ContentType, Role, Timestamp};
use serde::{Deserialize, Serialize};

use super::codes::{Scales, bytes_per_row};
use crate::{
    error::PartError,
    files::{FileStamp, replace_file},
    rows::{RowSession, VectorRow},
};

const MAGIC: [u8; 8] = *b"ASVECTOR";
const HEADER_BYTES: usize = 40;

/// The number of rows whose fine codes share a checksum. They are always read together.
const ROWS_CHECKED_TOGETHER: usize = 16;

/// The common properties of all vectors of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct SegmentKind {
    pub(super) generation: u32,
    pub(super) dimensions: usize,
}

impl SegmentKind {
    pub(super) fn of(row: &VectorRow<'_>) -> Self {
        Self { generation: row.generation, dimensions: row.vector.len() }
    }
}

/// A segment in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SegmentEntry {
    pub(super) name: String,
    pub(super) rows: u64,
    #[serde(flatten)]
    pub(super) kind: SegmentKind,
    /// The smallest and the largest key.
    pub(super) keys: (u64, u64),
    /// The checksum of the header, which contains the checksums of everything else.
    header: u32,
    /// The length and the times of the file.
    pub(super) stamp: FileStamp,
}

impl SegmentEntry {
    /// The size of all codes in bytes, which is used as the size of the segment.
    pub(super) fn code_bytes(&self) -> u64 {
        // Saturating, because a damaged manifest may have any numbers.
        self.rows.saturating_mul(2).saturating_mul(bytes_per_row(self.kind.dimensions) as u64)
    }
}

/// The table of a segment in memory. All arrays have one element per row.
#[derive(Debug)]
pub(super) struct SegmentTable {
    path: PathBuf,
    header: Header,
    /// The bytes of coarse codes of a row, and also of its fine codes.
    pub(super) bytes_per_row: usize,
    pub(super) sessions: Vec<(RowSession, Range<usize>)>,
    pub(super) keys: Vec<u64>,
    times: Vec<i64>,
    pub(super) coarse_scales: Vec<f32>,
    pub(super) fine_scales: Vec<f32>,
    content_types: Vec<u8>,
    roles: Vec<u8>,
    fine_checksums: Vec<u32>,
}

/// One row of a segment, without its codes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SegmentRow {
    pub(super) key: u64,
    pub(super) ts: Timestamp,
    pub(super) content_type: ContentType,
    pub(super) role: Role,
    pub(super) scales: Scales,
}

impl SegmentTable {
    /// Reads the table of a segment, and checks its checksum before anything is used.
    pub(super) fn open(folder: &Path, entry: &SegmentEntry) -> Result<Self, PartError> {
        let path = folder.join(&entry.name);
        let mut file = File::open(&path).map_err(|error| PartError::reading(&error, &path))?;
        let damaged = |what: &str| PartError::damaged(&path, what);
        let header = read_header(&mut file, entry)
            .ok_or_else(|| damaged("the checksum of its header does not match"))?;
        let mut table = vec![0; header.table_bytes as usize];
        file.read_exact(&mut table)
            .ok()
            .filter(|()| crc32fast::hash(&table) == header.table_checksum)
            .and_then(|()| Self::parse(&path, header, &table, entry))
            .ok_or_else(|| damaged("the checksum of its table does not match"))
    }

    fn parse(path: &Path, header: Header, table: &[u8], entry: &SegmentEntry) -> Option<Self> {
        let rows = usize::try_from(entry.rows).ok()?;
        let mut reader = ByteReader { bytes: table };
        let mut start = 0;
        let mut sessions = Vec::new();
        for _ in 0..reader.u32()? {
            let (user, session, project) = (reader.text()?, reader.text()?, reader.text()?);
            let key = reader.u64()?;
            let end = start + usize::try_from(reader.u32()?).ok()?;
            sessions.push((RowSession { user, session, project, key }, start..end));
            start = end;
        }
        let table = Self {
            path: path.to_owned(),
            header,
            bytes_per_row: bytes_per_row(entry.kind.dimensions),
            sessions,
            keys: reader.array(rows, u64::from_le_bytes)?,
            times: reader.array(rows, i64::from_le_bytes)?,
            coarse_scales: reader.array(rows, f32::from_le_bytes)?,
            fine_scales: reader.array(rows, f32::from_le_bytes)?,
            content_types: reader.take(rows)?.to_vec(),
            roles: reader.take(rows)?.to_vec(),
            fine_checksums: reader.array(rows.div_ceil(ROWS_CHECKED_TOGETHER), u32::from_le_bytes)?,
        };
        (start == rows && reader.bytes.is_empty()).then_some(table)
    }

    /// The fields of a row.
    pub(super) fn row(&self, row: usize) -> Option<SegmentRow> {
        Some(SegmentRow {
            key: *self.keys.get(row)?,
            ts: Timestamp::from_micros(*self.times.get(row)?),
            content_type: ContentType::from_code(*self.content_types.get(row)?)?,
            role: Role::ALL.get(usize::from(*self.roles.get(row)?)).copied()?,
            scales: Scales { coarse: *self.coarse_scales.get(row)?, fine: *self.fine_scales.get(row)? },
        })
    }

    /// Reads all coarse codes in chunks of complete rows, and calls `each` with the first row of each chunk and its
    /// codes. The checksum is checked only at the end.
    pub(super) fn stream_coarse(&self, each: &mut dyn FnMut(usize, &[u8])) -> Result<(), PartError> {
        /// Chunks that fit into the processor's cache.
        const PIECE: usize = 256 << 10;
        let mut file = self.open_at(0)?;
        let rows_in_piece = (PIECE / self.bytes_per_row.max(1)).max(1);
        let mut piece = vec![0; rows_in_piece.min(self.keys.len()) * self.bytes_per_row];
        let mut checksum = crc32fast::Hasher::new();
        for first in (0..self.keys.len()).step_by(rows_in_piece) {
            let rows = rows_in_piece.min(self.keys.len() - first);
            piece.truncate(rows * self.bytes_per_row);
            file.read_exact(&mut piece).map_err(|error| self.reading(&error))?;
            checksum.update(&piece);
            each(first, &piece);
        }
        self.check(checksum.finalize() == self.header.coarse_checksum)
    }

    /// Reads all coarse codes into memory.
    pub(super) fn read_coarse(&self) -> Result<Vec<u8>, PartError> {
        let mut codes = Vec::with_capacity(self.keys.len() * self.bytes_per_row);
        self.stream_coarse(&mut |_, piece| codes.extend_from_slice(piece))?;
        Ok(codes)
    }

    /// Reads all fine codes into memory.
    pub(super) fn read_fine(&self) -> Result<Vec<u8>, PartError> {
        let bytes = self.keys.len() * self.bytes_per_row;
        let mut codes = vec![0; bytes];
        self.open_at(bytes)?.read_exact(&mut codes).map_err(|error| self.reading(&error))?;
        let parts = codes.chunks((ROWS_CHECKED_TOGETHER * self.bytes_per_row).max(1));
        let intact =
            parts.zip(&self.fine_checksums).all(|(part, checksum)| crc32fast::hash(part) == *checksum);
        self.check(intact).map(|()| codes)
    }

    /// Checks the checksums of all codes.
    pub(super) fn check_codes(&self) -> Result<(), PartError> {
        self.stream_coarse(&mut |_, _| {})?;
        self.read_fine().map(drop)
    }

    /// Appends the fine codes of these rows, which ascend. Reads only them and the rows that are checked with them.
    pub(super) fn read_fine_of(&self, rows: &[usize], fine: &mut Vec<u8>) -> Result<(), PartError> {
        let all = self.keys.len() * self.bytes_per_row;
        let mut file = self.open_at(all)?;
        let mut codes = Vec::new();
        let part = |row: &usize| row / ROWS_CHECKED_TOGETHER;
        for wanted in rows.chunk_by(|a, b| part(a) == part(b)) {
            let Some(part) = wanted.first().map(part) else { continue };
            let start = part * ROWS_CHECKED_TOGETHER;
            let count = ROWS_CHECKED_TOGETHER.min(self.keys.len().saturating_sub(start));
            codes.resize(count * self.bytes_per_row, 0);
            self.seek(&mut file, all + start * self.bytes_per_row)?;
            file.read_exact(&mut codes).map_err(|error| self.reading(&error))?;
            self.check(self.fine_checksums.get(part) == Some(&crc32fast::hash(&codes)))?;
            wanted
                .iter()
                .for_each(|row| fine.extend_from_slice(row_of(&codes, row - start, self.bytes_per_row)));
        }
        Ok(())
    }

    /// The file, from this byte of the codes on.
    fn open_at(&self, byte: usize) -> Result<File, PartError> {
        let mut file = File::open(&self.path).map_err(|error| self.reading(&error))?;
        self.seek(&mut file, byte)?;
        Ok(file)
    }

    fn seek(&self, file: &mut File, byte: usize) -> Result<(), PartError> {
        let place = SeekFrom::Start(HEADER_BYTES as u64 + self.header.table_bytes + byte as u64);
        file.seek(place).map(drop).map_err(|error| self.reading(&error))
    }

    fn reading(&self, error: &io::Error) -> PartError {
        PartError::reading(error, &self.path)
    }

    fn check(&self, intact: bool) -> Result<(), PartError> {
        let damaged = || PartError::damaged(&self.path, "the checksum of its codes does not match");
        if intact { Ok(()) } else { Err(damaged()) }
    }
}

/// The bytes of a row among those of several rows.
pub(super) fn row_of(codes: &[u8], row: usize, bytes_per_row: usize) -> &[u8] {
    codes.part(row * bytes_per_row..(row + 1) * bytes_per_row)
}

#[derive(Debug)]
struct Header {
    table_bytes: u64,
    table_checksum: u32,
    coarse_checksum: u32,
}

fn write_header(entry: &SegmentEntry, header: &Header) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(entry.rows.to_le_bytes());
    bytes.extend((entry.kind.dimensions as u64).to_le_bytes());
    bytes.extend(header.table_bytes.to_le_bytes());
    bytes.extend(header.table_checksum.to_le_bytes());
    bytes.extend(header.coarse_checksum.to_le_bytes());
    bytes
}

fn read_header(file: &mut File, entry: &SegmentEntry) -> Option<Header> {
    let mut bytes = [0; HEADER_BYTES];
    file.read_exact(&mut bytes).ok()?;
    let mut reader = ByteReader { bytes: &bytes };
    let expected = crc32fast::hash(&bytes) == entry.header && reader.take(MAGIC.len())? == MAGIC;
    let (rows, dimensions) = (reader.u64()?, reader.u64()?);
    let header =
        Header { table_bytes: reader.u64()?, table_checksum: reader.u32()?, coarse_checksum: reader.u32()? };
    let length = header.table_bytes.checked_add(HEADER_BYTES as u64)?.checked_add(entry.code_bytes())?;
    (expected
        && (rows, dimensions) == (entry.rows, entry.kind.dimensions as u64)
        && file.metadata().ok()?.len() == length)
        .then_some(header)
}

fn checksum(parts: &[&[u8]]) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    parts.iter().for_each(|part| checksum.update(part));
    checksum.finalize()
}

/// The rows of a new segment and their codes, in the order of the file.
pub(super) struct SortedRows<'a> {
    pub(super) kind: SegmentKind,
    pub(super) sessions: Vec<(&'a RowSession, u32)>,
    pub(super) rows: Vec<SegmentRow>,
    pub(super) coarse: Vec<&'a [u8]>,
    pub(super) fine: Vec<&'a [u8]>,
}

impl SortedRows<'_> {
    /// Writes the rows as the segment `name`. There must be at least one row.
    pub(super) fn write(&self, folder: &Path, name: String) -> io::Result<SegmentEntry> {
        let table = self.table();
        let header = Header {
            table_bytes: table.len() as u64,
            table_checksum: crc32fast::hash(&table),
            coarse_checksum: checksum(&self.coarse),
        };
        let keys = self.rows.iter().map(|row| row.key);
        let mut entry = SegmentEntry {
            name,
            rows: self.rows.len() as u64,
            kind: self.kind,
            keys: (keys.clone().min().unwrap_or(0), keys.max().unwrap_or(0)),
            header: 0,
            stamp: FileStamp::default(),
        };
        let header = write_header(&entry, &header);
        entry.header = crc32fast::hash(&header);
        let path = folder.join(&entry.name);
        replace_file(&path, |file| {
            let mut file = io::BufWriter::with_capacity(1 << 20, file);
            file.write_all(&header)?;
            file.write_all(&table)?;
            self.coarse.iter().chain(&self.fine).try_for_each(|codes| file.write_all(codes))?;
            file.flush()
        })?;
        entry.stamp = FileStamp::of(&path)?;
        Ok(entry)
    }

    fn table(&self) -> Vec<u8> {
        let mut table = Vec::new();
        table.extend((self.sessions.len() as u32).to_le_bytes());
        for (name, rows) in &self.sessions {
            for text in [&name.user, &name.session, &name.project] {
                table.extend((text.len() as u32).to_le_bytes());
                table.extend_from_slice(text.as_bytes());
            }
            table.extend(name.key.to_le_bytes());
            table.extend(rows.to_le_bytes());
        }
        table.extend(self.rows.iter().flat_map(|row| row.key.to_le_bytes()));
        table.extend(self.rows.iter().flat_map(|row| row.ts.as_micros().to_le_bytes()));
        table.extend(self.rows.iter().flat_map(|row| row.scales.coarse.to_le_bytes()));
        table.extend(self.rows.iter().flat_map(|row| row.scales.fine.to_le_bytes()));
        table.extend(self.rows.iter().map(|row| row.content_type.code()));
        table.extend(self.rows.iter().map(|row| row.role as u8));
        table.extend(self.fine.chunks(ROWS_CHECKED_TOGETHER).flat_map(|part| checksum(part).to_le_bytes()));
        table
    }
}

/// Reads little-endian numbers and texts from the start of a byte slice. Returns `None` if it is too short.
struct ByteReader<'a> {
    bytes: &'a [u8],
}

impl<'a> ByteReader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.number().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.number().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.u32()?;
        let bytes = self.take(usize::try_from(length).ok()?)?;
        String::from_utf8(bytes.to_vec()).ok()
    }

    fn array<T, const N: usize>(&mut self, length: usize, read: fn([u8; N]) -> T) -> Option<Vec<T>> {
        let (numbers, _) = self.take(length.checked_mul(N)?)?.as_chunks();
        Some(numbers.iter().map(|number| read(*number)).collect())
    }
}
