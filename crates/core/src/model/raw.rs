//! Raw JSON, stored byte for byte.

use std::{borrow::Cow, fmt};

use serde_json::{Map, Value};

use super::tolerant;
use crate::{Error, ErrorField, Result};

/// An original JSON text, without its line ending.
///
/// Numbers, key order, unknown fields and lone surrogates are preserved, because the bytes are never rewritten. Fields
/// are derived with [`RawJson::parse`], which accepts text that other parsers reject.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct RawJson(Vec<u8>);

impl RawJson {
    /// Wraps `bytes` without parsing them.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The original bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The original bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The text, with invalid UTF-8 replaced.
    #[must_use]
    pub fn to_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// The value, with lone surrogates and invalid UTF-8 replaced by U+FFFD, and with null for input that a JSON value
    /// can't represent: `NaN`, infinities, numbers beyond the range of a double, and values nested more than 100 levels
    /// deep.
    ///
    /// # Errors
    ///
    /// `Validation` if the bytes are not one JSON text.
    pub fn parse(&self) -> Result<Value> {
        tolerant::parse(&self.0).map_err(|error| {
            Error::validation(ErrorField::Line, format!("is not valid JSON: {error}")).with_source(error)
        })
    }

    /// Whether values are nested more than 100 levels deep, so that other programs may not be able to read it.
    #[must_use]
    pub fn is_deep(&self) -> bool {
        tolerant::is_deep(&self.0)
    }

    /// The value, which must be an object.
    ///
    /// # Errors
    ///
    /// `Validation` if the bytes are not one JSON object.
    pub fn parse_object(&self) -> Result<Map<String, Value>> {
        match self.parse()? {
            Value::Object(object) => Ok(object),
            _ => Err(Error::validation(ErrorField::Line, "is not a JSON object")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_and_invalid_utf8_are_replaced() {
        let cases: [(&[u8], &str); 5] = [
            (br#"{"a":"x\ud800y"}"#, "x\u{FFFD}y"),
            (br#"{"a":"\udc00\ud83d\ude00\ud83d"}"#, "\u{FFFD}😀\u{FFFD}"),
            (br#"{"a":"\\ud800 \ud800"}"#, "\\ud800 \u{FFFD}"),
            (b"{\"a\":\"caf\xe9\"}", "caf\u{FFFD}"),
            // NUL and line separators are ordinary characters.
            (b"{\"a\":\"\\u0000\xe2\x80\xa8\"}", "\0\u{2028}"),
        ];
        for (raw, expected) in cases {
            assert_eq!(RawJson::new(raw).parse_object().unwrap()["a"], expected);
        }
    }

    #[test]
    fn invalid_json_is_an_error() {
        for raw in ["", "{", "{\"a\":", "nul", "{} {}", "{\"a\":\"\\ud800"] {
            assert!(RawJson::from(raw).parse().is_err(), "{raw:?}");
        }
        assert!(RawJson::from("[1]").parse_object().is_err());
    }
}
