//! Raw JSON: what came in, kept byte for byte.

use std::{borrow::Cow, fmt};

use serde_json::{Map, Value};

use crate::{Error, Result};

/// One JSON text as it came in, without its line ending.
///
/// Numbers, key order, unknown fields and lone surrogates survive because nothing re-writes the bytes; fields
/// are derived from [`RawJson::parse`], which replaces what is not valid Unicode with U+FFFD.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct RawJson(Vec<u8>);

impl RawJson {
    /// Wraps `bytes` without looking at them.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes as they came in.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as they came in.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The text, with what is not valid UTF-8 replaced.
    #[must_use]
    pub fn to_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// The value, with lone surrogates and invalid UTF-8 replaced by U+FFFD.
    ///
    /// # Errors
    ///
    /// `Validation` when the bytes are not one JSON text.
    pub fn parse(&self) -> Result<Value> {
        parse(&self.0)
    }

    /// The value, which must be an object.
    ///
    /// # Errors
    ///
    /// `Validation` when the bytes are not one JSON object.
    pub fn parse_object(&self) -> Result<Map<String, Value>> {
        match self.parse()? {
            Value::Object(object) => Ok(object),
            _ => Err(Error::validation("line", "is not a JSON object")),
        }
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 120;
        let text = String::from_utf8_lossy(&self.0[..self.0.len().min(SHOWN)]);
        write!(f, "RawJson({} bytes, {text:?})", self.0.len())
    }
}

impl From<&str> for RawJson {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

fn parse(bytes: &[u8]) -> Result<Value> {
    match serde_json::from_slice(bytes) {
        Ok(value) => Ok(value),
        Err(first) => match repaired(bytes).map(|bytes| serde_json::from_slice(&bytes)) {
            Some(Ok(value)) => Ok(value),
            Some(Err(_)) | None => {
                Err(Error::validation("line", format!("is not valid JSON: {first}")).with_source(first))
            }
        },
    }
}

/// The text with invalid UTF-8 and escaped lone surrogates replaced; `None` when there are none.
fn repaired(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = String::from_utf8_lossy(bytes).into_owned().into_bytes();
    let mut changed = text != bytes;
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            at += 1;
            continue;
        }
        match escaped_unit(&text, at) {
            Some(0xD800..=0xDBFF) if matches!(escaped_unit(&text, at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                text[at..at + 6].copy_from_slice(b"\\ufffd");
                changed = true;
                at += 6;
            }
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    changed.then_some(text)
}

/// The UTF-16 code unit of an escape `\uXXXX` at `at`.
fn escaped_unit(text: &[u8], at: usize) -> Option<u16> {
    let escape = text.get(at..at + 6)?;
    let digits = std::str::from_utf8(escape.strip_prefix(b"\\u")?).ok()?;
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(raw: &[u8]) -> String {
        RawJson::new(raw).parse_object().unwrap()["a"].as_str().unwrap().to_owned()
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_kept() {
        assert_eq!(text_of(br#"{"a":"x\ud800y"}"#), "x\u{FFFD}y");
        assert_eq!(text_of(br#"{"a":"\udc00\ud83d\ude00\ud83d"}"#), "\u{FFFD}😀\u{FFFD}");
        assert_eq!(text_of(br#"{"a":"\\ud800 \ud800"}"#), "\\ud800 \u{FFFD}");
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(text_of(b"{\"a\":\"caf\xe9\"}"), "caf\u{FFFD}");
    }

    #[test]
    fn nul_and_line_separators_are_ordinary() {
        assert_eq!(text_of(b"{\"a\":\"\\u0000\xe2\x80\xa8\"}"), "\0\u{2028}");
    }

    #[test]
    fn broken_json_stays_an_error() {
        for raw in ["", "{", "{\"a\":", "nul", "{} {}", "{\"a\":\"\\ud800"] {
            assert!(RawJson::from(raw).parse().is_err(), "{raw:?}");
        }
        assert!(RawJson::from("[1]").parse_object().is_err());
    }
}
