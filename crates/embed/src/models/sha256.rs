//! SHA-256 hashes of files and bytes, in hexadecimal digits as on model hubs.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
};

use amplifier_session_core::KnownPart;
use sha2::{Digest as _, Sha256};

/// The hash of `bytes`.
#[cfg(any(test, feature = "local-transformer"))]
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

/// The hash of a file's content.
pub(crate) fn of_file(path: &Path) -> io::Result<String> {
    let (hash, _) = copy(&mut File::open(path)?, &mut io::sink())?;
    Ok(hash)
}

/// Copies all bytes; returns their hash and number.
pub(crate) fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<(String, u64)> {
    let mut writer = Hashing::new(to);
    io::copy(from, &mut writer)?;
    Ok(writer.finish())
}

/// A writer that hashes what it writes.
pub(crate) struct Hashing<W> {
    to: W,
    hash: Sha256,
    bytes: u64,
}

impl<W: Write> Hashing<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, hash: Sha256::new(), bytes: 0 }
    }

    /// The hash and the number of the bytes that were written.
    pub(crate) fn finish(self) -> (String, u64) {
        (hex(self.hash), self.bytes)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.update(bytes.part(..written));
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_agree_with_the_standard() {
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of_bytes(b"abc"), expected);
        let mut copied = Vec::new();
        assert_eq!(copy(&mut &b"abc"[..], &mut copied).unwrap(), (expected.to_owned(), 3));
        assert_eq!(copied, b"abc");
    }
}
