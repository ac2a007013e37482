//! WordPiece, as BERT's uncased models use it: texts become tokens of the [vocabulary](super::vocabulary).
//!
//! This follows the `tokenizers` crate to the letter (`BertNormalizer`, `BertPreTokenizer`, `WordPiece`), with the
//! settings of the model's `tokenizer.json`; the tests compare the two. So the Unicode tables are those of that crate
//! too: newer ones would know more accents and yield other tokens.

use std::iter;

use amplifier_session_core::KnownPart;
use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;

use super::vocabulary::{Root, longest_token};

/// The token of a word that the vocabulary can't spell.
pub(super) const UNKNOWN: u16 = 1;

/// These texts are tokens and not words in brackets.
const LITERALS: [(&str, u16); 2] = [("[PAD]", 0), ("[UNK]", UNKNOWN)];

/// Longer words are unknown.
const MAX_WORD_CHARS: usize = 100;

/// Appends the tokens of `text` to `tokens`.
pub(super) fn tokenize(text: &str, tokens: &mut Vec<u16>) {
    let mut words = Words { tokens, word: String::new() };
    let (mut begin, mut searched) = (0, 0);
    while let Some(bracket) = text.get(searched..).and_then(|rest| rest.find('[')) {
        let bracket = searched + bracket;
        let is_literal =
            |(literal, _): &&(&str, u16)| text.get(bracket..).is_some_and(|rest| rest.starts_with(literal));
        searched = bracket + 1;
        if let Some((literal, token)) = LITERALS.iter().find(is_literal) {
            words.add_text(text.part(begin..bracket));
            words.tokens.push(*token);
            begin = bracket + literal.len();
            searched = begin;
        }
    }
    words.add_text(text.part(begin..));
}

/// Forms words from normalised characters.
struct Words<'a> {
    tokens: &'a mut Vec<u16>,
    /// The characters of the word that has not ended yet.
    word: String,
}

impl Words<'_> {
    fn add_text(&mut self, text: &str) {
        for part in text.split(is_space) {
            if part.is_ascii() {
                self.add_ascii(part);
            } else {
                normalized(part).for_each(|c| self.add(c));
            }
            self.end_word();
        }
    }

    /// Adds ASCII characters without white space, all but control characters.
    fn add_ascii(&mut self, part: &str) {
        for byte in part.bytes() {
            if byte.is_ascii_alphanumeric() {
                self.word.push(char::from(byte.to_ascii_lowercase()));
            } else if byte.is_ascii_punctuation() {
                self.end_word();
                self.word.push(char::from(byte));
                self.end_word();
            }
        }
    }

    fn add(&mut self, c: char) {
        if c.is_whitespace() {
            self.end_word();
        } else if is_punctuation(c) {
            self.end_word();
            self.word.push(c);
            self.end_word();
        } else {
            self.word.push(c);
        }
    }

    /// Appends the tokens of the word: each is the longest that fits. If no token fits, the whole word is unknown.
    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let is_long = self.word.len() > MAX_WORD_CHARS && self.word.chars().count() > MAX_WORD_CHARS;
        let before = self.tokens.len();
        let (mut root, mut rest) = (Root::Beginning, self.word.as_bytes());
        while !rest.is_empty() {
            match longest_token(root, rest) {
                Some((token, length)) if !is_long => {
                    self.tokens.push(token);
                    rest = rest.part(length..);
                    root = Root::Continuation;
                }
                _ => {
                    self.tokens.truncate(before);
                    self.tokens.push(UNKNOWN);
                    break;
                }
            }
        }
        self.word.clear();
    }
}

/// The characters of `text` in lower case, without accents and control characters, and with spaces around Chinese
/// characters.
fn normalized(text: &str) -> impl Iterator<Item = char> {
    let kept = text.chars().filter(|c| !is_removed(*c));
    let spaced = kept.flat_map(|c| {
        let space = is_chinese(c).then_some(' ');
        space.into_iter().chain(iter::once(c)).chain(space)
    });
    spaced.nfd().filter(|c| !c.is_mark_nonspacing()).flat_map(char::to_lowercase)
}

/// Whether words end at `c`. All control characters that are white space, except three, are removed instead.
fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r') || (c.is_whitespace() && !c.is_control())
}

fn is_removed(c: char) -> bool {
    c == char::REPLACEMENT_CHARACTER || c.is_other()
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || (!c.is_ascii() && c.is_punctuation())
}

/// The blocks of CJK ideographs that BERT names.
fn is_chinese(c: char) -> bool {
    matches!(
        u32::from(c),
        0x4E00..=0x9FFF
            | 0x3400..=0x4DBF
            | 0x20000..=0x2A6DF
            | 0x2A700..=0x2B73F
            | 0x2B740..=0x2B81F
            | 0x2B920..=0x2CEAF
            | 0xF900..=0xFAFF
            | 0x2F800..=0x2FA1F
    )
}

#[cfg(test)]
mod tests;
