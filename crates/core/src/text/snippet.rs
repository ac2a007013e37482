//! Snippets: the part of a text that shows why it was found.

use std::{collections::HashMap, ops::Range};

use serde::{Deserialize, Serialize};

use super::{
    Analyzer,
    characters::is_mark,
    layout::{laid_out, without_reminders},
};
use crate::{KnownPart, model::ContentType};

/// Marks text that was left out.
const ELLIPSIS: char = '…';

/// The maximum number of characters to drop at each end, to end between words.
const MAX_WORD_REST: usize = 30;

/// A short part of a text, with the words that matched.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snippet {
    /// The text. Code keeps its lines and the white space in them; other white space is single spaces. There are no
    /// control characters except line breaks and tabs. `…` marks where it was cut; it is on a line of its own if whole
    /// lines of code were left out.
    pub text: String,
    /// The words that matched, as character ranges of `text`, ascending.
    pub highlights: Vec<(u32, u32)>,
}

/// Cuts snippets for one query. It caches words, so use one for all texts.
#[derive(Debug)]
pub struct Snippets<'a> {
    /// The terms with their indices.
    numbers: HashMap<&'a str, usize>,
    analyzer: Analyzer,
}

impl<'a> Snippets<'a> {
    /// For a query with these terms (from [`super::query_terms`]).
    #[must_use]
    pub fn new(terms: &'a [String]) -> Self {
        let numbers = terms.iter().enumerate().map(|(number, term)| (&**term, number)).collect();
        Self { numbers, analyzer: Analyzer::looking_for(terms) }
    }

    /// The part of `text` of at most `max_chars` characters with the most distinct terms. Of several, the one with the
    /// most matches; of several, the first. A snippet of code begins with a line, if the terms are near its beginning.
    ///
    /// Tool calls and the output of tools are code, and so are the blocks of code in other texts.
    ///
    /// `within` is the range of bytes to search, for example the chunk that matched; by default all of `text`. Without
    /// a match, the snippet is the beginning of that range. The time is linear in the length of the range.
    #[must_use]
    pub fn cut(
        &mut self,
        text: &str,
        content_type: ContentType,
        within: Option<Range<usize>>,
        max_chars: usize,
    ) -> Snippet {
        let within = within.map_or(0..text.len(), |range| whole_characters(text, range));
        let part = text.part(within.clone());
        let is_code = matches!(content_type, ContentType::ToolCall | ContentType::ToolOutput);
        let (shown, matches) = self.laid_out(part, content_type);
        let view = SnippetView {
            length: shown.chars().count(),
            matches,
            is_code,
            more_before: text.get(..within.start).is_some_and(|before| !before.trim().is_empty()),
            more_after: text.get(within.end..).is_some_and(|after| !after.trim().is_empty()),
        };
        view.render(&shown, view.window(&shown, max_chars))
    }

    /// The text to show and the matches in it. Inserted reminders are left out, unless only they match.
    fn laid_out(&mut self, part: &str, content_type: ContentType) -> (String, Vec<Match>) {
        let own = without_reminders(part);
        let shown = laid_out(&own, content_type);
        let matches = self.matches(&shown);
        if own.len() == part.len() || !matches.is_empty() {
            return (shown, matches);
        }
        let with_reminders = laid_out(part, content_type);
        match self.matches(&with_reminders) {
            none if none.is_empty() && !shown.is_empty() => (shown, none),
            matches => (with_reminders, matches),
        }
    }

    fn matches(&mut self, shown: &str) -> Vec<Match> {
        let mut tokens = self.analyzer.tokens(shown);
        let mut matches = Vec::new();
        let (mut byte, mut character) = (0, 0);
        while !self.numbers.is_empty() && tokens.advance() {
            // The analyzer skips most words, because they begin with other letters than the terms.
            if tokens.term().is_empty() {
                continue;
            }
            let Some(term) = self.numbers.get(tokens.term()) else { continue };
            let range = tokens.range();
            let count = |range: Range<usize>| shown.part(range).chars().count();
            // Tokens may overlap, but begin one after the other.
            let start = character + count(byte..range.start);
            (byte, character) = (range.start, start);
            matches.push(Match { term: *term, start, end: start + count(range) });
        }
        matches
    }
}

/// A word that matched, as a character range of the text.
#[derive(Debug, Clone, Copy)]
struct Match {
    term: usize,
    start: usize,
    end: usize,
}

/// What to show.
struct SnippetView {
    length: usize,
    matches: Vec<Match>,
    is_code: bool,
    more_before: bool,
    more_after: bool,
}

