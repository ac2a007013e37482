//! Files in messages: images and the like, which programs write as base64.
//!
//! Base64 contains no words. In texts, a note replaces it: `[image/png, 1.5 MB]`.

use std::{borrow::Cow, ops::Range};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use serde_json::{Map, Value};

use crate::KnownPart;

/// Base64 of fewer characters stays in a text. A run of this length covers a character at each multiple of it, so that
/// most of a text need not be looked at.
const SHORTEST: usize = 64;
/// The same outside a data URI, where it may also be a key or an identifier.
const SHORTEST_ALONE: usize = 1_024;
/// Base64 in lines has lines of at most this length.
const LONGEST_LINE: usize = 200;
/// The maximum length of a data URI before its data.
const LONGEST_HEAD: usize = 160;
/// The maximum depth of the data of a file in its block.
const MAX_DEPTH: usize = 4;

/// The beginnings of common files.
const BEGINNINGS: [(&[u8], &str); 16] = [
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"<svg", "image/svg+xml"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"%PDF", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"\x7fELF", "application/x-elf"),
    (b"SQLite format 3", "application/vnd.sqlite3"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
];

/// A text in which notes have replaced base64.
#[derive(Debug, Default)]
pub(super) struct ReadableText<'a> {
    pub(super) text: Cow<'a, str>,
    /// Whether it contains anything else than such notes.
    pub(super) has_words: bool,
}

impl<'a> ReadableText<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let (mut readable, mut copied, mut has_words) = (String::new(), 0, false);
        let mut at = 0;
        while let Some(run) = next_run(text.as_bytes(), at) {
            at = run.end;
            let Some((start, note)) = replaced(text, &run) else { continue };
            let before = text.part(copied..start);
            has_words |= !before.trim().is_empty();
            readable.push_str(before);
            readable.push_str(&note);
            copied = run.end;
        }
        let rest = text.part(copied..);
        has_words |= !rest.trim().is_empty();
        if copied == 0 {
            return Self { text: Cow::Borrowed(text), has_words };
        }
        readable.push_str(rest);
        Self { text: Cow::Owned(readable), has_words }
    }

    pub(super) fn is_replaced(&self) -> bool {
        matches!(self.text, Cow::Owned(_))
    }
}

/// `text` with a note, such as `[image/png, 1.5 MB]`, in place of each data URI and of long base64.
#[must_use]
pub fn without_base64(text: &str) -> Cow<'_, str> {
    ReadableText::of(text).text
}

/// Where the data URI or the base64 in `run` begins, and the note that replaces it.
fn replaced(text: &str, run: &Range<usize>) -> Option<(usize, String)> {
    let base64 = text.get(run.clone())?;
    let before = text.get(..run.start)?;
    if let Some(head) = before.strip_suffix(";base64,")
        && let Some(start) = head.rfind("data:").filter(|start| head.len() - start <= LONGEST_HEAD)
    {
        let media_type = head.get(start + "data:".len()..)?.split(';').next()?;
        if media_type.chars().all(|c| c.is_ascii_alphanumeric() || "/+-.".contains(c)) {
            return Some((start, note(Some(media_type), base64)));
        }
    }
    is_data(base64.as_bytes()).then(|| (run.start, note(None, base64)))
}

/// A note about a file. Without a type, it is guessed from its beginning.
fn note(media_type: Option<&str>, base64: &str) -> String {
    let digits = || base64.bytes().filter(|byte| is_digit(*byte));
    let given = media_type.map(str::trim).filter(|given| !given.is_empty());
    let media_type = given.or_else(|| guessed(digits())).unwrap_or("base64 data");
    format!("[{media_type}, {}]", size(digits().count() * 3 / 4))
}

fn guessed(digits: impl Iterator<Item = u8>) -> Option<&'static str> {
    let standard = |byte| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    };
    let head: Vec<u8> = digits.take(24).map(standard).collect();
    let head = STANDARD_NO_PAD.decode(head).ok()?;
    if head.starts_with(b"RIFF") {
        let kinds = [(b"WEBP", "image/webp"), (b"WAVE", "audio/wav"), (b"AVI ", "video/x-msvideo")];
        return kinds
            .into_iter()
            .find(|(kind, _)| head.get(8..12) == Some(kind.as_slice()))
            .map(|(_, name)| name);
    }
    if head.get(4..8) == Some(b"ftyp") {
        return Some("video/mp4");
    }
    BEGINNINGS.into_iter().find(|(beginning, _)| head.starts_with(beginning)).map(|(_, name)| name)
}

