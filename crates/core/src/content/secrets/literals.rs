//! The strings in a JSON text, and the characters that they represent.

use std::{borrow::Cow, ops::Range};

use crate::KnownPart;

/// A string in a JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Literal {
    /// The range in bytes, without the quotes.
    pub(super) span: Range<usize>,
    /// Whether it is the key of an object.
    pub(super) is_key: bool,
}

impl Literal {
    /// Whether `span` lies completely within it.
    pub(super) fn contains(&self, span: &Range<usize>) -> bool {
        self.span.start <= span.start && span.end <= self.span.end
    }
}

/// All strings of a JSON text, in order.
pub(super) fn literals(text: &str) -> Vec<Literal> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = position(bytes, at, |byte| byte == b'"').map(|quote| quote + 1) {
        let end = end_of(bytes, start);
        let after = position(bytes, end + 1, |byte| !byte.is_ascii_whitespace());
        let is_key = after.and_then(|after| bytes.get(after)) == Some(&b':');
        found.push(Literal { span: start..end, is_key });
        at = end + 1;
    }
    found
}

fn position(bytes: &[u8], from: usize, is_it: impl Fn(u8) -> bool) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.iter().position(|byte| is_it(*byte)).map(|offset| from + offset)
}

/// The end of the string that begins at `start`.
fn end_of(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        match position(bytes, at, |byte| matches!(byte, b'"' | b'\\')) {
            Some(escape) if bytes.get(escape) == Some(&b'\\') => at = escape + 2,
            Some(quote) => return quote,
            None => return bytes.len(),
        }
    }
}

/// The character at `at` in a string, and the length of its written form in bytes.
pub(super) fn character(text: &str, at: usize) -> Option<(char, usize)> {
    let rest = text.get(at..)?;
    let first = rest.chars().next()?;
    let escaped = match rest.as_bytes().get(1).filter(|_| first == '\\') {
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(byte @ (b'"' | b'\\' | b'/')) => char::from(*byte),
        Some(b'u') => return Some(utf16(rest).unwrap_or((first, 1))),
        _ => return Some((first, first.len_utf8())),
    };
    Some((escaped, 2))
}

/// The character of a JSON escape (`\u` and four hexadecimal digits), or of a surrogate pair of two escapes.
fn utf16(rest: &str) -> Option<(char, usize)> {
    let unit = |at: usize| u32::from_str_radix(rest.get(at..at + 4)?, 16).ok();
    let first = unit(2)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 6));
    }
    let second = rest.get(6..8).filter(|start| *start == "\\u").and_then(|_| unit(8));
    let pair = second.filter(|second| first < 0xdc00 && (0xdc00..0xe000).contains(second));
    let pair = pair.and_then(|second| char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)));
    Some(pair.map_or((char::REPLACEMENT_CHARACTER, 6), |character| (character, 12)))
}

/// The decoded content of a string.
#[derive(Debug)]
pub(super) struct Decoded<'a> {
    pub(super) text: Cow<'a, str>,
    /// Pairs of a byte in `text` and a byte in the JSON text, in order. From each pair on, both advance together until
    /// the next one.
    places: Vec<(usize, usize)>,
}

impl<'a> Decoded<'a> {
    pub(super) fn of(json: &'a str, literal: &Literal) -> Self {
        let Range { start, end } = literal.span;
        let written = json.part(start..end);
        if !written.contains('\\') {
            return Self { text: Cow::Borrowed(written), places: vec![(0, start)] };
        }
        let (mut text, mut places) = (String::with_capacity(written.len()), vec![(0, start)]);
        let mut at = start;
        while at < end {
            let plain = json.part(at..end);
            let escape = plain.find('\\').unwrap_or(plain.len());
            text.push_str(plain.part(..escape));
            at += escape;
            let Some((decoded, length)) = character(json, at).filter(|_| at < end) else { break };
            places.push((text.len(), at));
            text.push(decoded);
            at += length;
            places.push((text.len(), at));
        }
        Self { text: Cow::Owned(text), places }
    }

    /// Maps a range of [`Self::text`] to the JSON text.
    pub(super) fn original(&self, span: Range<usize>) -> Range<usize> {
        self.place(span.start)..self.place(span.end)
    }

    fn place(&self, at: usize) -> usize {
        let after = self.places.partition_point(|(from, _)| *from <= at);
        self.places.get(after.saturating_sub(1)).map_or(at, |(from, place)| place + (at - from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_with_their_role() {
        let json = r#"{"a" : "x\"y\\", "b":["",1,"c"]}"#;
        let found: Vec<_> =
            literals(json).iter().map(|literal| (&json[literal.span.clone()], literal.is_key)).collect();
        assert_eq!(found, [("a", true), ("x\\\"y\\\\", false), ("b", true), ("", false), ("c", false)]);
        assert_eq!(literals(r#""open\"#).len(), 1);
    }

    #[test]
    fn ranges_of_the_decoded_text_are_those_of_its_escapes() {
        let json = r#"["é\n\u0041\ud83d\ude00\ud800 \"b\""]"#;
        let decoded = Decoded::of(json, &literals(json)[0]);
        assert_eq!(decoded.text, "é\nA😀\u{fffd} \"b\"");
        for (part, written) in
            [("A😀", r"\u0041\ud83d\ude00"), ("\n", r"\n"), ("\"b\"", r#"\"b\""#), ("é", "é"), (" ", " ")]
        {
            let start = decoded.text.find(part).unwrap();
            assert_eq!(&json[decoded.original(start..start + part.len())], written);
        }
    }
}
