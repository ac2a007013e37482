//! An archive as JSON lines, one per record.

use std::io::{self, BufRead, Read as _, Seek, SeekFrom, Write};

use super::{ArchiveReader, ArchiveWriter, Checksum, Record, invalid};
use crate::{Error, ErrorKind, Result};

/// The maximum length of a line: lines of transcripts and event logs have at most 64 MB, and escaping makes them up to
/// six times as long. A file without line ends is not an archive, and must not fill the memory.
const LONGEST_LINE: u64 = 1 << 30;

/// Writes JSON lines.
#[derive(Debug)]
pub struct JsonLinesWriter<W> {
    out: W,
    vectors: bool,
    line: Vec<u8>,
    /// Checksum of the session's lines so far, without line ends.
    session: Checksum,
    /// Checksum of the checksums of the sessions.
    archive: Checksum,
}

impl<W: Write + Send> JsonLinesWriter<W> {
    /// Writes to `out`, in small pieces.
    pub fn new(out: W) -> Self {
        let (session, archive) = (Checksum::default(), Checksum::default());
        Self { out, vectors: false, line: Vec::new(), session, archive }
    }

    /// Sets whether to write vectors. Default: no.
    #[must_use]
    pub fn with_vectors(mut self, vectors: bool) -> Self {
        self.vectors = vectors;
        self
    }

    /// Adds checksums to a record.
    fn sealed(&mut self, record: Record) -> Record {
        match record {
            Record::Archive { format, writer, .. } => Record::Archive { format, writer, checksums: true },
            Record::End { messages, events, .. } => {
                let digits = self.session.digits();
                self.archive.add(digits.as_bytes());
                Record::End { messages, events, checksum: Some(digits) }
            }
            Record::Complete { sessions, .. } => {
                Record::Complete { sessions, checksum: Some(self.archive.digits()) }
            }
            record => record,
        }
    }
}

impl<W: Write + Send> ArchiveWriter for JsonLinesWriter<W> {
    fn put(&mut self, record: Record) -> Result<()> {
        let record = self.sealed(record);
        self.line.clear();
        serde_json::to_writer(&mut self.line, &record).map_err(|error| cannot("write", error.into()))?;
        match record {
            Record::Session(_) => {
                self.session = Checksum::default();
                self.session.add(&self.line);
            }
            Record::Message(_) | Record::Event(_) | Record::Superseded(_) => self.session.add(&self.line),
            _ => {}
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line).map_err(|error| cannot("write", error))
    }

    fn takes_vectors(&self) -> bool {
        self.vectors
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
    /// Whether each session must have a checksum.
    checksums: bool,
    /// Checksum of the session's lines so far, without white space around them.
    session: Checksum,
    /// How to change the position, if that is possible.
    seek: Option<fn(&mut R, SeekFrom) -> io::Result<u64>>,
    mark: Option<Mark>,
}

/// A position to return to.
#[derive(Debug, Clone)]
struct Mark {
    position: u64,
    number: u64,
    session: Checksum,
}

impl<R: BufRead + Send> JsonLinesReader<R> {
    /// Reads from `lines`.
    pub fn new(lines: R) -> Self {
        Self {
            lines,
            line: Vec::new(),
            number: 0,
            checksums: false,
            session: Checksum::default(),
            seek: None,
            mark: None,
        }
    }

    /// Reads from a file. Large sessions are read twice, so that they need not fit into memory.
    pub fn seekable(lines: R) -> Self
    where
        R: Seek,
    {
        Self { seek: Some(|lines, to| lines.seek(to)), ..Self::new(lines) }
    }

    /// Reads a line; false at the end.
    fn read_line(&mut self) -> Result<bool> {
        loop {
            self.line.clear();
            let mut line = (&mut self.lines).take(LONGEST_LINE);
            if line.read_until(b'\n', &mut self.line).map_err(|error| cannot("read", error))? == 0 {
                return Ok(false);
            }
            self.number += 1;
            // Editors may leave empty lines at the end.
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    fn check(&mut self, record: &Record) -> Result<()> {
        let line = self.line.trim_ascii();
        match record {
            Record::Archive { checksums, .. } => self.checksums = *checksums,
            Record::Session(_) => {
                self.session = Checksum::default();
                self.session.add(line);
            }
            Record::Message(_) | Record::Event(_) | Record::Superseded(_) => self.session.add(line),
            Record::End { checksum: Some(digits), .. } if *digits != self.session.digits() => {
                let error = invalid(
                    "the lines of the session are not the ones that were exported: the checksum does not match",
                );
                return Err(error.with("checksum", digits));
            }
            Record::End { checksum: None, .. } if self.checksums => {
                return Err(invalid("the end of the session has no checksum").with("checksum", "missing"));
            }
            Record::End { .. } | Record::Again | Record::Complete { .. } => {}
        }
        Ok(())
    }
}

impl<R: BufRead + Send> ArchiveReader for JsonLinesReader<R> {
    fn next(&mut self) -> Result<Option<Record>> {
        if !self.read_line()? {
            return Ok(None);
        }
        let record = serde_json::from_slice(&self.line).map_err(|source| {
            // serde reports a position as if the line were a file.
            let reason = source.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            invalid(format!("a line is not an archive record: {reason}"))
        });
        let record = record.and_then(|record| self.check(&record).map(|()| record));
        record.map(Some).map_err(|error: Error| error.with("line", self.number))
    }

    fn place(&self) -> (&'static str, u64) {
        ("line", self.number)
    }

    fn mark(&mut self) -> bool {
        let position = self.seek.and_then(|seek| seek(&mut self.lines, SeekFrom::Current(0)).ok());
        let (number, session) = (self.number, self.session.clone());
        self.mark = position.map(|position| Mark { position, number, session });
        self.mark.is_some()
    }

    fn go_back(&mut self) -> Result<()> {
        if let (Some(seek), Some(mark)) = (self.seek, self.mark.take()) {
            seek(&mut self.lines, SeekFrom::Start(mark.position)).map_err(|error| cannot("read", error))?;
            (self.number, self.session) = (mark.number, mark.session);
        }
        Ok(())
    }
}

fn cannot(what: &str, source: io::Error) -> Error {
    let message = format!("can't {what} the archive: {source}");
    Error::new(ErrorKind::StorageIo, message).with_source(source)
}
