//! Snippets, with matched words highlighted, and wrapped.

use unicode_width::UnicodeWidthStr as _;

use super::text::visible;
use crate::paint::Paint;

/// The snippet as lines of at most `width` columns, if no single word is wider. `highlights` are character ranges of
/// `text`.
pub(crate) fn wrapped(text: &str, highlights: &[(u32, u32)], width: usize, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut columns) = (String::new(), 0);
    for word in words(text, highlights) {
        let wide = word.width();
        if columns > 0 && columns + 1 + wide > width {
            lines.push(std::mem::take(&mut line));
            columns = 0;
        }
        if columns > 0 {
            line.push(' ');
            columns += 1;
        }
        line.push_str(&word.painted(paint));
        columns += wide;
    }
    if columns > 0 {
        lines.push(line);
    }
    lines
}

/// A word, split into runs that are highlighted or not.
struct Word(Vec<(bool, String)>);

impl Word {
    fn push(&mut self, hit: bool, c: char) {
        match self.0.last_mut() {
            Some((same, run)) if *same == hit => run.push(c),
            _ => self.0.push((hit, String::from(c))),
        }
    }

    fn width(&self) -> usize {
        self.0.iter().map(|(_, run)| run.width()).sum()
    }

    fn painted(&self, paint: Paint) -> String {
        self.0.iter().map(|(hit, run)| if *hit { paint.hit(run) } else { run.clone() }).collect()
    }
}

fn words(text: &str, highlights: &[(u32, u32)]) -> Vec<Word> {
    let is_hit = |at: u32| highlights.iter().any(|(start, end)| (*start..*end).contains(&at));
    let mut words = vec![Word(Vec::new())];
    for (at, c) in (0_u32..).zip(text.chars()) {
        if c.is_whitespace() {
            words.push(Word(Vec::new()));
        } else if let (Some(c), Some(word)) = (visible(c), words.last_mut()) {
            word.push(is_hit(at), c);
        }
    }
    words.retain(|word| !word.0.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highlights_are_character_ranges() {
        let lines = wrapped("das Café-Menü war teuer", &[(4, 8)], 80, Paint::new(true));
        assert_eq!(lines, ["das \x1b[33;1mCafé\x1b[0m-Menü war teuer"]);
    }

    #[test]
    fn lines_break_between_words() {
        let lines = wrapped("one two three 日本語 averyverylongword x", &[(0, 3)], 9, Paint::new(false));
        assert_eq!(lines, ["one two", "three", "日本語", "averyverylongword", "x"]);
        assert!(wrapped(" \n ", &[], 9, Paint::new(false)).is_empty());
    }
}
