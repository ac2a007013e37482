//! A text as a person reads it: without the escapes of JSON strings, HTML, URLs and terminals.
//!
//! Text that an agent reads is often in a JSON string, which may be in another one. Each view removes one level of
//! escapes from the whole text, and maps its bytes to positions in the previous view.

use std::ops::Range;

use amplifier_session_core::KnownPart;

/// The maximum number of levels that are removed. Each level of JSON doubles the backslashes, so real texts have far
/// fewer.
const MOST_LEVELS: usize = 24;

/// A text without one level of escapes.
struct UnescapedView {
    text: String,
    /// Pairs of a byte in the view and a byte in the previous text, in order. From each pair on, both advance together
    /// until the next pair.
    places: Vec<(usize, usize)>,
}

/// A text and all views of it.
pub(super) struct Views<'a> {
    text: &'a str,
    views: Vec<UnescapedView>,
}

impl<'a> Views<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let mut views: Vec<UnescapedView> = Vec::new();
        while views.len() < MOST_LEVELS {
            let last = views.last().map_or(text, |view| &view.text);
            let Some(view) = UnescapedView::of(last) else { break };
            views.push(view);
        }
        Self { text, views }
    }

    /// The text itself, and then each view.
    pub(super) fn levels(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.text).chain(self.views.iter().map(|view| view.text.as_str()))
    }

    /// Maps a `span` of a level to the text.
    pub(super) fn original(&self, level: usize, span: Range<usize>) -> Range<usize> {
        let through = |at: usize| self.views.iter().take(level).rev().fold(at, |at, view| view.place(at));
        through(span.start)..through(span.end)
    }
}

impl UnescapedView {
    /// `None` if there are no escapes in `text`.
    fn of(text: &str) -> Option<Self> {
        let is_special = |byte: u8| matches!(byte, b'\\' | b'&' | b'%' | 0x1b);
        if !text.bytes().any(is_special) {
            return None;
        }
        let mut view = Self { text: String::with_capacity(text.len()), places: vec![(0, 0)] };
        let (mut done, mut at) = (0, 0);
        while let Some(next) = text.bytes().skip(at).position(is_special).map(|offset| at + offset) {
            let Some((decoded, length)) = decode(text.part(next..)) else {
                at = next + 1;
                continue;
            };
            view.text.push_str(text.part(done..next));
            view.place_at(next);
            view.text.extend(decoded);
            (done, at) = (next + length, next + length);
            view.place_at(done);
        }
        if done == 0 {
            return None;
        }
        view.text.push_str(text.part(done..));
        Some(view)
    }

    /// Maps the end of the view to `place`.
    fn place_at(&mut self, place: usize) {
        let here = self.text.len();
        self.places.pop_if(|(at, _)| *at == here);
        self.places.push((here, place));
    }

    fn place(&self, at: usize) -> usize {
        let after = self.places.partition_point(|(from, _)| *from <= at);
        let entry = self.places.get(after.saturating_sub(1));
        entry.map_or(at, |(from, place)| place + (at - from))
    }
}

/// Decodes the escape at the beginning of `text`; also returns its length in bytes.
fn decode(text: &str) -> Option<(Option<char>, usize)> {
    let bytes = text.as_bytes();
    match bytes.first()? {
        b'\\' => match bytes.get(1)? {
            byte @ (b'"' | b'\'' | b'`' | b'\\' | b'/') => Some((Some(char::from(*byte)), 2)),
            b'n' => Some((Some('\n'), 2)),
            b'r' => Some((Some('\r'), 2)),
            b't' => Some((Some('\t'), 2)),
            b'u' => utf16(text),
            b'x' => hex(text, 2..4).map(|code| (char::from_u32(code), 4)),
            _ => None,
        },
        b'&' => entity(text),
        b'%' => {
            let code = hex(text, 1..3)?;
            (0x20..0x7f).contains(&code).then(|| (char::from_u32(code), 3))
        }
        0x1b => terminal(bytes).map(|length| (None, length)),
        _ => None,
    }
}

