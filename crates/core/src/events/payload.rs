//! The stored form of an event's line: plain, compressed, or in chunks.

use crate::{
    Result,
    compression::{compress, decompress_pieces},
    model::{Payload, RawJson},
    text::size,
};

/// Events whose `data` is larger than this are stored in chunks (400 KiB, as in the schema).
pub const CHUNKED_ABOVE: u64 = 409_600;
/// The size of a chunk before compression.
pub const CHUNK_BYTES: usize = 256 * 1024;
/// Lines larger than this are compressed.
pub const COMPRESSED_ABOVE: usize = 4 * 1024;
/// Lines larger than this are rejected as `EventTooLarge`.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// That something, such as a line, has more than [`MAX_LINE_BYTES`].
#[must_use]
pub fn too_large(what: &str) -> String {
    format!("the {what} is larger than {}", size(MAX_LINE_BYTES as u64))
}

/// The stored form of a line whose `data` has `data_size_bytes`.
///
/// # Errors
///
/// `StorageIo` if compression fails.
pub fn store(line: &RawJson, data_size_bytes: u64) -> Result<Payload> {
    let bytes = line.as_bytes();
    if data_size_bytes > CHUNKED_ABOVE {
        return Ok(Payload::Chunks(bytes.chunks(CHUNK_BYTES).map(compress).collect::<Result<_>>()?));
    }
    if bytes.len() > COMPRESSED_ABOVE {
        let compressed = compress(bytes)?;
        if compressed.len() < bytes.len() {
            return Ok(Payload::Zstd(compressed));
        }
    }
    Ok(Payload::Plain(bytes.to_vec()))
}

/// The line of a stored form, byte for byte; `None` if it was not stored.
///
/// # Errors
///
/// `Damaged` if the stored bytes are not what was written.
pub fn assemble(payload: Payload) -> Result<Option<RawJson>> {
    match payload {
        Payload::None => Ok(None),
        Payload::Plain(line) => Ok(Some(RawJson::new(line))),
        Payload::Zstd(compressed) => Ok(Some(RawJson::new(decompress_pieces([compressed.as_slice()])?))),
        Payload::Chunks(chunks) => {
            Ok(Some(RawJson::new(decompress_pieces(chunks.iter().map(Vec::as_slice))?)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_form_gives_the_line() {
        for size in [0, 100, COMPRESSED_ABOVE + 1, 300_000, 1_500_000] {
            let line = RawJson::new((0..size).map(|i| b"abcdefgh\xff\x00"[i % 10]).collect::<Vec<_>>());
            let payload = store(&line, size as u64).unwrap();
            assert_eq!(matches!(payload, Payload::Chunks(_)), size as u64 > CHUNKED_ABOVE);
            assert_eq!(assemble(payload).unwrap(), Some(line));
        }
    }

    #[test]
    fn damaged_bytes_are_an_error() {
        assert!(assemble(Payload::Zstd(vec![1, 2, 3])).is_err());
        // Together, the chunks are longer than any line.
        let chunk = compress(&vec![b' '; MAX_LINE_BYTES / 4]).unwrap();
        assert!(assemble(Payload::Chunks(vec![chunk.clone(); 4])).is_ok());
        assert!(assemble(Payload::Chunks(vec![chunk; 5])).is_err());
        assert_eq!(assemble(Payload::None).unwrap(), None);
    }
}
