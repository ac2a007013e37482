//! Converts text of any quality to JSON in a line.

use serde_json::{Value, value::RawValue};

/// `text` unchanged, on one line, if it is JSON; otherwise as a JSON string.
pub(crate) fn part(text: &str) -> String {
    match serde_json::from_str::<&RawValue>(text) {
        // Line breaks in JSON are outside of strings, so no value changes.
        Ok(json) => json.get().replace(['\n', '\r'], " "),
        Err(_) => string(text),
    }
}

/// `text` as a JSON string.
pub(crate) fn string(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_and_everything_else_is_a_string() {
        assert_eq!(part(r#"{"a":1.10, "b":"\ud800"}"#), r#"{"a":1.10, "b":"\ud800"}"#);
        assert_eq!(part("[1,\n 2]"), "[1,  2]");
        assert_eq!(part("plain \"text\""), r#""plain \"text\"""#);
        assert_eq!(part("{\"a\":NaN}"), r#""{\"a\":NaN}""#);
        assert_eq!(part(""), "\"\"");
    }
}