fn hex(text: &str, digits: Range<usize>) -> Option<u32> {
    let digits = text.get(digits)?;
    digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then(|| u32::from_str_radix(digits, 16).ok())
        .flatten()
}

/// Decodes `\uXXXX`, or a surrogate pair of them. An unpaired surrogate becomes U+FFFD.
fn utf16(text: &str) -> Option<(Option<char>, usize)> {
    let first = hex(text, 2..6)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)), 6));
    }
    let second = text.get(6..8).filter(|start| *start == "\\u").and_then(|_| hex(text, 8..12));
    match second.filter(|second| (0xdc00..0xe000).contains(second)) {
        Some(second) => Some((char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)), 12)),
        None => Some((Some(char::REPLACEMENT_CHARACTER), 6)),
    }
}

fn entity(text: &str) -> Option<(Option<char>, usize)> {
    const ENTITIES: [(&str, char); 9] = [
        ("&quot;", '"'),
        ("&#34;", '"'),
        ("&#x22;", '"'),
        ("&apos;", '\''),
        ("&#39;", '\''),
        ("&#x27;", '\''),
        ("&amp;", '&'),
        ("&lt;", '<'),
        ("&gt;", '>'),
    ];
    let (name, decoded) = ENTITIES.iter().find(|(name, _)| text.starts_with(name))?;
    Some((Some(*decoded), name.len()))
}

/// The length of a terminal's escape sequence, such as a colour.
fn terminal(bytes: &[u8]) -> Option<usize> {
    const MOST: usize = 24;
    let parameters = bytes.strip_prefix(b"\x1b[")?;
    let end = parameters.iter().take(MOST).position(|byte| (0x40..0x7f).contains(byte))?;
    Some(2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(text: &str) -> Vec<String> {
        Views::of(text).levels().map(str::to_owned).collect()
    }

    /// The part of the text that `part` of the level maps to.
    fn original<'a>(text: &'a str, level: usize, part: &str) -> &'a str {
        let views = Views::of(text);
        let start = views.levels().nth(level).unwrap().find(part).unwrap();
        &text[views.original(level, start..start + part.len())]
    }

    #[test]
    fn each_view_removes_one_level_of_escapes() {
        assert_eq!(levels("plain & simple, 100 %"), ["plain & simple, 100 %"]);
        assert_eq!(levels(r#"{"a": "b\n\"c\""}"#).last().unwrap(), "{\"a\": \"b\n\"c\"\"}");
        assert_eq!(levels(r#"\\\"x\\\""#), [r#"\\\"x\\\""#, r#"\"x\""#, "\"x\""]);
        assert_eq!(levels("a &amp;quot;b%22 \u{1b}[1;31mc\u{1b}[0m")[2], "a \"b\" c");
        assert_eq!(levels(r"\u0070\ud83d\udd11\ud83d\x41\q")[1], "p\u{1f511}\u{fffd}A\\q");
        assert_eq!(levels(r"C:\windows \u12 \").len(), 1);
    }

    #[test]
    fn spans_are_mapped_to_the_text() {
        let text = r#"é {"o": "{\"k\": \"va\\\"l\\u00e9\"}"} é"#;
        assert_eq!(original(text, 0, "é {"), "é {");
        assert_eq!(original(text, 1, r#""va\"l\u00e9""#), r#"\"va\\\"l\\u00e9\""#);
        assert_eq!(original(text, 2, r#"va"lé"#), r#"va\\\"l\\u00e9"#);
        assert_eq!(original(text, 2, "} é").chars().last(), Some('é'));
        assert_eq!(original("a\u{1b}[1mb\u{1b}[0mc", 1, "b"), "b\u{1b}[0m");
    }

    #[test]
    fn levels_are_limited() {
        let text = format!("&{}", "amp;".repeat(5_000));
        assert_eq!(levels(&text).len(), MOST_LEVELS + 1);
        assert!(levels(&"\\".repeat(100_000)).len() < 20);
    }
}
