//! An archive as JSON lines, one per record.

use std::io::{self, BufRead, Read as _, Write};

use super::{ArchiveReader, ArchiveWriter, Record, invalid};
use crate::{Error, ErrorKind, Result};

/// The maximum length of a line: lines of transcripts and event logs have at most 64 MB, and escaping makes them up to
/// six times as long. A file without line ends is not an archive, and must not fill the memory.
const LONGEST_LINE: u64 = 1 << 30;

/// Writes JSON lines.
#[derive(Debug)]
pub struct JsonLinesWriter<W> {
    out: W,
}

impl<W: Write + Send> JsonLinesWriter<W> {
    /// Writes to `out`, in small pieces.
    pub fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write + Send> ArchiveWriter for JsonLinesWriter<W> {
    fn put(&mut self, record: Record) -> Result<()> {
        serde_json::to_writer(&mut self.out, &record).map_err(|error| cannot("write", error.into()))?;
        self.out.write_all(b"\n").map_err(|error| cannot("write", error))
    }

    fn finish(&mut self) -> Result<()> {
        self.out.flush().map_err(|error| cannot("write", error))
    }
}

/// Reads JSON lines.
#[derive(Debug)]
pub struct JsonLinesReader<R> {
    lines: R,
    line: Vec<u8>,
    /// The number of lines that were read.
    number: u64,
}

impl<R: BufRead + Send> JsonLinesReader<R> {
    /// Reads from `lines`.
    pub fn new(lines: R) -> Self {
        Self { lines, line: Vec::new(), number: 0 }
    }
}

impl<R: BufRead + Send> ArchiveReader for JsonLinesReader<R> {
    fn next(&mut self) -> Result<Option<Record>> {
        loop {
            self.line.clear();
            let mut line = (&mut self.lines).take(LONGEST_LINE);
            if line.read_until(b'\n', &mut self.line).map_err(|error| cannot("read", error))? == 0 {
                return Ok(None);
            }
            self.number += 1;
            // Editors may leave empty lines at the end.
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let record = serde_json::from_slice(&self.line).map_err(|source| {
            // serde reports a position as if the line were a file.
            let reason = source.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            invalid(format!("a line is not a record of an archive: {reason}")).with("line", self.number)
        })?;
        Ok(Some(record))
    }

    fn place(&self) -> (&'static str, u64) {
        ("line", self.number)
    }
}

fn cannot(what: &str, source: io::Error) -> Error {
    let message = format!("can't {what} the archive: {source}");
    Error::new(ErrorKind::StorageIo, message).with_source(source)
}
