//! Escape sequences of terminals: colours, titles of windows, movements of the cursor.

use std::borrow::Cow;

use crate::KnownPart;

const ESCAPE: char = '\u{1b}';

/// The character that begins a control sequence in one character.
const ONE_CHARACTER: char = '\u{9b}';

/// The maximum length of a title or link in an escape sequence, in bytes. Without an end within it, its beginning is
/// only an escape character.
const LONGEST_STRING: usize = 4_096;

/// The maximum number of bytes of the parameters of a control sequence.
const LONGEST_PARAMETERS: usize = 40;

/// Escape characters written out as text, as programs write them in JSON and in logs.
const WRITTEN_OUT: [&str; 5] = ["\\u001b", "\\u001B", "\\x1b", "\\x1B", "^["];

/// The same in the source of shell scripts, where they stay.
const IN_SCRIPTS: [&str; 3] = ["\\033", "\\e", "\\E"];

/// Units that begin like a colour code and a word: `[10min]` is a time.
const UNITS: [&str; 10] = ["mb", "mi", "min", "mins", "minute", "minutes", "mm", "month", "months", "ms"];

/// `text` without escape sequences. An escape character that begins none is left out alone.
#[must_use]
pub fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains([ESCAPE, ONE_CHARACTER]) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find([ESCAPE, ONE_CHARACTER]) {
        let (before, sequence) = rest.split_at(at);
        plain.push_str(before);
        rest = sequence.part(sequence_length(sequence)..);
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// `text` without escape sequences and what is left of them: see [`without_escapes`] and [`without_left_over_codes`].
#[must_use]
pub(crate) fn without_codes(text: &str) -> Cow<'_, str> {
    match without_escapes(text) {
        Cow::Borrowed(text) => without_left_over_codes(text),
        Cow::Owned(plain) => Cow::Owned(without_left_over_codes(&plain).into_owned()),
    }
}

/// `text` without what is left of escape sequences: those that lost their escape character, such as `[31m`, and those
/// that are written out, such as `\u001b[0m`.
#[must_use]
fn without_left_over_codes(text: &str) -> Cow<'_, str> {
    let mut plain = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices('[') {
        let (Some(before), Some(after)) = (text.get(copied..at), text.get(at + 1..)) else { continue };
        let written =
            WRITTEN_OUT.iter().find(|escape| before.ends_with(**escape)).map_or(0, |found| found.len());
        let length = match written {
            0 if IN_SCRIPTS.iter().any(|escape| before.ends_with(escape)) => None,
            0 => left_over(after),
            _ => control_length(after),
        };
        if let Some(length) = length {
            plain.push_str(before.part(..before.len() - written));
            copied = at + 1 + length;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    plain.push_str(text.part(copied..));
    Cow::Owned(plain)
}

/// The end of the colour code whose parameters begin at `start`, if a word follows it: `[31mword` is not the word `31mword`.
/// The code has lost its escape character, or that is written out.
#[must_use]
pub(super) fn end_before_word(text: &str, start: usize) -> Option<usize> {
    let before = text.part(..start);
    let before = before.strip_suffix('?').unwrap_or(before);
    let code = text.part(before.len()..);
    let length = left_over(code).filter(|_| before.ends_with('['))?;
    code.part(length..).starts_with(char::is_alphanumeric).then_some(before.len() + length)
}

/// Whether a word of `text` follows a code without a space between them: see [`end_before_word`].
#[must_use]
pub(crate) fn has_codes_before_words(text: &str) -> bool {
    let after = text.match_indices('[').map(|(at, _)| at + 1);
    after
        .map(|at| at + usize::from(text.part(at..).starts_with('?')))
        .any(|at| end_before_word(text, at).is_some())
}

/// The length of the escape sequence at the beginning of `text`.
fn sequence_length(text: &str) -> usize {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let rest = text.part(first..);
    if text.starts_with(ONE_CHARACTER) {
        return first + control_length(rest).unwrap_or(0);
    }
    match rest.as_bytes().first() {
        Some(b'[') => 2 + control_length(rest.part(1..)).unwrap_or(0),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => 2 + string_length(rest.part(1..)).unwrap_or(0),
        // A character set: two characters.
        Some(b'(' | b')' | b'*' | b'+' | b'#' | b'%') => 2 + usize::from(rest.is_char_boundary(2)),
        Some(b'0'..=b'~') => 2,
        _ => first,
    }
}

/// The length of a control sequence after its `[`: parameters, then a final character.
fn control_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let end = bytes.iter().take(LONGEST_PARAMETERS).position(|byte| !(0x20..=0x3f).contains(byte))?;
    let is_final = bytes.get(end).is_some_and(|byte| (0x40..=0x7e).contains(byte));
    is_final.then_some(end + 1)
}

