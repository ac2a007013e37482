//! Regular expressions written for Go, compiled on first use.

use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

/// A regular expression over bytes. `\w`, `\d`, `\s`, `\b` and `(?i)` mean ASCII, as they do in Go.
#[derive(Debug)]
pub(super) struct Pattern {
    source: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    pub(super) fn new(source: &str) -> Self {
        Self { source: escape_braces(source), compiled: OnceLock::new() }
    }

    /// The compiled expression; `None` if it is invalid. A test checks that all rules are valid.
    pub(super) fn regex(&self) -> Option<&Regex> {
        let compile = || match RegexBuilder::new(&self.source).unicode(false).build() {
            Ok(regex) => Some(regex),
            Err(error) => {
                tracing::warn!(%error, "a rule for secrets is invalid and is not used");
                None
            }
        };
        self.compiled.get_or_init(compile).as_ref()
    }

    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }
}

/// Escapes each literal `{`. In Go, a `{` without a number after it is literal; in Rust it is an error.
fn escape_braces(source: &str) -> String {
    let mut escaped = String::with_capacity(source.len());
    let mut in_class = false;
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                escaped.push(c);
                let next = chars.next();
                escaped.extend(next);
                if matches!(next, Some('p' | 'P' | 'x')) {
                    escaped.extend(chars.next_if_eq(&'{'));
                }
                continue;
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '{' if !in_class && !chars.peek().is_some_and(char::is_ascii_digit) => escaped.push('\\'),
            _ => {}
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_literal_braces_are_escaped() {
        assert_eq!(escape_braces(r"^\${(?:[A-Z_]+)}$"), r"^\$\{(?:[A-Z_]+)}$");
        assert_eq!(escape_braces(r"a{2,3}[${}]\{\x{7f}\p{L}"), r"a{2,3}[${}]\{\x{7f}\p{L}");
        for source in [r"\$?{{", r"import[ \t]+{", r"^\$(?:\d+|{\d+})$"] {
            assert!(Pattern::new(source).regex().is_some(), "{source}");
        }
    }

    #[test]
    fn classes_are_those_of_ascii() {
        assert!(!Pattern::new(r"^\w$").is_match("é".as_bytes()));
        assert!(Pattern::new(r"(?i)^K$").is_match(b"k"));
        assert!(!Pattern::new(r"(?i)^k$").is_match("\u{212a}".as_bytes()));
    }
}
