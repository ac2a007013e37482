//! A position in a text that a parser advances.

use std::ops::Range;

use amplifier_session_core::KnownPart;

#[derive(Debug, Clone, Copy)]
pub(super) struct TextCursor<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> TextCursor<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.part(self.at..)
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn slice(&self, span: &Range<usize>) -> &'a str {
        self.text.part(span.clone())
    }

    /// Advances by one character.
    pub(super) fn bump(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }

    /// Advances over `part` if it comes next.
    pub(super) fn eat(&mut self, part: &str) -> bool {
        let comes = self.rest().starts_with(part);
        self.at += if comes { part.len() } else { 0 };
        comes
    }

    /// Advances over `word` if it comes next, ignoring case, and is a whole word.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let comes = self.rest().split_at_checked(word.len()).is_some_and(|(start, after)| {
            start.eq_ignore_ascii_case(word) && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        });
        self.at += if comes { word.len() } else { 0 };
        comes
    }

    /// Advances over at most `most` characters that match `of`, and returns them.
    pub(super) fn skip(&mut self, most: usize, of: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.chars().take(most).take_while(|c| of(*c)).map(char::len_utf8).sum();
        self.at += length;
        rest.part(..length)
    }
}
