//! A stream of archive records as bytes.

use std::io::Cursor;

use async_trait::async_trait;

use crate::{
    Result,
    storage::archive::{
        ArchiveWriter, FORMAT, JsonLinesReader, JsonLinesWriter, LONGEST_RECORD, Record, invalid,
    },
    text::size,
};

/// The size at which lines are passed on.
const CHUNK: usize = 64 * 1024;

/// Takes the bytes of a stream, piece by piece.
#[async_trait]
pub trait RowSink: Send {
    /// Takes the next bytes. They may end within a line.
    ///
    /// # Errors
    ///
    /// Those of what it writes to. The rest of the stream is not wanted then.
    async fn put(&mut self, bytes: Vec<u8>) -> Result<()>;
}

/// Writes records to a [`RowSink`], as JSON lines with checksums.
#[derive(Debug)]
pub struct RowEncoder {
    lines: JsonLinesWriter<Vec<u8>>,
    sessions: u64,
    bytes: u64,
}

impl RowEncoder {
    /// Begins a stream.
    ///
    /// # Errors
    ///
    /// `StorageIo` if the first record can't be written.
    pub fn new() -> Result<Self> {
        let mut encoder = Self { lines: JsonLinesWriter::new(Vec::new()), sessions: 0, bytes: 0 };
        let writer = format!("amplifier-session-storage {}", env!("CARGO_PKG_VERSION"));
        encoder.lines.put(Record::Archive { format: FORMAT, writer, checksums: true })?;
        encoder.bytes = encoder.lines.out_mut().len() as u64;
        Ok(encoder)
    }

    /// The number of bytes so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes a record.
    pub(super) async fn put(&mut self, record: Record, sink: &mut dyn RowSink) -> Result<()> {
        self.sessions += u64::from(matches!(record, Record::End { .. }));
        let before = self.lines.out_mut().len();
        self.lines.put(record)?;
        let pending = self.lines.out_mut();
        self.bytes += (pending.len() - before) as u64;
        if pending.len() >= CHUNK { sink.put(std::mem::take(pending)).await } else { Ok(()) }
    }

    /// Ends the stream. Returns the number of its bytes.
    ///
    /// # Errors
    ///
    /// Those of `sink`.
    pub async fn end(mut self, sink: &mut dyn RowSink) -> Result<u64> {
        let sessions = self.sessions;
        self.put(Record::Complete { sessions, checksum: None }, sink).await?;
        let pending = std::mem::take(self.lines.out_mut());
        if !pending.is_empty() {
            sink.put(pending).await?;
        }
        Ok(self.bytes)
    }
}

/// Makes records of pieces of bytes.
#[derive(Debug)]
pub(super) struct RowDecoder {
    /// The line that is not complete yet.
    line: Vec<u8>,
    /// Whether the line is too long and is skipped.
    is_skipping: bool,
    records: JsonLinesReader<Cursor<Vec<u8>>>,
    longest: usize,
}

impl Default for RowDecoder {
    fn default() -> Self {
        let records = JsonLinesReader::new(Cursor::new(Vec::new()));
        Self { line: Vec::new(), is_skipping: false, records, longest: LONGEST_RECORD }
    }
}

impl RowDecoder {
    /// The size of the line that is not complete yet.
    pub(super) fn pending(&self) -> usize {
        self.line.len()
    }

    /// Takes the bytes of `bytes` up to the end of the first line, and returns that line's record. `None` if the line is
    /// not complete yet, or empty.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Record>> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        *bytes = rest;
        if self.is_skipping {
            self.is_skipping = end.is_none();
            return Ok(None);
        }
        if self.line.len() + line.len() > self.longest {
            self.line = Vec::new();
            self.is_skipping = end.is_none();
            return Err(self.too_long());
        }
        self.line.extend_from_slice(line);
        if end.is_none() { Ok(None) } else { self.records.read_record(std::mem::take(&mut self.line)) }
    }

    /// The record of a last line without an end.
    pub(super) fn last(&mut self) -> Result<Option<Record>> {
        match std::mem::take(&mut self.line) {
            line if line.is_empty() => Ok(None),
            line => self.records.read_record(line),
        }
    }

    fn too_long(&self) -> crate::Error {
        invalid(format!("a record is longer than {}", size(self.longest as u64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_from_pieces_of_any_size_and_long_lines_are_skipped() {
        let again = "{\"record\":\"again\"}\n";
        let stream = format!("{again}\n{}\n{again}broken\n{again}", "x".repeat(100));
        for piece in [1, 7, 1_000] {
            let (mut decoder, mut found) = (RowDecoder { longest: 60, ..RowDecoder::default() }, Vec::new());
            for mut bytes in stream.as_bytes().chunks(piece) {
                while !bytes.is_empty() {
                    match decoder.next(&mut bytes) {
                        Ok(Some(_)) => found.push("record"),
                        Ok(None) => {}
                        Err(error) if error.message().contains("longer than 60 B") => found.push("long"),
                        Err(_) => found.push("broken"),
                    }
                }
            }
            assert_eq!(found, ["record", "long", "record", "broken", "record"], "{piece}");
        }
    }
}