impl SnippetView {
    /// The range of characters to show.
    fn window(&self, text: &str, max_chars: usize) -> Range<usize> {
        if self.length + usize::from(self.more_before) + usize::from(self.more_after) <= max_chars {
            return 0..self.length;
        }
        let breaks = if self.is_code { 2 } else { 0 };
        let room = max_chars.saturating_sub(2 + breaks);
        let core = best_matches(&self.matches, room).unwrap_or(0..0);
        let latest = self.length.saturating_sub(room);
        let start = match line_start(text, &core, latest) {
            start if self.is_code && core.end - start <= room => start,
            _ => core.start.saturating_sub(room.saturating_sub(core.len()) / 2).min(latest),
        };
        between_words(text, start..(start + room).min(self.length), &core)
    }

    fn render(&self, text: &str, window: Range<usize>) -> Snippet {
        if window.is_empty() {
            return Snippet::default();
        }
        let mut snippet = Snippet::default();
        let is_break =
            |at: Option<usize>| self.is_code && at.and_then(|at| text.chars().nth(at)) == Some('\n');
        if window.start > 0 || self.more_before {
            snippet.text.push(ELLIPSIS);
            snippet.text.extend(is_break(window.start.checked_sub(1)).then_some('\n'));
        }
        let before = snippet.text.chars().count();
        snippet.text.extend(text.chars().skip(window.start).take(window.len()));
        if window.end < self.length || self.more_after {
            snippet.text.extend(is_break(Some(window.end)).then_some('\n'));
            snippet.text.push(ELLIPSIS);
        }
        let shown = self.matches.iter().filter(|found| window.contains(&found.start));
        let place = |at: usize| {
            let at = at.min(window.end) - window.start + before;
            u32::try_from(at).unwrap_or(u32::MAX)
        };
        for (start, end) in shown.map(|found| (place(found.start), place(found.end))) {
            match snippet.highlights.last_mut() {
                Some((_, before)) if start < *before => *before = end.max(*before),
                _ => snippet.highlights.push((start, end)),
            }
        }
        snippet
    }
}

