//! Reads the lines of a file in batches, with memory that does not depend on its size.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
};

use amplifier_session_core::{KnownPart, model::Digest, storage::LineDigester};

use crate::position::ReadLine;

/// The size of the read buffer.
const BUFFER_BYTES: usize = 256 * 1024;
/// The size of a batch, unless a single line is longer.
const BATCH_BYTES: u64 = 1024 * 1024;
/// Lines up to this size are copied out of the buffer; for longer ones, the buffer itself is returned.
const COPIED_UP_TO: usize = 64 * 1024;
/// The byte order mark, which some editors write before UTF-8 text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A line that is not blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The line number in the file, from 1.
    pub(crate) number: u64,
    /// The offset of its text.
    pub(crate) offset: u64,
    /// The offset of the next line.
    pub(crate) end: u64,
    pub(crate) text: LineText,
}

impl Line {
    /// Its text, unless it is too large.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        match &self.text {
            LineText::Ended(text) | LineText::Unended(text) => Some(text),
            LineText::TooLarge => None,
        }
    }

    /// The digest of its text, unless it is too large.
    pub(crate) fn digest(&self, digester: &LineDigester) -> Option<Digest> {
        self.text().map(|text| digester.digest(text))
    }
}

/// The text of a line, without its ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LineText {
    /// It has an ending.
    Ended(Vec<u8>),
    /// The last line of the file, without an ending. It may still be being written.
    Unended(Vec<u8>),
    /// It has an ending, and exceeds the maximum size.
    TooLarge,
}

/// Consecutive lines.
#[derive(Debug, Default)]
pub(crate) struct LineBatch {
    pub(crate) lines: Vec<Line>,
    /// The number of bytes that were read.
    pub(crate) bytes: u64,
    /// Whether this is the end of the file.
    pub(crate) is_last: bool,
    /// The offset after the last line with an ending, including blank lines.
    pub(crate) end: u64,
    /// The number of lines before that offset.
    pub(crate) number: u64,
}

/// Reads a file line by line.
#[derive(Debug)]
pub(crate) struct LineReader {
    file: BufReader<File>,
    /// The offset of the next line.
    offset: u64,
    /// The number of lines before it.
    number: u64,
    longest: usize,
    buffer: Vec<u8>,
}

impl LineReader {
    /// Reads from `offset`, which is the beginning of the file or directly after line `number`. Skips lines of more
    /// than `longest` bytes.
    pub(crate) fn new(mut file: File, offset: u64, number: u64, longest: usize) -> io::Result<Self> {
        file.seek(SeekFrom::Start(offset))?;
        let file = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok(Self { file, offset, number, longest, buffer: Vec::new() })
    }

    /// The next lines.
    pub(crate) fn batch(&mut self) -> io::Result<LineBatch> {
        let mut batch = LineBatch { end: self.offset, number: self.number, ..LineBatch::default() };
        while batch.bytes < BATCH_BYTES {
            let Some((size, line)) = self.line()? else {
                batch.is_last = true;
                break;
            };
            batch.bytes += size;
            if !matches!(line, Some(Line { text: LineText::Unended(_), .. })) {
                (batch.end, batch.number) = (self.offset, self.number);
            }
            batch.lines.extend(line);
        }
        Ok(batch)
    }

    /// The digests of the remaining lines, without lines that are too large. `is_read` chooses lines by their number. Does
    /// not affect the next batch.
    pub(crate) fn remaining(
        &mut self,
        digester: &LineDigester,
        is_read: impl Fn(u64) -> bool,
    ) -> io::Result<Vec<Digest>> {
        let (offset, number) = (self.offset, self.number);
        let mut digests = Vec::new();
        while let Some((_, line)) = self.line()? {
            digests.extend(line.filter(|line| is_read(line.number)).and_then(|line| line.digest(digester)));
        }
        (self.offset, self.number) = (offset, number);
        self.file.seek(SeekFrom::Start(offset))?;
        Ok(digests)
    }

