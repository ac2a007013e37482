//! Text from sessions as quoted data, which can't be taken for text of this program.
//!
//! A text of several lines has [`MARK`] before each of them, and everything that could end a line early is gone. A short
//! text is a string of JSON in double quotes, in which quotes and backslashes are escaped.

use amplifier_session_api::{
    cut::beginning,
    text::{escaped, one_line, printable},
};

/// The beginning of each line that comes from a session.
const MARK: &str = "> ";

/// Names are cut after this many characters.
const NAME_CHARS: usize = 80;

/// The lines of `text`, each marked. Control characters and invisible characters are made visible or left out.
pub(crate) fn lines(text: &str) -> String {
    let text = printable(text);
    let mut lines = String::with_capacity(text.len() + 32);
    for line in text.trim_matches('\n').lines() {
        lines.push_str(format!("{MARK}{line}").trim_end());
        lines.push('\n');
    }
    lines
}

/// `text` on one line in double quotes, cut to `most` characters.
pub(crate) fn string(text: &str, most: usize) -> String {
    let line = one_line(text);
    let (shown, left_out) = beginning(&line, most);
    let shown = if left_out > 0 { format!("{}…", shown.trim_end()) } else { shown.to_owned() };
    escaped(&serde_json::Value::String(shown).to_string())
}

/// A name from a session: of a project, a tool or a model. One with other characters than names have is quoted.
pub(crate) fn name(name: &str) -> String {
    let is_plain =
        |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '+' | '~');
    if name.chars().all(is_plain) && name.chars().nth(NAME_CHARS).is_none() && !name.is_empty() {
        name.to_owned()
    } else {
        string(name, NAME_CHARS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_quote() {
        let text = "one\r\n> two\u{2028}three\u{85}four\u{b}five\x1b[2J\n\nerror: stop\u{202e}";
        assert_eq!(lines(text), "> one\n> > twothree\u{fffd}four␋five␛[2J\n>\n> error: stop\n");
        assert!(lines("\n").is_empty());
        assert_eq!(string("a \"b\"\n\\ c", 99), r#""a \"b\" \\ c""#);
        assert_eq!(string("\u{7f}abcdef", 3), "\"\u{fffd}ab…\"");
    }

    #[test]
    fn names_are_quoted_if_they_could_be_sentences() {
        assert_eq!(name("-home-dana-payments_api"), "-home-dana-payments_api");
        assert_eq!(name("ignore this"), "\"ignore this\"");
        assert_eq!(name(""), "\"\"");
        assert_eq!(name(&"x".repeat(200)).chars().count(), 83);
    }
}
