//! Snippets, with matched words highlighted: on the lines of a terminal, or on one line.

use unicode_width::UnicodeWidthChar as _;

use super::{text::visible, wrap};
use crate::paint::Paint;

/// Code has at most this many lines on a terminal.
const CODE_LINES: usize = 4;
/// As [`CODE_LINES`], for other text. Only wide characters need more.
const TEXT_LINES: usize = 6;

/// The width of a tab.
const TAB: usize = 4;

/// Deeper indentation is cut, because little room is left beside it.
const DEEPEST: usize = 16;

/// Begins an argument of a tool call.
const ARGUMENT: &str = "·";

/// The snippet as lines of at most `width` columns, if no single word is wider. `highlights` are character ranges of
/// `text`. Code keeps its line breaks and its indentation. Of many lines, those with the most matches are shown.
pub(crate) fn wrapped(text: &str, highlights: &[(u32, u32)], width: usize, paint: Paint) -> Vec<String> {
    let mut lines = lines(text, highlights);
    let is_code = lines.len() > 1;
    // The last row says that more follows.
    let mut has_more = is_code && lines.pop_if(|line| line.is_cut()).is_some();
    if is_code && lines.first().is_some_and(SnippetLine::is_cut) {
        lines.remove(0);
    }
    remove_common_indentation(&mut lines);
    let rows: Vec<Row> = lines.iter().flat_map(|line| rows(line, width, paint)).collect();
    let best = best_rows(&rows, if is_code { CODE_LINES } else { TEXT_LINES });
    has_more |= best.end < rows.len();
    let mut shown: Vec<Row> = rows.into_iter().take(best.end).skip(best.start).collect();
    // Lines of code stand for themselves.
    if let Some(first) = shown.first_mut().filter(|first| !is_code && best.start > 0 && first.columns < width)
    {
        first.text.insert(0, '…');
        first.columns += 1;
    }
    if let Some(last) = shown.last_mut().filter(|last| has_more && last.columns + 2 <= width) {
        last.text.push_str(" …");
    }
    shown.into_iter().map(|row| row.text).collect()
}

/// The snippet on one line. `⏎` stands for a line break of code, and `·` begins an argument of a tool call.
pub(crate) fn on_one_line(text: &str, highlights: &[(u32, u32)], paint: Paint) -> String {
    let mut shown = String::new();
    let mut is_after_cut = false;
    for line in lines(text, highlights) {
        let words: Vec<String> = line.words.iter().map(|word| word.painted(paint)).collect();
        if !shown.is_empty() {
            let is_visible = line.begins_argument() || line.is_cut() || is_after_cut;
            shown.push_str(if is_visible { " " } else { " ⏎ " });
        }
        shown.push_str(&words.join(" "));
        is_after_cut = line.is_cut();
    }
    shown
}

/// A line of a snippet that is not blank.
struct SnippetLine {
    /// The columns before its first word.
    indentation: usize,
    words: Vec<Word>,
}

impl SnippetLine {
    fn begins_argument(&self) -> bool {
        self.words.first().is_some_and(|word| word.is(ARGUMENT))
    }

    /// Whether it only says that lines were left out.
    fn is_cut(&self) -> bool {
        self.words.len() == 1 && self.words.first().is_some_and(|word| word.is("…"))
    }

    /// Whether the text before it was cut off, so that its indentation says nothing.
    fn is_rest(&self) -> bool {
        self.words.first().is_some_and(|word| word.begins_with('…')) && self.indentation == 0
    }
}

/// A word.
#[derive(Default)]
struct Word {
    /// The columns between it and the word before.
    gap: usize,
    /// The word, split into runs that are highlighted or not.
    runs: Vec<(bool, String)>,
}

impl Word {
    fn push(&mut self, hit: bool, c: char) {
        match self.runs.last_mut() {
            Some((same, run)) if *same == hit => run.push(c),
            _ => self.runs.push((hit, String::from(c))),
        }
    }

    fn width(&self) -> usize {
        self.runs.iter().map(|(_, run)| wrap::columns(run)).sum()
    }