    /// The size of the next line, and the line unless it is blank; `None` at the end.
    fn line(&mut self) -> io::Result<Option<(u64, Option<Line>)>> {
        // Room for CR and LF.
        let limit = self.longest as u64 + 2;
        self.buffer.clear();
        let read = (&mut self.file).take(limit).read_until(b'\n', &mut self.buffer)? as u64;
        if read == 0 {
            return Ok(None);
        }
        let mut size = read;
        let mut ended = self.buffer.ends_with(b"\n");
        let cut = read == limit && !ended;
        if cut {
            size += self.skip_line(&mut ended)?;
        }
        let text = self.text();
        let start = self.offset + text.start as u64;
        self.offset += size;
        self.number += 1;
        let text = match (text.len() > self.longest || cut, ended) {
            (true, true) => LineText::TooLarge,
            // An incomplete line that is already too large is handled when it has an ending.
            (true, false) => LineText::Unended(Vec::new()),
            (false, true) if is_blank(self.buffer.get(text.clone())) => return Ok(Some((size, None))),
            (false, true) => LineText::Ended(self.take(text)),
            (false, false) => LineText::Unended(self.take(text)),
        };
        Ok(Some((size, Some(Line { number: self.number, offset: start, end: self.offset, text }))))
    }

    /// Skips the rest of a line, and returns its size.
    fn skip_line(&mut self, ended: &mut bool) -> io::Result<u64> {
        let mut passed = 0;
        loop {
            let available = self.file.fill_buf()?;
            if available.is_empty() {
                return Ok(passed);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let consumed = end.map_or(available.len(), |end| end + 1);
            self.file.consume(consumed);
            passed += consumed as u64;
            if end.is_some() {
                *ended = true;
                return Ok(passed);
            }
        }
    }

    /// The range of the text in the buffer, without the ending and the byte order mark.
    fn text(&self) -> std::ops::Range<usize> {
        let has_mark = self.offset == 0 && self.buffer.starts_with(BYTE_ORDER_MARK);
        let start = if has_mark { BYTE_ORDER_MARK.len() } else { 0 };
        start..without_ending(&self.buffer).len().max(start)
    }

    fn take(&mut self, text: std::ops::Range<usize>) -> Vec<u8> {
        if text.len() <= COPIED_UP_TO || text.start > 0 {
            return self.buffer.part(text).to_vec();
        }
        self.buffer.truncate(text.end);
        std::mem::take(&mut self.buffer)
    }
}

fn is_blank(text: Option<&[u8]>) -> bool {
    text.is_none_or(|text| text.iter().all(u8::is_ascii_whitespace))
}

fn without_ending(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Whether `line` is still in the file at the same offset, followed by its ending.
pub(crate) fn is_unchanged(file: &mut File, line: &ReadLine, longest: usize) -> io::Result<bool> {
    if line.length > longest as u64 {
        return Ok(false);
    }
    file.seek(SeekFrom::Start(line.offset))?;
    let mut found = Vec::with_capacity(line.length as usize + 2);
    file.take(line.length + 2).read_to_end(&mut found)?;
    let (text, ending) = found.split_at(found.len().min(line.length as usize));
    Ok((ending.starts_with(b"\n") || ending == b"\r\n") && line.is(text))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(content: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        file
    }

    /// Number, offset, end and text of all lines; `…` marks one without ending, `!` one that is too large.
    fn lines_from(content: &[u8], offset: u64, number: u64) -> Vec<(u64, u64, u64, String)> {
        let mut reader = LineReader::new(file(content), offset, number, 10).unwrap();
        let mut lines = Vec::new();
        loop {
            let batch = reader.batch().unwrap();
            lines.extend(batch.lines.into_iter().map(shown));
            if batch.is_last {
                return lines;
            }
        }
    }

    fn shown(line: Line) -> (u64, u64, u64, String) {
        let text = match line.text {
            LineText::Ended(text) => String::from_utf8(text).unwrap(),
            LineText::Unended(text) => String::from_utf8(text).unwrap() + "…",
            LineText::TooLarge => "!".to_owned(),
        };
        (line.number, line.offset, line.end, text)
    }

    fn lines(content: &[u8]) -> Vec<(u64, u64, u64, String)> {
        lines_from(content, 0, 0)
    }

    #[test]
    fn lines_have_numbers_and_offsets() {
        let expected = [(1, 0, 2, "a".into()), (3, 4, 8, "bc".into()), (4, 8, 9, "d…".into())];
        assert_eq!(lines(b"a\n \nbc\r\nd"), expected);
        assert_eq!(lines_from(b"a\n \nbc\r\nd", 4, 2), expected[1..]);
        assert!(lines(b"").is_empty());
        assert!(lines(b"\n\r\n \n").is_empty());
    }

    #[test]
    fn a_byte_order_mark_is_not_text() {
        assert_eq!(lines(b"\xef\xbb\xbfa\n"), [(1, 3, 5, "a".into())]);
        assert!(lines(b"\xef\xbb\xbf\n").is_empty());
    }

    #[test]
    fn remaining_lines_are_read_again() {
        let mut reader = LineReader::new(file(b"a\n\nb\n0123456789abc\nc"), 2, 1, 10).unwrap();
        let expected = [&b"b"[..], b"c"].map(Digest::of);
        assert_eq!(reader.remaining(&LineDigester::default(), |_| true).unwrap(), expected);
        let lines: Vec<_> = reader
            .batch()
            .unwrap()
            .lines
            .iter()
            .filter_map(|line| line.digest(&LineDigester::default()))
            .collect();
        assert_eq!(lines, expected);
        assert!(reader.remaining(&LineDigester::default(), |_| true).unwrap().is_empty());
    }

    #[test]
    fn lines_have_a_maximum_length() {
        assert_eq!(lines(b"0123456789\r\nb\n"), [(1, 0, 12, "0123456789".into()), (2, 12, 14, "b".into())]);
        let long = "x".repeat(BUFFER_BYTES * 2);
        for line in ["0123456789a", "0123456789ab", "0123456789abc", &long] {
            let end = line.len() as u64 + 1;
            let expected = [(1, 0, end, "!".into()), (2, end, end + 2, "b".into())];
            assert_eq!(lines(format!("{line}\nb\n").as_bytes()), expected, "{} bytes", line.len());
        }
        assert_eq!(lines(b"0123456789abcdef"), [(1, 0, 16, "…".into())]);
    }

    #[test]
    fn a_batch_ends_before_a_line_without_ending() {
        let mut reader = LineReader::new(file(b"a\n\nb"), 0, 0, 10).unwrap();
        let batch = reader.batch().unwrap();
        assert_eq!((batch.bytes, batch.end, batch.number, batch.lines.len()), (4, 3, 2, 2));
        assert!(batch.is_last);
    }

    #[test]
    fn batches_have_a_limited_size() {
        let line = format!("{}\n", "x".repeat(99_999));
        let mut reader = LineReader::new(file(line.repeat(100).as_bytes()), 0, 0, 1_000_000).unwrap();
        let mut lines = 0;
        loop {
            let batch = reader.batch().unwrap();
            assert!(batch.bytes < BATCH_BYTES + 100_000);
            lines += batch.lines.len();
            if batch.is_last {
                break;
            }
        }
        assert_eq!(lines, 100);
    }

    #[test]
    fn a_line_is_unchanged_if_its_text_and_ending_are() {
        let line = ReadLine::new(2, b"bc");
        let unchanged = |content: &[u8]| is_unchanged(&mut file(content), &line, 10).unwrap();
        assert!(unchanged(b"a\nbc\n") && unchanged(b"x\nbc\nd") && unchanged(b"a\nbc\r\n"));
        for content in [&b"a\nbd\n"[..], b"a\nbcd\n", b"a\nbc", b"a\nb", b""] {
            assert!(!unchanged(content), "{content:?}");
        }
    }
}