/// The length of a title or link, with its end.
fn string_length(text: &str) -> Option<usize> {
    let ends = text.char_indices().take_while(|(at, _)| *at < LONGEST_STRING);
    ends.filter_map(|(at, c)| match c {
        '\u{7}' | '\u{9c}' => Some(at + c.len_utf8()),
        ESCAPE if text.part(at..).starts_with("\u{1b}\\") => Some(at + 2),
        _ => None,
    })
    .next()
}

/// The length of a colour or mode after a `[` without an escape character: `31m`, `0;32m`, `?25l`. An index, a duration
/// such as `[1m]`, or a number with a unit is none.
fn left_over(text: &str) -> Option<usize> {
    let (parameters, is_mode) = match text.strip_prefix('?') {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let end = parameters
        .bytes()
        .take(LONGEST_PARAMETERS)
        .position(|byte| !byte.is_ascii_digit() && byte != b';')?;
    let last = parameters.as_bytes().get(end)?;
    let is_code = end > 0 && if is_mode { matches!(last, b'h' | b'l') } else { *last == b'm' };
    let after = parameters.get(end + 1..).unwrap_or_default();
    let is_range = after.strip_prefix(':').is_some_and(|step| step.starts_with(|c: char| c.is_ascii_digit()));
    let is_index = after.starts_with(']') || is_range;
    let word = parameters.part(end..).split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_unit = !is_mode && UNITS.contains(&word);
    (is_code && !is_index && !is_unit).then_some(usize::from(is_mode) + end + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escape_sequences_are_left_out() {
        let cases = [
            ("\u{1b}[0m\u{1b}[36m[test]\u{1b}[0m \u{1b}[1;31mERROR\u{1b}[0m task", "[test] ERROR task"),
            ("\u{1b}]11;?\u{1b}\\\u{1b}[6nyou have", "you have"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;https://a.example\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{9b}31mred\u{1b}(Bx\u{1b}7y\u{1b}", "redxy"),
            ("\u{1b}[?25l\u{1b}[2K", ""),
            ("an \u{1b}é, \u{1b}]no end", "an é, no end"),
            ("\u{1b}[38;2;144;144;144m←", "←"),
        ];
        for (text, plain) in cases {
            assert_eq!(without_escapes(text), plain);
        }
        assert!(matches!(without_escapes("[31m"), Cow::Borrowed("[31m")));
    }

    #[test]
    fn left_over_codes_are_left_out() {
        let cases = [
            ("[31mERROR[0m: x[1;32m", "ERROR: x"),
            ("entries.[?25l[?2004h\n[38;2;144;144;144m←[0m", "entries.\n←"),
            ("^[[31mred^[[0m", "red"),
            (r"a \u001b[0mb\x1b[1;31mc\x1B[2Kd", "a bcd"),
        ];
        for (text, plain) in cases {
            assert_eq!(without_left_over_codes(text), plain);
        }
        for other in [
            "sonnet[1m]",
            "[10min] took [12ms, 5mb]",
            "rate(x[5m])",
            "x[5m:1m]",
            "[31] [m [ma",
            r"RED='\033[0;31m'",
            r"\e[0m",
            "[lint] $ go",
            "[",
            "[?2x",
        ] {
            assert!(matches!(without_left_over_codes(other), Cow::Borrowed(_)), "{other}");
        }
    }

    #[test]
    fn codes_before_words_are_no_part_of_them() {
        for (text, start, end) in [
            ("[31mword", 1, Some(4)),
            (r"\u001b[0;31mword", 7, Some(12)),
            ("[?25l字", 2, Some(5)),
            ("[31m word", 1, None),
            ("[31m'", 1, None),
            ("[10min]", 1, None),
            ("31mword", 0, None),
        ] {
            assert_eq!(end_before_word(text, start), end, "{text}");
            assert_eq!(has_codes_before_words(text), end.is_some(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "(\u{1b}|\u{9b}|\\[|\\]|[0-9;?m]|\\\\u001b|\u{7}|\\PC){0,40}") {
            let plain = without_escapes(&text);
            prop_assert!(!plain.contains([ESCAPE, ONE_CHARACTER]));
            let _ = (without_left_over_codes(&text), has_codes_before_words(&text));
        }
    }
}
