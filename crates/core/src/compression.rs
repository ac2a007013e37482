//! Compression of stored lines, with zstd.

use std::{cell::RefCell, io};

use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::{find_frame_compressed_size, get_frame_content_size},
};

use crate::{Error, ErrorKind, Result, events::MAX_LINE_BYTES};

/// Lines are written once and rarely read, and the fastest level already halves them.
const LEVEL: i32 = 1;

/// The bytes that compressed data starts with
/// ([RFC 8878, section 3.1.1](https://www.rfc-editor.org/rfc/rfc8878#section-3.1.1)). No JSON starts like this.
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// Compresses bytes.
///
/// # Errors
///
/// `StorageIo` if compression fails.
pub fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    COMPRESSOR
        .with_borrow_mut(|compressor| usable(compressor)?.compress(bytes))
        .map_err(|source| Error::new(ErrorKind::StorageIo, "can't compress a line").with_source(source))
}

/// Whether the bytes look like the result of [`compress`]. JSON never does.
#[must_use]
pub fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Decompresses bytes that were compressed at once or in several pieces.
///
/// # Errors
///
/// `Damaged` if the bytes are not those that [`compress`] returned, or claim to be larger than a line can be.
pub fn decompress(bytes: &[u8]) -> Result<Vec<u8>> {
    decompress_pieces([bytes])
}

/// The bytes of a line that was compressed in several pieces.
///
/// # Errors
///
/// As [`decompress`]. The limit applies to all pieces together: little data can claim to be a lot.
pub(crate) fn decompress_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<u8>> {
    let mut whole = Vec::new();
    for piece in pieces {
        add_piece(piece, &mut whole)?;
    }
    Ok(whole)
}

fn add_piece(mut bytes: &[u8], whole: &mut Vec<u8>) -> Result<()> {
    while !bytes.is_empty() {
        let length = find_frame_compressed_size(bytes).map_err(|_| damaged())?;
        let (frame, rest) = bytes.split_at_checked(length).ok_or_else(damaged)?;
        let size = get_frame_content_size(frame).ok().flatten().ok_or_else(damaged)?;
        if size > (MAX_LINE_BYTES - whole.len()) as u64 {
            return Err(damaged());
        }
        let part = DECOMPRESSOR
            .with_borrow_mut(|decompressor| usable(decompressor)?.decompress(frame, size as usize))
            .map_err(|source| damaged().with_source(source))?;
        whole.extend(part);
        bytes = rest;
    }
    Ok(())
}

fn damaged() -> Error {
    Error::new(ErrorKind::Damaged, "a stored line is damaged")
}

thread_local! {
    /// Creating one takes about as long as compressing a few kilobytes.
    static COMPRESSOR: RefCell<io::Result<Compressor<'static>>> = RefCell::new(Compressor::new(LEVEL));
    static DECOMPRESSOR: RefCell<io::Result<Decompressor<'static>>> = RefCell::new(Decompressor::new());
}

fn usable<T>(created: &mut io::Result<T>) -> io::Result<&mut T> {
    created.as_mut().map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_bytes_are_recognized_and_read() {
        for size in [0, 1, 2_000, 600_000] {
            let bytes = b"abcdefgh".repeat(size);
            let compressed = compress(&bytes).unwrap();
            assert!(is_compressed(&compressed));
            assert_eq!(decompress(&compressed).unwrap(), bytes);
        }
        for json in ["{\"role\":\"user\"}", "", "  [1]", "(\u{b5}/"] {
            assert!(!is_compressed(json.as_bytes()));
        }
        let pieces = [compress(b"one ").unwrap(), compress(b"line").unwrap()].concat();
        assert_eq!(decompress(&pieces).unwrap(), b"one line");
        let mut damaged = compress(&[7; 3_000]).unwrap();
        damaged.truncate(damaged.len() - 1);
        assert_eq!(decompress(&damaged).unwrap_err().kind(), ErrorKind::Damaged);
    }
}
