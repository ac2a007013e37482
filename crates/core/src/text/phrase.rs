//! Phrases: words in order, as they are written.

use std::ops::Range;

use super::characters::{Byte, Class, fold};
use crate::KnownPart;

/// The words of a text in order: in lower case and without accents, but not stemmed. Each character of a script
/// without spaces (Chinese, Thai) and each emoji is a word. Its buffers can be used for many texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct WordList {
    /// All words, one after the other.
    letters: String,
    words: Vec<Range<usize>>,
    folded: String,
}

impl WordList {
    /// Replaces the words with those of `text`.
    pub(crate) fn read(&mut self, text: &str) {
        self.letters.clear();
        self.words.clear();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            at += self.take(rest);
        }
    }

    /// Takes a word or a separator from the beginning of `rest`. Returns its length.
    fn take(&mut self, rest: &str) -> usize {
        let bytes = rest.as_bytes();
        let plain = bytes.iter().take_while(|byte| Byte::of(**byte).is_word()).count();
        let is_ascii = bytes.get(plain).is_none_or(u8::is_ascii);
        if plain > 0 && is_ascii {
            self.push(|letters| {
                letters.extend(rest.bytes().take(plain).map(|b| char::from(b.to_ascii_lowercase())))
            });
            return plain;
        }
        if is_ascii {
            return 1;
        }
        let length = wide_word(rest);
        let mut folded = std::mem::take(&mut self.folded);
        fold(rest.part(..length), &mut folded);
        self.push(|letters| letters.push_str(&folded));
        self.folded = folded;
        length
    }

    fn push(&mut self, write: impl FnOnce(&mut String)) {
        let start = self.letters.len();
        write(&mut self.letters);
        if self.letters.len() > start {
            self.words.push(start..self.letters.len());
        }
    }

    fn word(&self, range: &Range<usize>) -> &str {
        self.letters.part(range.clone())
    }
}

/// The length of the word or separator at the beginning of `text`, which is not empty.
fn wide_word(text: &str) -> usize {
    let mut end = 0;
    let mut within = false;
    for c in text.chars() {
        match Class::of(c) {
            Class::Mark if end > 0 => {}
            Class::Word if end == 0 || within => within = true,
            _ if end > 0 => break,
            _ => {}
        }
        end += c.len_utf8();
    }
    end
}

/// Words that follow one another.
#[derive(Debug, Clone, Default)]
pub(crate) struct Phrase {
    words: Vec<String>,
}

impl Phrase {
    /// The words of `text`.
    pub(crate) fn new(text: &str) -> Self {
        let mut list = WordList::default();
        list.read(text);
        Self { words: list.words.iter().map(|range| list.word(range).to_owned()).collect() }
    }

    /// The number of words.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether the words follow one another in `list`. A phrase without words is in every text.
    pub(crate) fn is_in(&self, list: &WordList) -> bool {
        let is_here = |window: &[Range<usize>]| window.iter().map(|range| list.word(range)).eq(&self.words);
        self.words.is_empty() || list.words.windows(self.words.len()).any(is_here)
    }
}

/// The words of `text` in order: see [`WordList`].
pub(crate) fn folded_words(text: &str) -> Vec<String> {
    Phrase::new(text).words
}

/// Whether `word` is a single character of a script in which a word is found by its parts.
pub(crate) fn is_unspaced_alone(word: &str) -> bool {
    let mut letters = word.chars().filter(|c| Class::of(*c) != Class::Mark);
    letters.next().is_some_and(|c| Class::of(c) == Class::Unspaced) && letters.next().is_none()
}

/// `text` with every run of white space as one space.
pub(crate) fn collapsed(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut was_space = false;
    for c in text.chars() {
        let is_space = c.is_whitespace();
        if !is_space {
            line.push(c);
        } else if !was_space {
            line.push(' ');
        }
        was_space = is_space;
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_folded_and_not_stemmed() {
        let phrase = Phrase::new("Running TESTS, getUserId! naïve_Cafe\u{301} 東京 x86");
        let expected = ["running", "tests", "getuserid", "naive", "cafe", "東", "京", "x86"];
        assert_eq!(phrase.words, expected);
        assert_eq!(Phrase::new("เพื่อน").words, ["เ", "พื่", "อ", "น"]);
    }

    #[test]
    fn white_space_is_collapsed() {
        assert_eq!(collapsed("a \n\t b  c "), "a b c ");
    }

    proptest! {
        #[test]
        fn a_text_contains_each_part_between_its_spaces(words in proptest::collection::vec("[a-zé漢A-Z.]{1,6}", 1..8), from in 0_usize..8, count in 1_usize..8) {
            let part: Vec<&str> = words.iter().skip(from).take(count).map(String::as_str).collect();
            let mut list = WordList::default();
            list.read(&words.join(" "));
            prop_assert!(Phrase::new(&part.join("\n")).is_in(&list));
        }

        #[test]
        fn any_text_has_words(text in "\\PC{0,60}") {
            let mut list = WordList::default();
            list.read(&text);
            prop_assert!(Phrase::new(&text).is_in(&list));
            let ascii = text.chars().filter(char::is_ascii_alphanumeric).count();
            prop_assert!(list.letters.len() >= ascii);
        }
    }
}
