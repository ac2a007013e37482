//! An archive as lines of JSON, a record each.

use std::io::{self, BufRead, Read as _, Write};

use super::{ArchiveReader, ArchiveWriter, Record};
use crate::{Error, ErrorKind, Result};

/// No line is longer: the longest line of a transcript or of an event log has 64 MB, which escaping makes six times as long at
/// most. What has no line ends is no archive, and must not fill the memory.
const LONGEST_LINE: u64 = 1 << 30;

/// Writes lines of JSON.
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

/// Reads lines of JSON.
#[derive(Debug)]
pub struct JsonLinesReader<R> {
    lines: R,
    line: Vec<u8>,
    /// How many lines were read.
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
            // Editors leave empty ones at the end.
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let record = serde_json::from_slice(&self.line).map_err(|source| {
            // Where in the line it is wrong is told by serde as if the line were a file.
            let told = source.to_string();
            let told = told.split(" at line ").next().unwrap_or_default();
            Error::validation("archive", format!("a line is no record of an archive: {told}"))
                .with("line", self.number)
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
