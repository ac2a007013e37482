//! Lines that break between words, and in scripts without spaces between characters.

use unicode_linebreak::{BreakOpportunity, linebreaks};
use unicode_width::UnicodeWidthChar as _;

/// The parts of a line between which it may break. The first of each comes after a space, or begins the line.
pub(crate) type Pieces<'a> = Vec<&'a str>;

/// Breaks a line between words: see [`lines`].
pub(crate) fn wrapped_words(text: &str, first: &str, below: &str, width: usize) -> Vec<String> {
    let room = width.saturating_sub(columns(below));
    lines(text.split(' ').map(|word| pieces(word, room)), first, below, width)
}

/// Lines of at most `width` columns. The first begins with `first`, the others with `below`, or with less if a piece has no
/// room beside it. A piece that is wider than a line has a line of its own and is not cut, so that it can be copied: the
/// terminal wraps it.
pub(crate) fn lines<'a>(
    words: impl Iterator<Item = Pieces<'a>>,
    first: &str,
    below: &str,
    width: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut used) = (first.to_owned(), columns(first));
    let mut is_empty = true;
    for word in words {
        for (at, piece) in word.into_iter().enumerate() {
            let gap = if at == 0 && !is_empty { " " } else { "" };
            let wide = columns(piece);
            if !is_empty && used + gap.len() + wide > width {
                lines.push(line.trim_end().to_owned());
                (line, used, is_empty) = (below.to_owned(), columns(below), true);
            } else {
                line.push_str(gap);
                used += gap.len();
            }
            if is_empty && used + wide > width && wide <= width {
                // It fits with less indentation.
                lines.extend(Some(line.trim_end().to_owned()).filter(|line| !line.is_empty()));
                (line, used) = (" ".repeat(width - wide), width - wide);
            }
            line.push_str(piece);
            used += wide;
            is_empty = false;
        }
    }
    lines.push(line);
    lines
}

/// The parts of a word between which a line of `width` columns may break: usually, that is the word itself. Chinese and
/// Japanese break by the rules of Unicode, for example not before a full stop. Thai, Lao, Khmer and Burmese, whose rules
/// need a dictionary, break between syllables if they are wider than the line.
pub(crate) fn pieces(word: &str, width: usize) -> Pieces<'_> {
    if word.is_ascii() {
        return vec![word];
    }
    let mut breaks: Vec<usize> = Vec::new();
    if word.chars().any(is_ideographic) {
        let opportunities = linebreaks(word).filter(|(_, kind)| *kind == BreakOpportunity::Allowed);
        breaks.extend(opportunities.map(|(at, _)| at).filter(|at| {
            let (before, after) = word.split_at(*at);
            before.chars().next_back().is_some_and(is_ideographic)
                || after.chars().next().is_some_and(is_ideographic)
        }));
    }
    if columns(word) > width {
        let chars = word.char_indices().zip(word.chars().skip(1));
        let between = chars.filter(|((_, before), c)| is_syllable(*c) && begins_syllable(*before, *c));
        breaks.extend(between.map(|((at, before), _)| at + before.len_utf8()));
        breaks.sort_unstable();
        breaks.dedup();
    }
    let mut pieces = Vec::new();
    let mut rest = word;
    for at in breaks.into_iter().rev() {
        let (before, piece) = rest.split_at(at);
        pieces.push(piece);
        rest = before;
    }
    pieces.push(rest);
    pieces.reverse();
    pieces.retain(|piece| !piece.is_empty());
    if pieces.is_empty() { vec![word] } else { pieces }
}

/// The positions, counted in characters, at which a line of at most `width` columns may begin within `text`: at words, and
/// at the pieces of words.
pub(crate) fn beginnings(text: &str, width: usize) -> Vec<usize> {
    let mut beginnings = Vec::new();
    let mut at = 0;
    for word in text.split([' ', '\t']) {
        for piece in pieces(word, width).into_iter().filter(|piece| !piece.is_empty()) {
            beginnings.push(at);
            at += piece.chars().count();
        }
        // The space.
        at += 1;
    }
    beginnings
}

/// The columns of `text` on a terminal, which puts its characters side by side: ligatures are not counted as one.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().filter_map(|c| c.width()).sum()
}

/// Whether a character is of a script in which lines break between any two characters.
fn is_ideographic(c: char) -> bool {
    c.width() == Some(2)
}

/// Whether a character is of a script without spaces in which only a dictionary tells words: Thai, Lao, Burmese, Khmer.
fn is_syllable(c: char) -> bool {
    matches!(c, '\u{e01}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
}

/// Whether `c` begins a syllable after `before`: it is not a mark or a vowel of the syllable, and `before` is not a vowel
/// that is written first.
fn begins_syllable(before: char, c: char) -> bool {
    let is_written_first = matches!(before, '\u{e40}'..='\u{e44}' | '\u{ec0}'..='\u{ec4}');
    let is_written_last = matches!(c, '\u{e2f}'..='\u{e3a}' | '\u{e45}'..='\u{e4e}' | '\u{eaf}'..='\u{ebd}'
        | '\u{ec6}'..='\u{ece}' | '\u{102b}'..='\u{103e}' | '\u{17b4}'..='\u{17d3}');
    is_syllable(before) && !is_written_first && !is_written_last && c.width() != Some(0)
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        wrapped_words(text, "", "", width)
    }

    #[test]
    fn words_stay_whole() {
        assert_eq!(wrapped("one two-three four/five six", 10), ["one", "two-three", "four/five", "six"]);
        assert_eq!(wrapped("see /home/ana/a/long/path here", 10), ["see", "/home/ana/a/long/path", "here"]);
        assert_eq!(wrapped_words("one two three", "- ", "  ", 7), ["- one", "  two", "  three"]);
        assert_eq!(
            wrapped_words("a/long/path b", "path  ", "      ", 12),
            ["path", " a/long/path", "      b"]
        );
        assert_eq!(wrapped("a  b", 10), ["a  b"]);
        assert_eq!(wrapped("", 10), [""]);
    }

    #[test]
    fn chinese_and_japanese_break_between_characters_and_not_before_punctuation() {
        assert_eq!(wrapped("烤箱太冷了。请修理", 6), ["烤箱太", "冷了。", "请修理"]);
        assert_eq!(wrapped("烤箱太冷。请", 8), ["烤箱太", "冷。请"]);
        assert_eq!(wrapped("a 烤箱太冷 b", 7), ["a 烤箱", "太冷 b"]);
        assert_eq!(wrapped("修理crates/cli/src的错误", 9), ["修理", "crates/cli/src", "的错误"]);
    }

    #[test]
    fn arabic_is_not_wider_than_the_line() {
        let lines = wrapped("القطعة لالالالا لالا", 8);
        assert_eq!(lines, ["القطعة", "لالالالا", "لالا"]);
        assert!(lines.iter().all(|line| line.chars().count() <= 8));
    }

    #[test]
    fn a_line_may_begin_at_words_and_at_ideographs() {
        assert_eq!(beginnings("one  two\tthree", 4), [0, 5, 9]);
        assert_eq!(beginnings("a 烤箱。b", 9), [0, 2, 3, 5]);
    }

    #[test]
    fn thai_breaks_between_syllables_if_it_is_too_wide() {
        let text = "เตาอบเย็นเกินไป";
        assert_eq!(wrapped(text, 40), [text]);
        let lines = wrapped(text, 5);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.width() <= 5), "{lines:?}");
        assert_eq!(lines.concat(), text);
        assert!(lines.iter().all(|line| line.chars().next().unwrap().width() == Some(1)), "{lines:?}");
    }
}
