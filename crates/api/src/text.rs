//! Text that is safe to show on terminals, in pages and in pictures: without control characters, shortened, with
//! readable amounts.

use std::fmt::Write as _;

use amplifier_session_core::{model::Cost, text::grouped};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// `text` without control characters and invisible characters, except line breaks and tabs: the output of tools may
/// contain escape sequences, and pasted text may hide something.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().filter_map(|c| if matches!(c, '\n' | '\t') { Some(c) } else { visible(c) }).collect()
}

/// `text` on one line: white space is collapsed, and control characters are made visible.
#[must_use]
pub fn one_line(text: &str) -> String {
    let words = text.split_whitespace().map(|word| word.chars().filter_map(visible).collect::<String>());
    let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// The visible form of `c`: nothing for a carriage return and for invisible characters, a symbol for other control
/// characters, or else `c` itself.
#[must_use]
pub fn visible(c: char) -> Option<char> {
    match c {
        '\r' => None,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        c if c.is_control() => Some('\u{fffd}'),
        c if is_hidden(c) => None,
        c => Some(c),
    }
}

/// JSON in which control characters and invisible characters in strings are escaped.
#[must_use]
pub fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // These are between values: in strings, JSON escapes them.
            '\n' | '\r' | '\t' => escaped.push(' '),
            c if c.is_control() || is_hidden(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(escaped, "\\u{unit:04x}");
                }
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Whether a character is invisible: it changes the direction of text, so that a line reads differently, or has no
/// width, so that it can hide text.
///
/// These are Unicode's default ignorable characters, its direction marks, and its line and paragraph separators.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        // Tag characters, and the variation selectors after the first sixteen.
        | '\u{e0000}'..='\u{e0fff}')
}

/// The first `columns` columns of `text`, with an ellipsis if it is cut.
#[must_use]
pub fn fitted(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    beside_ellipsis(text.chars(), columns).chain(['…']).collect()
}

/// The last `columns` columns of `text`, with an ellipsis if it is cut.
#[must_use]
pub fn fitted_end(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let end: Vec<char> = beside_ellipsis(text.chars().rev(), columns).collect();
    std::iter::once('…').chain(end.into_iter().rev()).collect()
}

/// The first characters that fit into `columns` columns together with an ellipsis.
fn beside_ellipsis(chars: impl Iterator<Item = char>, columns: usize) -> impl Iterator<Item = char> {
    let mut used = 1;
    chars.take_while(move |c| {
        used += c.width().unwrap_or(0);
        used <= columns
    })
}

/// A cost in dollars, rounded to cents, or nothing if it is 0.
#[must_use]
pub fn cost(dollars: Cost) -> String {
    match u64::try_from(dollars.cents()).unwrap_or(0) {
        _ if dollars <= Cost::ZERO => String::new(),
        0 => "<$0.01".to_owned(),
        cents => format!("${}.{:02}", grouped(cents / 100), cents % 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        assert_eq!(printable("\x1b[31mred\x1b[0m\r\n\tx\u{9b}y"), "␛[31mred␛[0m\n\tx\u{fffd}y");
        assert_eq!(one_line(" a\n\n b\t\x07c\u{202e} "), "a b ␇c");
    }

    #[test]
    fn invisible_characters_are_left_out() {
        let hidden = "\u{200b}\u{200d}\u{feff}\u{2066}\u{202e}\u{e0041}\u{e0101}\u{fe0f}\u{fe00}\u{ad}\u{2028}\u{2062}";
        assert_eq!(printable(&format!("a{hidden}b")), "ab");
        assert_eq!(one_line(&format!(" a {hidden} b{hidden}")), "a b");
        assert_eq!(printable("naïve 日本語 कि 😀 שלום"), "naïve 日本語 कि 😀 שלום");
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let value = serde_json::json!({"a": "x\u{1b}[31m\u{7f}\u{9b}\u{200b}\u{202e}\u{e0041}\u{fe0f}y", "日": "語\n"});
        let json = serde_json::to_string_pretty(&value).unwrap();
        let shown = escaped(&json);
        assert!(shown.chars().all(|c| !c.is_control() && !is_hidden(c)), "{shown:?}");
        assert!(shown.contains("\\udb40\\udc41") && shown.contains("日"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn text_that_is_too_wide_is_cut() {
        assert_eq!(fitted("abc", 3), "abc");
        assert_eq!(fitted("abcd", 3), "ab…");
        assert_eq!(fitted("日本語", 5), "日本…");
        assert_eq!(fitted("日本語", 4), "日…");
        assert_eq!(fitted_end("-home-ana-payments", 18), "-home-ana-payments");
        assert_eq!(fitted_end("-home-ana-payments", 9), "…payments");
        assert_eq!(fitted_end("日本語", 4), "…語");
    }

    #[test]
    fn costs_are_readable() {
        let costs =
            ["0", "0.004", "0.005", "0.01", "1.239", "12345.6", "-3"].map(|text| cost(text.parse().unwrap()));
        assert_eq!(costs, ["", "<$0.01", "$0.01", "$0.01", "$1.24", "$12,345.60", ""]);
    }
}