    /// The word as the parts between which a line of `width` columns may break. Only the first one has a gap.
    fn pieces(&self, width: usize) -> Vec<Self> {
        let text: String = self.runs.iter().map(|(_, run)| run.as_str()).collect();
        let mut chars = self.runs.iter().flat_map(|(hit, run)| run.chars().map(|c| (*hit, c)));
        let mut pieces = Vec::new();
        for piece in wrap::pieces(&text, width) {
            let gap = if pieces.is_empty() { self.gap.max(1) } else { 0 };
            let mut word = Self { gap, runs: Vec::new() };
            chars.by_ref().take(piece.chars().count()).for_each(|(hit, c)| word.push(hit, c));
            pieces.push(word);
        }
        pieces
    }

    fn hits(&self) -> usize {
        self.runs.iter().filter(|(hit, _)| *hit).count()
    }

    fn is(&self, text: &str) -> bool {
        matches!(self.runs.as_slice(), [(_, run)] if run == text)
    }

    fn begins_with(&self, c: char) -> bool {
        self.runs.first().is_some_and(|(_, run)| run.starts_with(c))
    }

    fn painted(&self, paint: Paint) -> String {
        self.runs.iter().map(|(hit, run)| if *hit { paint.hit(run) } else { run.clone() }).collect()
    }
}

fn lines(text: &str, highlights: &[(u32, u32)]) -> Vec<SnippetLine> {
    let is_hit = |at: u32| highlights.iter().any(|(start, end)| (*start..*end).contains(&at));
    let mut lines = Vec::new();
    let mut at = 0;
    for line in text.split('\n') {
        let mut words = vec![Word::default()];
        for c in line.chars() {
            if c.is_whitespace() {
                words.extend(words.last().is_some_and(|word| !word.runs.is_empty()).then(Word::default));
            }
            if let Some(word) = words.last_mut() {
                match visible(c) {
                    _ if c == '\t' => word.gap += TAB,
                    _ if c.is_whitespace() => word.gap += c.width().unwrap_or(0),
                    Some(c) => word.push(is_hit(at), c),
                    None => {}
                }
            }
            at += 1;
        }
        // The line break.
        at += 1;
        words.retain(|word| !word.runs.is_empty());
        if let Some(first) = words.first() {
            lines.push(SnippetLine { indentation: first.gap, words });
        }
    }
    lines
}

/// Moves the lines to the left as far as all of them are indented. A single line is not indented.
fn remove_common_indentation(lines: &mut [SnippetLine]) {
    let is_whole = |line: &&SnippetLine| !line.is_rest() && !line.begins_argument();
    let common = lines.iter().filter(is_whole).map(|line| line.indentation).min().unwrap_or(0);
    for line in lines {
        line.indentation = line.indentation.saturating_sub(common).min(DEEPEST);
    }
}

/// A line on the terminal.
struct Row {
    text: String,
    columns: usize,
    hits: usize,
}

/// The line, wrapped within its indentation.
fn rows(line: &SnippetLine, width: usize, paint: Paint) -> Vec<Row> {
    let indentation = line.indentation.min(width / 4);
    let begin = || Row { text: " ".repeat(indentation), columns: indentation, hits: 0 };
    let mut rows = Vec::new();
    let mut row = begin();
    for word in line.words.iter().flat_map(|word| word.pieces(width - indentation)) {
        let (gap, wide) = (word.gap, word.width());
        if row.columns > indentation && row.columns + gap + wide > width {
            rows.push(std::mem::replace(&mut row, begin()));
        }
        if row.columns > indentation {
            row.text.push_str(&" ".repeat(gap));
            row.columns += gap;
        }
        row.text.push_str(&word.painted(paint));
        row.columns += wide;
        row.hits += word.hits();
    }
    if row.columns > indentation {
        rows.push(row);
    }
    rows
}