/// A size in units of 1,000 bytes.
fn size(bytes: usize) -> String {
    match bytes {
        ..1_000 => format!("{bytes} B"),
        1_000..999_950 => format!("{:.1} KB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// The next base64 of at least [`SHORTEST`] characters from `from` on.
fn next_run(text: &[u8], from: usize) -> Option<Range<usize>> {
    let mut at = from + SHORTEST - 1;
    while let Some(byte) = text.get(at) {
        if !is_digit(*byte) {
            at += SHORTEST;
            continue;
        }
        let before = text.get(from..at)?.iter().rposition(|byte| !is_digit(*byte));
        let (start, end) = (before.map_or(from, |before| from + before + 1), run_end(text, at));
        if end - start >= SHORTEST {
            return Some(start..end_of_lines(text, start, end));
        }
        at = end + SHORTEST;
    }
    None
}

/// The end of the base64 that begins at `start`, with its padding.
fn run_end(text: &[u8], start: usize) -> usize {
    let end = end_of(text, start, is_digit);
    end_of(text, end, |byte| byte == b'=').min(end + 2)
}

/// The end of the bytes from `start` on that belong together.
fn end_of(text: &[u8], start: usize, belongs: impl Fn(u8) -> bool) -> usize {
    let rest = text.part(start..);
    start + rest.iter().position(|byte| !belongs(*byte)).unwrap_or(rest.len())
}

/// The end of base64 that goes on in lines of the same length. The last one may be shorter.
fn end_of_lines(text: &[u8], start: usize, mut end: usize) -> usize {
    let width = end - start;
    if width > LONGEST_LINE {
        return end;
    }
    while let Some(next) = after_line_end(text, end) {
        let next_end = run_end(text, next);
        let is_whole_line =
            text.get(next_end).is_none_or(|byte| matches!(byte, b'\r' | b'\n' | b'\\' | b'"'));
        match next_end - next {
            length if length == width => end = next_end,
            length if length < width && length % 4 == 0 && is_whole_line => return next_end,
            _ => break,
        }
    }
    end
}

/// The beginning of the next line, if a line ends at `end`. In JSON within a text, line ends are escaped.
fn after_line_end(text: &[u8], end: usize) -> Option<usize> {
    let rest = text.get(end..)?;
    let ends: [&[u8]; 4] = [b"\n", b"\r\n", b"\\n", b"\\r\\n"];
    ends.into_iter().find(|line_end| rest.starts_with(line_end)).map(|line_end| end + line_end.len())
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// Whether this is base64, and not a word, a path, a hexadecimal number or a line of dashes.
fn is_data(run: &[u8]) -> bool {
    let count = |belongs: fn(&u8) -> bool| run.iter().filter(|byte| belongs(byte)).count();
    let has = |belongs: fn(&u8) -> bool, one_of: usize| count(belongs) * one_of >= run.len();
    run.len() >= SHORTEST_ALONE
        && has(u8::is_ascii_uppercase, 64)
        && has(u8::is_ascii_lowercase, 64)
        && has(u8::is_ascii_digit, 256)
        && !has(|byte| matches!(byte, b'/' | b'-' | b'_'), 8)
}

/// A note about the file in a block, in any of the formats in use.
pub(super) fn note_about_file(block: &Map<String, Value>) -> Option<String> {
    note_in(block, None, 0)
}

fn note_in(fields: &Map<String, Value>, media_type: Option<&str>, depth: usize) -> Option<String> {
    let text = |names: &[&str]| names.iter().find_map(|name| fields.get(*name)?.as_str());
    let media_type = text(&["media_type", "mime_type", "mimeType"]).or(media_type);
    if let Some(data) = text(&["data", "b64_json"]).filter(|data| !data.is_empty()) {
        return Some(note(media_type, data));
    }
    fields.values().find_map(|value| match value {
        Value::String(text) if text.starts_with("data:") => {
            let (head, data) = text.split_once(";base64,")?;
            Some(note(head.get("data:".len()..)?.split(';').next(), data))
        }
        Value::Object(inner) if depth < MAX_DEPTH => note_in(inner, media_type, depth + 1),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
