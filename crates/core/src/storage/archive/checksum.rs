//! Checksums of archives.

use std::fmt;

use crate::model::Digest;

/// A checksum of bytes that come in pieces: the first 16 bytes of their BLAKE3 hash, as 32 hexadecimal digits.
#[derive(Clone, Default)]
pub struct Checksum(Box<blake3::Hasher>);

impl Checksum {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds a part with its length, so that the same bytes in other parts have another checksum.
    pub fn add_part(&mut self, bytes: &[u8]) {
        self.add(&(bytes.len() as u64).to_le_bytes());
        self.add(bytes);
    }

    /// The checksum of the bytes so far.
    #[must_use]
    pub fn digits(&self) -> String {
        let mut digest = Digest::default();
        digest.0.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        String::from(digest)
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Checksum").field(&self.digits()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_matter_but_parts_do() {
        let (mut whole, mut pieces) = (Checksum::default(), Checksum::default());
        whole.add(b"abc");
        pieces.add(b"a");
        pieces.add(b"bc");
        assert_eq!(whole.digits(), pieces.digits());
        assert_eq!(whole.digits(), String::from(Digest::of(b"abc")));
        let (mut one, mut other) = (Checksum::default(), Checksum::default());
        one.add_part(b"a");
        one.add_part(b"bc");
        other.add_part(b"ab");
        other.add_part(b"c");
        assert_ne!(one.digits(), other.digits());
    }
}
