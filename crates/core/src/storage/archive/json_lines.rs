//! An archive as JSON lines, one per record.

use std::io::{self, BufRead, Read as _, Seek, SeekFrom, Write};

use super::{ArchiveReader, ArchiveWriter, Checksum, Record, invalid};
use crate::{Error, ErrorKind, Result, events::MAX_LINE_BYTES, text::size};

/// The maximum length of a line: lines of transcripts and event logs have at most 64 MB, and escaping makes them up to
/// six times as long; the rest is for the other fields and vectors. A longer line is not a record, and must not fill the
/// memory.
const LONGEST_LINE: u64 = 6 * MAX_LINE_BYTES as u64 + (64 << 20);

/// The maximum length of a record of a transfer. The longest line fits, unless more than every second character must be
/// escaped.
pub(in crate::storage) const LONGEST_RECORD: usize = 2 * MAX_LINE_BYTES + (1 << 20);

/// Some programs begin a text file with this byte order mark.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How files of other kinds begin, and what they are. UTF-16 may have no byte order mark.
const OTHERS: [(&[u8], &str); 7] = [
    (b"\xff\xfe", UTF_16),
    (b"\xfe\xff", UTF_16),
    (b"{\0", UTF_16),
    (b"\0{", UTF_16),
    (b"\x1f\x8b", "compressed; `gunzip` decompresses it"),
    (b"\x28\xb5\x2f\xfd", "compressed; `unzstd` decompresses it"),
    (b"PK\x03\x04", "compressed; `unzip` decompresses it"),
];
const UTF_16: &str = "in UTF-16; `iconv -f UTF-16 -t UTF-8` converts it";

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

    /// The place to which lines are written.
    pub(in crate::storage) fn out_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Adds checksums to a record.
    fn sealed(&mut self, record: Record) -> Record {
        match record {
            Record::Archive { format, writer, .. } => Record::Archive { format, writer, checksums: true },
            Record::End { messages, events, is_part, .. } => {
                let digits = self.session.digits();
                self.archive.add(digits.as_bytes());
                Record::End { messages, events, checksum: Some(digits), is_part }
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
    /// The maximum length of a line.
    longest: u64,
    /// The number of lines that were read.
    number: u64,
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
            longest: LONGEST_LINE,
            number: 0,
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

    /// Reads a line; false at the end. A line that is too long is skipped without being kept, and is an error.
    fn read_line(&mut self) -> Result<bool> {
        loop {
            self.line.clear();
            // With its line ending.
            let mut line = (&mut self.lines).take(self.longest + 1);
            if line.read_until(b'\n', &mut self.line).map_err(|error| cannot("read", error))? == 0 {
                return Ok(false);
            }
            self.number += 1;
            if self.number == 1 {
                self.begin()?;
            }
            if self.line.len() as u64 > self.longest && !self.line.ends_with(b"\n") {
                self.line = Vec::new();
                self.skip_line().map_err(|error| cannot("read", error))?;
                let most = size(self.longest);
                let message = format!("a line is longer than {most}, so it is not an archive record");
                return Err(invalid(message).with("line", self.number));
            }
            // Editors may leave empty lines at the end.
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// Checks the beginning of the file, and removes the byte order mark.
    fn begin(&mut self) -> Result<()> {
        if self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
        }
        let other = OTHERS.iter().find(|(beginning, _)| self.line.starts_with(beginning));
        other.map_or(Ok(()), |(_, what)| {
            Err(invalid(format!("the archive is {what}")).with("line", self.number))
        })
    }

    /// Advances to the next line.
    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let available = self.lines.fill_buf()?;
            let end = available.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let length = end.unwrap_or(available.len());
            self.lines.consume(length);
            if end.is_some() || length == 0 {
                return Ok(());
            }
        }
    }

    fn check(&mut self, record: &Record) -> Result<()> {
        let line = self.line.trim_ascii();
        match record {
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
            Record::End { checksum: None, .. } => {
                return Err(invalid("the end of the session has no checksum").with("checksum", "missing"));
            }
            Record::Archive { .. } | Record::End { .. } | Record::Again | Record::Complete { .. } => {}
        }
        Ok(())
    }
}

impl JsonLinesReader<io::Cursor<Vec<u8>>> {
    /// Reads the next line of an archive whose lines come one by one. `None` if it is empty.
    ///
    /// # Errors
    ///
    /// As [`ArchiveReader::next`].
    pub(in crate::storage) fn read_record(&mut self, line: Vec<u8>) -> Result<Option<Record>> {
        self.lines = io::Cursor::new(line);
        self.next()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The record types or errors of an archive whose lines have at most 60 bytes.
    fn read(archive: &str) -> Vec<String> {
        // A small buffer, so that long lines are skipped in several steps.
        let mut reader = JsonLinesReader::new(io::BufReader::with_capacity(16, archive.as_bytes()));
        reader.longest = 60;
        let mut found = Vec::new();
        loop {
            found.push(match reader.next() {
                Ok(None) => return found,
                Ok(Some(Record::Again)) => format!("{} again", reader.place().1),
                Ok(Some(_)) => format!("{} other", reader.place().1),
                Err(error) => format!("{} {}", error.context("line").unwrap(), error.message()),
            });
            assert!(reader.line.capacity() < 200, "{}", reader.line.capacity());
        }
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_archive_and_other_encodings_are_named() {
        let again = r#"{"record":"again"}"#;
        assert_eq!(read(&format!("\u{feff}{again}\r\n{again}")), ["1 again", "2 again"]);
        let first = |archive: &[u8]| JsonLinesReader::new(archive).next().unwrap_err().message().to_owned();
        let utf_16: Vec<u8> = "{\"record\":1}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let with_mark = [b"\xff\xfe", utf_16.as_slice()].concat();
        let big_endian: Vec<u8> = "{\"record\":1}\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for archive in [&utf_16, &with_mark, &big_endian] {
            assert!(first(archive).contains("iconv"), "{}", first(archive));
        }
        assert!(first(b"\x1f\x8b\x08\0").contains("gunzip"));
    }

    #[test]
    fn a_line_that_is_too_long_is_one_error_and_the_next_line_is_read() {
        let again = r#"{"record":"again"}"#;
        let too_long =
            |number: u64| format!("{number} a line is longer than 60 B, so it is not an archive record");
        let long = "x".repeat(5_000);
        assert_eq!(
            read(&format!("{again}\n{long}\n{again}\n{long}")),
            ["1 again".to_owned(), too_long(2), "3 again".to_owned(), too_long(4)]
        );
        // The longest line, with and without a line ending.
        let longest = format!("{again}{}", " ".repeat(60 - again.len()));
        assert_eq!(read(&format!("{longest}\n{longest}")), ["1 again", "2 again"]);
        assert_eq!(read(&format!("{longest} \n{again}")), [too_long(1), "2 again".to_owned()]);
    }
}
