//! Tolerant parsing of JSON.
//!
//! Python's `json` writes `NaN` and `Infinity`, numbers may exceed the range of a double, and values may be nested
//! deeper than a recursive parser can handle. The other fields of lines like these can still be read.

use serde::de::IgnoredAny;
use serde_json::{Error, Value};

/// The maximum nesting depth; deeper values are read as null. It is well below the limit of `serde_json`, 128, so that
/// parsed values can be written and parsed again as part of other values.
pub(super) const MAX_DEPTH: usize = 100;

/// The value of a JSON text. `NaN`, infinities, numbers beyond the range of a double and values deeper than
/// [`MAX_DEPTH`] are null; lone surrogates and invalid UTF-8 are U+FFFD.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, Error> {
    let first = match serde_json::from_slice(bytes) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let repaired = repaired(bytes);
    if let Some(value) = repaired.as_ref().and_then(|text| serde_json::from_slice(text).ok()) {
        return Ok(value);
    }
    let text = repaired.as_deref().unwrap_or(bytes);
    match serde_json::from_slice::<IgnoredAny>(text) {
        // It is valid, so only the depth is the problem.
        Ok(_) => serde_json::from_slice(&shallow(text)),
        Err(_) => Err(first),
    }
}

/// Whether values of a JSON text are nested deeper than [`MAX_DEPTH`].
pub(super) fn is_deep(bytes: &[u8]) -> bool {
    let mut depth = Depth::default();
    bytes.iter().any(|byte| depth.after(*byte) > MAX_DEPTH)
}

/// The text with the parts replaced that `serde_json` rejects; `None` if there are none.
fn repaired(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(bytes);
    let mut repaired = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some(first) = rest.first() {
        let (token, after) = rest.split_at(match first {
            b'"' => string_end(rest),
            byte if is_of_word(*byte) => {
                rest.iter().position(|byte| !is_of_word(*byte)).unwrap_or(rest.len())
            }
            _ => 1,
        });
        match first {
            b'"' => push_string(&mut repaired, token),
            _ if is_no_number(token) => repaired.extend(b"null"),
            _ => repaired.extend(token),
        }
        rest = after;
    }
    (repaired != bytes).then_some(repaired)
}

/// Whether a byte can be part of a number or of a name such as `null`.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

/// Whether a word is a number that JSON or a double can't represent.
fn is_no_number(word: &[u8]) -> bool {
    let is_infinite = || {
        let number = std::str::from_utf8(word).ok().and_then(|word| word.parse::<f64>().ok());
        number.is_some_and(f64::is_infinite)
    };
    let begins_number = || matches!(word, [b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..]);
    matches!(word, b"NaN" | b"Infinity" | b"-Infinity" | b"-NaN") || (begins_number() && is_infinite())
}

/// The end of the string at the beginning of `text`.
fn string_end(text: &[u8]) -> usize {
    let mut escaped = false;
    let is_end = |byte: &u8| {
        let is_end = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        is_end
    };
    text.iter().skip(1).position(is_end).map_or(text.len(), |at| at + 2)
}

/// Adds a string, with escaped lone surrogates replaced.
fn push_string(to: &mut Vec<u8>, mut string: &[u8]) {
    while let Some(at) = string.iter().position(|byte| *byte == b'\\') {
        let (plain, escape) = string.split_at(at);
        to.extend(plain);
        let length = match escaped_unit(escape, 0) {
            Some(0xD800..=0xDBFF) if matches!(escaped_unit(escape, 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(_) => 6,
            None => escape.len().min(2),
        };
        let (escape, after) = escape.split_at(length);
        match escaped_unit(escape, 0) {
            Some(0xD800..=0xDFFF) if length == 6 => to.extend(b"\\ufffd"),
            _ => to.extend(escape),
        }
        string = after;
    }
    to.extend(string);
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

/// A valid JSON text with null in place of values deeper than [`MAX_DEPTH`].
fn shallow(text: &[u8]) -> Vec<u8> {
    let mut depth = Depth::default();
    let mut shallow = Vec::new();
    let mut before = 0;
    for byte in text {
        let now = depth.after(*byte);
        match (before > MAX_DEPTH, now > MAX_DEPTH) {
            (false, false) => shallow.push(*byte),
            (false, true) => shallow.extend(b"null"),
            (true, _) => {}
        }
        before = now;
    }
    shallow
}

/// Tracks the nesting depth, byte by byte.
#[derive(Debug, Default)]
struct Depth {
    open: usize,
    in_string: bool,
    escaped: bool,
}

impl Depth {
    /// The depth after the next byte.
    fn after(&mut self, byte: u8) -> usize {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            b'[' | b'{' if !self.in_string => self.open += 1,
            b']' | b'}' if !self.in_string => self.open = self.open.saturating_sub(1),
            _ => {}
        }
        self.open
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(text: &str) -> Value {
        parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn invalid_numbers_are_null() {
        let text =
            r#"{"a":NaN,"b":[Infinity, -Infinity ,-NaN],"c":1e999,"d":-1E+400,"e":1.5,"f":"NaN, Infinity"}"#;
        let expected = json!({"a":null,"b":[null,null,null],"c":null,"d":null,"e":1.5,"f":"NaN, Infinity"});
        assert_eq!(parsed(text), expected);
        assert_eq!(parsed(&format!("[{}, 7]", "9".repeat(400))), json!([null, 7]));
        assert_eq!(parsed("NaN"), Value::Null);
        assert_eq!(parsed(r#"{"a\"":NaN,"\\":NaN}"#), json!({"a\"": null, "\\": null}));
    }

    #[test]
    fn values_that_are_nested_too_deep_are_null() {
        for levels in [50, MAX_DEPTH, MAX_DEPTH + 1, 127, 128, 10_000, 300_000] {
            let text = format!(r#"{{"a":{}"]["{},"b":1}}"#, "[".repeat(levels), "]".repeat(levels));
            let value = parsed(&text);
            assert_eq!(value["b"], 1, "{levels}");
            let mut inner = &value["a"];
            let mut depth = 0;
            while let Some(next) = inner.get(0) {
                (inner, depth) = (next, depth + 1);
            }
            assert!(depth >= levels.min(MAX_DEPTH - 1), "{levels}: {depth}");
            assert_eq!(is_deep(text.as_bytes()), levels >= MAX_DEPTH, "{levels}");
        }
        let objects = format!("{}1{}", r#"{"a":"#.repeat(9_999), "}".repeat(9_999));
        assert!(parsed(&objects)["a"]["a"].is_object());
    }

    #[test]
    fn all_of_it_at_once() {
        let deep = format!("{}NaN{}", "[".repeat(5_000), "]".repeat(5_000));
        let text = format!(r#"{{"a":"\ud800","b":Infinity,"c":{deep},"d":1e999}}"#);
        let value = parsed(&text);
        assert_eq!((&value["a"], &value["b"], &value["d"]), (&json!("\u{fffd}"), &Value::Null, &Value::Null));
    }

    #[test]
    fn invalid_json_is_an_error() {
        let deep = "[".repeat(10_000);
        let mixed = format!("{}{}", "[".repeat(200), "}".repeat(200));
        let words = [
            "nan",
            "NaNa",
            "1NaN",
            "Infinit",
            "[NaN",
            "{NaN:1}",
            "[1e999x]",
            "+Infinity",
            "\"a",
            "\"\\",
            "\"\\u12",
        ];
        for text in words.into_iter().chain([&*deep, &mixed]) {
            assert!(parse(text.as_bytes()).is_err(), "{text:.20}");
        }
    }
}