/// The `count` rows with the most matches; of several, the first.
fn best_rows(rows: &[Row], count: usize) -> std::ops::Range<usize> {
    let mut best = 0..rows.len().min(count);
    let mut most = 0;
    for (start, window) in rows.windows(count).enumerate() {
        let hits = window.iter().map(|row| row.hits).sum();
        if hits > most {
            most = hits;
            best = start..start + count;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, highlights: &[(u32, u32)], width: usize) -> Vec<String> {
        wrapped(text, highlights, width, Paint::new(false))
    }

    #[test]
    fn highlights_are_character_ranges() {
        let lines = wrapped("das Café-Menü war teuer", &[(4, 8)], 80, Paint::new(true));
        assert_eq!(lines, ["das \x1b[33;1mCafé\x1b[0m-Menü war teuer"]);
        let lines = wrapped("\tdas\n\t  Café", &[(8, 12)], 80, Paint::new(true));
        assert_eq!(lines, ["das", "  \x1b[33;1mCafé\x1b[0m"]);
    }

    #[test]
    fn lines_break_between_words() {
        let lines = plain("one two three 日本語 averyverylongword x", &[(0, 3)], 9);
        assert_eq!(lines, ["one two", "three 日", "本語", "averyverylongword", "x"]);
        assert!(plain(" \n ", &[], 9).is_empty());
        assert_eq!(plain("a 烤箱太冷了。请修理", &[(3, 5)], 9), ["a 烤箱太", "冷了。请", "修理"]);
        let painted = wrapped("烤箱太冷", &[(1, 3)], 4, Paint::new(true));
        assert_eq!(painted, ["烤\x1b[33;1m箱\x1b[0m", "\x1b[33;1m太\x1b[0m冷"]);
    }

    #[test]
    fn code_keeps_its_lines_and_what_is_not_common_of_their_indentation() {
        assert_eq!(plain("    if x {\n\t\ty\n    }", &[], 80), ["if x {", "    y", "}"]);
        assert_eq!(plain("…rest of it\n    if x {\n      y", &[], 80), ["…rest of it", "if x {", "  y"]);
        assert_eq!(plain("a\n  one two three", &[], 9), ["a", "  one two", "  three"]);
        assert_eq!(plain("  1→\ta  b\n  2→\t\tc", &[], 80), ["1→    a  b", "2→        c"]);
        assert_eq!(plain("…\n    y\n  }\n…", &[], 80), ["  y", "} …"]);
        assert_eq!(plain(&format!("a\n{}b", " ".repeat(60)), &[], 80)[1].len(), 17);
        let call = "bash: git push\n  now\n· Push the branch";
        assert_eq!(plain(call, &[], 80), ["bash: git push", "  now", "· Push the branch"]);
    }

    #[test]
    fn of_long_code_the_lines_with_the_most_matches_are_shown() {
        let code = "a\nb\nc\nd\ne\nf\ng";
        assert_eq!(plain(code, &[], 80), ["a", "b", "c", "d …"]);
        assert_eq!(plain(code, &[(10, 11)], 80), ["c", "d", "e", "f …"]);
        assert_eq!(plain(code, &[(12, 13)], 80), ["d", "e", "f", "g"]);
    }

    #[test]
    fn of_long_text_the_lines_with_the_most_matches_are_shown() {
        let text = "一二三四五六七八九十甲乙丙丁戊";
        assert_eq!(plain(text, &[(2, 4)], 5), ["一二", "三四", "五六", "七八", "九十", "甲乙"]);
        assert_eq!(plain(text, &[(12, 14)], 5), ["…三四", "五六", "七八", "九十", "甲乙", "丙丁"]);
    }

    #[test]
    fn on_one_line_breaks_are_visible() {
        let call = "bash: cd x\n\n  ls\n· List it";
        assert_eq!(on_one_line(call, &[], Paint::new(false)), "bash: cd x ⏎ ls · List it");
        assert_eq!(on_one_line("a\tb\r\n", &[], Paint::new(false)), "a b");
        assert_eq!(on_one_line("…\n  a\n  b\n…", &[], Paint::new(false)), "… a ⏎ b …");
    }
}
