//! Where the terms of a text are, and in which form.
//!
//! A term stands for all forms of a word, and a phrase has each word in one form. The place of a token is therefore the
//! number of the token in its text, times [`FORMS`], plus the form of its word. Indexes store these places: a phrase that
//! is found by them is nearly always in the text as it was typed, so few texts are read in vain.

use super::Analyzer;

/// The number of forms that are told apart.
const FORMS: u32 = 8;

/// The form of a word that is its own stem.
pub(super) const UNCHANGED: u32 = 0;

/// The form of another word, by its last letter: most of what a stem lacks are `-s`, `-ed`, `-ing`, `-e`, `-y` and `-er`.
pub(super) fn form_of(last: Option<u8>) -> u32 {
    match last {
        Some(b's') => 1,
        Some(b'd') => 2,
        Some(b'g') => 3,
        Some(b'e') => 4,
        Some(b'y') => 5,
        Some(b'r') => 6,
        _ => 7,
    }
}

/// The place of a token with this number and this form.
pub(super) fn place_of(number: u32, form: u32) -> u32 {
    number.saturating_mul(FORMS).saturating_add(form)
}

/// Terms that follow one another in a text, each in one form. The words of a phrase that are no terms of their own, such
/// as single Chinese characters, are left out: any token may be in their place.
///
/// The places of tokens in a text, and those of a phrase, are numbers in which the form of a word takes the lowest three
/// bits, and the number of the token the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TermPhrase {
    /// The position of each term in the query, and its place in the phrase, in ascending order of places.
    words: Vec<(usize, u32)>,
}

impl TermPhrase {
    /// Adds a word: the position of its term in the query, and its [place](super::Tokens::place) in the phrase.
    pub fn push(&mut self, term: usize, place: u32) {
        self.words.push((term, place));
    }

    /// Whether it has no words, so that each text has it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The positions of its terms in the query, with repetitions.
    pub fn terms(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().map(|(term, _)| *term)
    }

    /// Whether the terms follow one another in a text.
    #[must_use]
    pub fn is_at(&self, places: &TermPlaces) -> bool {
        let count = |(term, _): &&(usize, u32)| places.of(*term).len();
        let Some((rarest, offset)) = self.words.iter().min_by_key(count) else { return true };
        // A beginning is the place of a token without its form.
        let beginnings = places.of(*rarest).iter().filter_map(|place| place.checked_sub(*offset));
        beginnings.filter(|beginning| beginning % FORMS == 0).any(|beginning| {
            let has = |(term, offset): &(usize, u32)| {
                let place = beginning.checked_add(*offset);
                place.is_some_and(|place| places.of(*term).binary_search(&place).is_ok())
            };
            self.words.iter().all(has)
        })
    }
}

/// The places of the terms of a query in a text, in ascending order for each term. Its buffers can be used for many
/// texts.
#[derive(Debug, Clone, Default)]
pub struct TermPlaces {
    places: Vec<Vec<u32>>,
}

impl TermPlaces {
    /// No places, for a query of `terms` terms.
    #[must_use]
    pub fn new(terms: usize) -> Self {
        Self { places: vec![Vec::new(); terms] }
    }

    /// The places in `text`. Use an analyzer from [`Analyzer::looking_for`].
    #[must_use]
    pub fn find(analyzer: &mut Analyzer, text: &str, terms: &[String]) -> Self {
        let mut found = Self::new(terms.len());
        let mut tokens = analyzer.tokens(text);
        while tokens.advance() {
            let term = terms.iter().position(|term| term == tokens.term());
            if let Some(places) = term.and_then(|term| found.places.get_mut(term)) {
                places.push(tokens.place());
            }
        }
        found
    }

    /// The places of a term, to be replaced; `None` if the query has fewer terms.
    pub fn of_mut(&mut self, term: usize) -> Option<&mut Vec<u32>> {
        self.places.get_mut(term)
    }

    fn of(&self, term: usize) -> &[u32] {
        self.places.get(term).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        KnownPart,
        text::{Phrase, WordList, is_unspaced_alone},
    };

    /// The terms of a text that is searched as a phrase, and the phrase.
    fn phrase(typed: &str) -> (Vec<String>, TermPhrase) {
        let (mut terms, mut phrase) = (Vec::<String>::new(), TermPhrase::default());
        let mut analyzer = Analyzer::new();
        let mut tokens = analyzer.query_tokens(typed);
        while tokens.advance() {
            if is_unspaced_alone(typed.part(tokens.range())) {
                continue;
            }
            let term = terms.iter().position(|term| term == tokens.term()).unwrap_or_else(|| {
                terms.push(tokens.term().to_owned());
                terms.len() - 1
            });
            phrase.push(term, tokens.place());
        }
        (terms, phrase)
    }

    fn is_in(typed: &str, text: &str) -> bool {
        let (terms, phrase) = phrase(typed);
        let mut analyzer = Analyzer::looking_for(&terms);
        phrase.is_at(&TermPlaces::find(&mut analyzer, text, &terms))
    }

    #[test]
    fn a_phrase_has_its_words_in_order_and_in_one_form() {
        let text = "The connection-pool was\nexhausted; Café öffnet. 東京タワー, 京 x the the pool";
        for typed in [
            "Connection Pool",
            "pool was exhausted",
            "cafe offnet",
            "exhausted",
            "東京",
            "offnet 東京タ",
            "京 x the",
            "the the",
        ] {
            assert!(is_in(typed, text), "{typed}");
        }
        for typed in [
            "pool connection",
            "connections pool",
            "connection was",
            "exhausting",
            "exhaust",
            "pools was exhausted",
            "the the the",
            "the was",
        ] {
            assert!(!is_in(typed, text), "{typed}");
        }
    }

    proptest! {
        #[test]
        fn a_text_that_has_the_words_has_the_terms(text in "([a-d]{1,2}(s|ed|ing|ies|ly|e|er|y)?|[A-Cé_\n 🎉]| |漢字ไ[a-d]){0,30}", from in 0_usize..30, length in 1_usize..12) {
            let typed: String = text.chars().skip(from).take(length).collect();
            let mut list = WordList::default();
            list.read(&text);
            let has_terms = {
                let (terms, _) = phrase(&typed);
                let places = TermPlaces::find(&mut Analyzer::new(), &text, &terms);
                (0..terms.len()).all(|term| !places.of(term).is_empty())
            };
            if has_terms && Phrase::new(&typed).is_in(&list) {
                prop_assert!(is_in(&typed, &text), "{:?} in {:?}", typed, text);
            }
        }
    }
}