/// `range`, reduced to whole characters of `text`.
fn whole_characters(text: &str, range: Range<usize>) -> Range<usize> {
    let boundary = |at: usize| (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let start = boundary(range.start);
    start..boundary(range.end).max(start)
}

/// Where the line begins that contains the beginning of `core`; or, if all of the text after `latest` fits, the first line
/// after that.
fn line_start(text: &str, core: &Range<usize>, latest: usize) -> usize {
    let breaks = text.chars().take(core.start).enumerate().filter(|(_, c)| *c == '\n').map(|(at, _)| at + 1);
    let mut start = 0;
    for next in breaks {
        if start >= latest {
            break;
        }
        start = next;
    }
    start
}

/// The best run of matches that fits into `room` characters.
fn best_matches(matches: &[Match], room: usize) -> Option<Range<usize>> {
    let terms = matches.iter().map(|found| found.term + 1).max()?;
    let mut held = Held { counts: vec![0; terms], distinct: 0, matches: 0 };
    let mut from = 0;
    let mut best = None;
    let mut most = (0, 0);
    for (at, last) in matches.iter().enumerate() {
        held.add(last);
        // Only what was added: if matches overlap, the next one may begin before this one ends.
        while let Some(first) = matches.get(from).filter(|_| from <= at) {
            if last.end.saturating_sub(first.start) <= room {
                if (held.distinct, held.matches) > most {
                    most = (held.distinct, held.matches);
                    best = Some(first.start..last.end);
                }
                break;
            }
            held.remove(first);
            from += 1;
        }
    }
    // A single word may be longer than the room.
    best.or_else(|| matches.first().map(|found| found.start..found.end))
}

/// The matches in a sliding window.
struct Held {
    counts: Vec<usize>,
    distinct: usize,
    matches: usize,
}

impl Held {
    fn add(&mut self, found: &Match) {
        let Some(count) = self.counts.get_mut(found.term) else { return };
        self.distinct += usize::from(*count == 0);
        *count += 1;
        self.matches += 1;
    }

    fn remove(&mut self, found: &Match) {
        let Some(count) = self.counts.get_mut(found.term) else { return };
        *count -= 1;
        self.distinct -= usize::from(*count == 0);
        self.matches -= 1;
    }
}

/// Makes `window` begin and end between words, if that drops only a few characters and none of `core`. Otherwise, it does
/// not separate a character from its marks.
fn between_words(text: &str, window: Range<usize>, core: &Range<usize>) -> Range<usize> {
    let characters: Vec<char> =
        text.chars().skip(window.start.saturating_sub(1)).take(window.len() + 2).collect();
    let offset = window.start.saturating_sub(1);
    let character = |at: usize| at.checked_sub(offset).and_then(|at| characters.get(at)).copied();
    let is_space = |at: usize| character(at).is_some_and(char::is_whitespace);
    // A line keeps all of its indentation.
    let begins_after = |at: &usize| character(*at) == Some('\n') || is_space(*at) && !is_space(at + 1);
    let ends_line = |at: &usize| character(*at) == Some('\n');
    let ends_word = |at: &usize| is_space(*at) && !at.checked_sub(1).is_some_and(is_space);
    let length = offset + characters.len();
    let start = match window.start {
        0 => 0,
        start => (start - 1..(start + MAX_WORD_REST).min(core.start.max(start)))
            .find(begins_after)
            .map_or(start, |at| at + 1),
    };
    let least_end = window.end.saturating_sub(MAX_WORD_REST).max(core.end).max(start);
    let end = match window.end {
        // One character more than the window was taken, unless the text ends there.
        end if end < length => {
            let ends = || (least_end..end + 1).rev();
            ends().find(ends_line).or_else(|| ends().find(ends_word)).unwrap_or(end)
        }
        end => end,
    };
    let is_cut = |at: &usize| character(*at).is_some_and(|next| *at > 0 && is_mark(next));
    let start = (start..core.start.max(start)).find(|at| !is_cut(at)).unwrap_or(start);
    let end = (core.end.max(start)..end + 1).rev().find(|at| !is_cut(at)).unwrap_or(end);
    start..end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::query_terms, *};

    fn marked(snippet: &Snippet) -> String {
        let mut marked = String::new();
        for (at, c) in snippet.text.chars().enumerate() {
            let at = at as u32;
            if snippet.highlights.iter().any(|(start, _)| *start == at) {
                marked.push('[');
            }
            marked.push(c);
            if snippet.highlights.iter().any(|(_, end)| *end == at + 1) {
                marked.push(']');
            }
        }
        marked
    }

    fn snippet(text: &str, within: Option<Range<usize>>, terms: &[String], max_chars: usize) -> Snippet {
        Snippets::new(terms).cut(text, ContentType::UserQuery, within, max_chars)
    }

    /// As [`show`], of the output of a tool.
    fn show_code(text: &str, query: &str, max_chars: usize) -> String {
        let terms = query_terms(query);
        marked(&Snippets::new(&terms).cut(text, ContentType::ToolOutput, None, max_chars))
    }

    fn show(text: &str, query: &str, max_chars: usize) -> String {
        marked(&snippet(text, None, &query_terms(query), max_chars))
    }

    #[test]
    fn short_texts_are_complete_on_one_line() {
        assert_eq!(show("Fix\n\n  the\ttests\u{1b}[0m\u{7}", "testing fix", 80), "[Fix] the [tests]");
        assert_eq!(show("", "x", 80), "");
        assert_eq!(show(" \n ", "x", 80), "");
    }

    #[test]
    fn the_window_has_the_most_distinct_terms() {
        let text = format!(
            "alpha {} alpha alpha alpha {} alpha beta {}",
            "x ".repeat(60),
            "y ".repeat(60),
            "z ".repeat(60)
        );
        assert_eq!(show(&text, "alpha beta", 30), "…y y y y [alpha] [beta] z z z z…");
    }

    #[test]
    fn code_keeps_its_lines_and_their_indentation() {
        let text = "fn main() {\r\n\n    let x =  1;\n\tif x {}\n}\n";
        assert_eq!(show_code(text, "let", 80), "fn main() {\n    [let] x =  1;\n\tif x {}\n}");
        assert_eq!(show(text, "let", 80), "fn main() { [let] x = 1; if x {} }");
        assert_eq!(
            show("Run this:\n```sh\ncd  x\n  ls\n```\nand\nthen", "ls", 80),
            "Run this:\n```sh\ncd  x\n  [ls]\n```\nand then"
        );
    }

    #[test]
    fn a_snippet_of_code_begins_with_a_line() {
        let lines: Vec<String> = (10..99).map(|n| format!("  line {n} of {}", "x ".repeat(n % 3))).collect();
        let text = lines.join("\n");
        assert_eq!(show_code(&text, "40", 40), "…\n  line [40] of x\n  line 41 of x x\n…");
        // At the end, more lines before it fit.
        assert_eq!(show_code(&text, "98", 40), "…\n  line 97 of x\n  line [98] of x x");
        // A line that is too long is cut before the word.
        let long = format!("a\n{}here {}", "x ".repeat(50), "y ".repeat(50));
        assert_eq!(show_code(&long, "here", 20), "…x x x [here] y y y…");
    }

    #[test]
    fn reminders_and_codes_are_left_out() {
        let text = "one [31mtwo\u{1b}[0m\n<system-reminder>\nbe careful\n</system-reminder>\nthree";
        assert_eq!(show_code(text, "two", 80), "one [two]\nthree");
        assert_eq!(show(text, "other", 80), "one two three");
        assert!(show(text, "careful", 80).contains("<system-reminder> be [careful] </system-reminder>"));
        let only = "<system-reminder>be careful";
        assert_eq!(show(only, "x", 80), only);
    }

    #[test]
    fn ties_are_decided_by_matches_and_then_by_order() {
        let text = format!("one {} one one {} one one", "x ".repeat(60), "y ".repeat(60));
        assert_eq!(show(&text, "one", 20), "…x x [one] [one] y y y…");
    }

    #[test]
    fn without_a_match_the_snippet_is_the_beginning() {
        assert_eq!(show("The quick brown fox jumps over the lazy dog", "cat", 20), "The quick brown…");
        let text = "first part. second part, which is longer. third";
        let within = 12..41;
        assert_eq!(snippet(text, Some(within.clone()), &[], 80).text, "…second part, which is longer.…");
        assert_eq!(snippet(text, Some(within), &[], 20).text, "…second part, which…");
    }

    #[test]
    fn only_the_given_range_is_searched() {
        let text = "needle here. And another needle there.";
        assert_eq!(
            marked(&snippet(text, Some(13..38), &query_terms("needle"), 80)),
            "…And another [needle] there."
        );
    }

    #[test]
    fn very_long_words_are_cut() {
        let text = "a".repeat(500);
        let found = snippet(&text, None, std::slice::from_ref(&text), 50);
        assert_eq!((found.text.chars().count(), found.highlights.as_slice()), (49, &[(0, 48)][..]));
        // Pairs of characters overlap, and are longer than the room.
        assert_eq!(snippet("京o東京 東京", None, &query_terms("京o東京 東京"), 3).text, "京…");
        let text = "漢".repeat(100) + "字" + &"漢".repeat(100);
        let found = snippet(&text, None, &query_terms("漢字"), 12);
        assert_eq!(marked(&found), "…漢漢漢漢[漢字]漢漢漢漢…");
    }

    #[test]
    fn characters_keep_their_marks() {
        let text = "กี่".repeat(60) + "คำค้น" + &"ที่".repeat(60);
        for room in 20..30 {
            let shown = show(&text, "ค้น", room);
            assert!(shown.contains("[ค้น]"), "{shown}");
            let inner = shown.trim_matches(ELLIPSIS);
            assert!(!inner.starts_with(is_mark) && inner.ends_with("ที่"), "{shown}");
        }
    }

    #[test]
    fn accents_are_ignored_and_preserved() {
        assert_eq!(show("un café\u{301} crème", "cafe CREME", 80), "un [café\u{301}] [crème]");
    }

    #[test]
    fn ranges_beyond_the_text_or_within_characters_are_harmless() {
        for within in [Range { start: 5, end: 2 }, 3..900, 1..2, 900..901] {
            let _ = snippet("é—ö ß", Some(within), &query_terms("ß"), 10);
        }
        assert_eq!(snippet("some text", None, &query_terms("text"), 0).text, "");
        assert_eq!(snippet("some text", None, &query_terms("text"), 2).text, "");
    }

    fn any_text() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            Just("alpha".to_owned()),
            Just("Beta".to_owned()),
            Just("漢字".to_owned()),
            Just("café".to_owned()),
            "[a-z]{1,40}",
            "\\PC{0,8}",
            "[ \n\t.]{1,5}",
        ];
        prop::collection::vec(word, 0..60).prop_map(|words| words.join(" "))
    }

    proptest! {
        #[test]
        fn snippets_are_bounded_and_highlights_are_matches(
            text in any_text(),
            is_code in any::<bool>(),
            max_chars in 0_usize..200,
        ) {
            let terms = query_terms("alpha beta 漢 cafe");
            let content_type = if is_code { ContentType::ToolOutput } else { ContentType::UserQuery };
            let found = Snippets::new(&terms).cut(&text, content_type, None, max_chars);
            let characters: Vec<char> = found.text.chars().collect();
            prop_assert!(characters.len() <= max_chars);
            let mut before = 0;
            for (start, end) in &found.highlights {
                prop_assert!(before <= *start && start < end && *end as usize <= characters.len());
                before = *end;
                let word: String = characters[*start as usize..*end as usize].iter().collect();
                let cut = *end as usize + 1 == characters.len() && found.text.ends_with(ELLIPSIS);
                prop_assert!(cut || query_terms(&word).iter().all(|term| terms.contains(term)), "{word:?}");
            }
        }

        #[test]
        fn a_match_is_always_shown(
            before in any_text(),
            after in any_text(),
            is_code in any::<bool>(),
            max_chars in 40_usize..200,
        ) {
            let text = format!("{before} unmistakable {after}");
            let terms = query_terms("unmistakable");
            let content_type = if is_code { ContentType::ToolOutput } else { ContentType::UserQuery };
            let found = Snippets::new(&terms).cut(&text, content_type, None, max_chars);
            prop_assert!(found.text.contains("unmistakable"));
            prop_assert_eq!(found.highlights.len(), 1);
        }
    }
}
