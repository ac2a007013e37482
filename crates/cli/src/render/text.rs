//! Text made fit for a terminal: safe, short, counted.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// `text` without characters that would act on the terminal or that nobody sees, other than line breaks and tabs: what
/// tools print may hold escape sequences, and what people paste may hide something.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter_map(|c| if matches!(c, '\n' | '\t') { Some(c) } else { visible(c) }).collect()
}

/// `text` on one line: white space collapsed, control characters shown.
pub(crate) fn one_line(text: &str) -> String {
    let words = text.split_whitespace().map(|word| word.chars().filter_map(visible).collect::<String>());
    let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// What stands for `c`: itself, nothing for a carriage return and for what nobody sees, a picture for other control
/// characters.
pub(crate) fn visible(c: char) -> Option<char> {
    match c {
        '\r' => None,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        c if c.is_control() => Some('\u{fffd}'),
        c if is_hidden(c) => None,
        c => Some(c),
    }
}

/// JSON that shows what it holds: what would act on a terminal or is invisible is escaped in its strings.
pub(crate) fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // They stand between values: in a string, JSON has them escaped.
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

/// Whether a character is not seen itself: it turns the direction of writing, which makes a line read as another one, or
/// has no width, so that text can be hidden in it.
///
/// These are the characters that Unicode calls ignorable by default, the marks of direction, and the separators of lines
/// and paragraphs.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        // TAG characters, and the variation selectors after the first sixteen.
        | '\u{e0000}'..='\u{e0fff}')
}

/// The first `columns` columns of `text`, with an ellipsis where something is cut off.
pub(crate) fn fitted(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// The last `columns` columns of `text`, with an ellipsis where something is cut off: for what tells most at its end.
pub(crate) fn fitted_end(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    let end: Vec<char> = text.chars().rev().take_while(fits).collect();
    std::iter::once('…').chain(end.into_iter().rev()).collect()
}

/// A duration in milliseconds as people read it.
pub(crate) fn duration(ms: f64) -> String {
    match ms {
        ms if ms < 1_000.0 => format!("{ms:.0} ms"),
        ms if ms < 60_000.0 => format!("{:.1} s", ms / 1_000.0),
        ms => format!("{:.0} min {:02.0} s", (ms / 60_000.0).floor(), ((ms % 60_000.0) / 1_000.0).floor()),
    }
}

/// `count` of something, with the plural where it needs one.
pub(crate) fn counted(count: impl Into<u64>, one: &str) -> String {
    let count = count.into();
    format!("{} {one}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A size in bytes as people read it.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..=1023 => format!("{bytes} B"),
        1024..=1_048_575 => format!("{:.1} KB", bytes as f64 / 1024.0),
        1_048_576..=1_073_741_823 => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GB", bytes as f64 / 1_073_741_824.0),
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
    fn what_nobody_sees_is_left_out() {
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
    fn what_is_too_wide_is_cut() {
        assert_eq!(fitted("abc", 3), "abc");
        assert_eq!(fitted("abcd", 3), "ab…");
        assert_eq!(fitted("日本語", 5), "日本…");
        assert_eq!(fitted("日本語", 4), "日…");
        assert_eq!(fitted_end("-home-ana-payments", 18), "-home-ana-payments");
        assert_eq!(fitted_end("-home-ana-payments", 9), "…payments");
        assert_eq!(fitted_end("日本語", 4), "…語");
    }

    #[test]
    fn numbers_and_sizes_read_well() {
        assert_eq!(
            [duration(12.4), duration(6_209.0), duration(132_370.0)],
            ["12 ms", "6.2 s", "2 min 12 s"]
        );
        assert_eq!(counted(1_u64, "session"), "1 session");
        assert_eq!(counted(1_234_567_u64, "event"), "1,234,567 events");
        assert_eq!(counted(0_u64, "turn"), "0 turns");
        assert_eq!(
            [size(12), size(2048), size(3 << 20), size(5 << 30)],
            ["12 B", "2.0 KB", "3.0 MB", "5.0 GB"]
        );
    }
}
