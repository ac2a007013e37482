//! Numbers and texts as little-endian bytes.

/// Reads from the start of a byte slice. Returns `None` if it is too short.
pub(super) struct ByteReader<'a> {
    bytes: &'a [u8],
}

impl<'a> ByteReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (number, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*number)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.number().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.number().map(u64::from_le_bytes)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let length = self.u32()?;
        let bytes = self.take(usize::try_from(length).ok()?)?;
        String::from_utf8(bytes.to_vec()).ok()
    }

    pub(super) fn array<T, const N: usize>(
        &mut self,
        length: usize,
        read: fn([u8; N]) -> T,
    ) -> Option<Vec<T>> {
        let (numbers, _) = self.take(length.checked_mul(N)?)?.as_chunks();
        Some(numbers.iter().map(|number| read(*number)).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Writes the format that [`ByteReader`] reads.
#[derive(Default)]
pub(super) struct ByteWriter {
    bytes: Vec<u8>,
}

impl ByteWriter {
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u32).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}
