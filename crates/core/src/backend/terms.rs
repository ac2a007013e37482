//! Patterns of terms, to find words that a query does not contain in full.

use std::collections::{BTreeSet, HashMap};

use crate::KnownPart;

/// Which terms to find. See [`crate::text`] for terms: they are in lower case, without accents, and stemmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TermPattern {
    /// This term.
    Whole(String),
    /// Terms with this prefix.
    Prefix(String),
    /// Terms with this suffix.
    Suffix(String),
    /// Terms that contain this.
    Infix(String),
    /// Terms with the same first letter that differ by one letter: replaced, inserted, removed, or swapped with its
    /// neighbour.
    OneTypo(String),
    /// One of these terms, of which there may be thousands.
    AnyOf(BTreeSet<String>),
}

impl TermPattern {
    /// Whether `term` matches.
    #[must_use]
    pub fn matches(&self, term: &str) -> bool {
        match self {
            Self::Whole(whole) => term == whole,
            Self::Prefix(prefix) => term.starts_with(prefix.as_str()),
            Self::Suffix(suffix) => term.ends_with(suffix.as_str()),
            Self::Infix(infix) => term.contains(infix.as_str()),
            Self::OneTypo(word) => is_one_typo(word, term),
            Self::AnyOf(terms) => terms.contains(term),
        }
    }

    /// The prefix of every matching term.
    #[must_use]
    pub fn beginning(&self) -> &str {
        match self {
            Self::Whole(term) | Self::Prefix(term) => term,
            Self::Suffix(_) | Self::Infix(_) | Self::AnyOf(_) => "",
            Self::OneTypo(word) => word.part(..first_length(word)),
        }
    }
}

fn first_length(word: &str) -> usize {
    word.chars().next().map_or(0, char::len_utf8)
}

/// Whether the words have the same first letter and differ by one letter.
fn is_one_typo(word: &str, term: &str) -> bool {
    if word.len().abs_diff(term.len()) > char::MAX.len_utf8() || word == term {
        return false;
    }
    let (word, term): (Vec<char>, Vec<char>) = (word.chars().collect(), term.chars().collect());
    let same = word.iter().zip(&term).take_while(|(a, b)| a == b).count();
    let rest = |list: &[char], skip: usize| list.get(same + skip..).map(<[char]>::to_vec);
    let is_swapped = || {
        let (a, b) = (word.get(same..same + 2)?, term.get(same..same + 2)?);
        Some(a.first() == b.last() && a.last() == b.first() && rest(&word, 2) == rest(&term, 2))
    };
    same > 0
        && match word.len() as isize - term.len() as isize {
            0 => rest(&word, 1) == rest(&term, 1) || is_swapped().unwrap_or(false),
            1 => rest(&word, 1) == rest(&term, 0),
            -1 => rest(&word, 0) == rest(&term, 1),
            _ => false,
        }
}

/// Collects the terms that match patterns, with the number of texts that contain them.
#[derive(Debug)]
pub struct TermFinder<'a> {
    patterns: &'a [TermPattern],
    found: Vec<HashMap<String, u64>>,
}

impl<'a> TermFinder<'a> {
    /// A finder without terms.
    #[must_use]
    pub fn new(patterns: &'a [TermPattern]) -> Self {
        Self { patterns, found: vec![HashMap::new(); patterns.len()] }
    }

    /// The patterns.
    #[must_use]
    pub fn patterns(&self) -> &'a [TermPattern] {
        self.patterns
    }

    /// Adds a term that occurs in `texts` further texts to each pattern that it matches.
    pub fn add(&mut self, term: &str, texts: u64) {
        for number in 0..self.patterns.len() {
            self.add_to(number, term, texts);
        }
    }

    /// Adds a term to the pattern with this number, if it matches it.
    pub fn add_to(&mut self, number: usize, term: &str, texts: u64) {
        let Some((pattern, found)) = self.patterns.get(number).zip(self.found.get_mut(number)) else {
            return;
        };
        if pattern.matches(term) {
            match found.get_mut(term) {
                Some(known) => *known += texts,
                None => {
                    found.insert(term.to_owned(), texts);
                }
            }
        }
    }

    /// At most `limit` terms of each pattern: those in the most texts first, then in order of their bytes.
    #[must_use]
    pub fn finish(self, limit: usize) -> Vec<Vec<String>> {
        let best = |found: HashMap<String, u64>| {
            let mut found: Vec<(String, u64)> = found.into_iter().collect();
            found.sort_unstable_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
            found.truncate(limit);
            found.into_iter().map(|(term, _)| term).collect()
        };
        self.found.into_iter().map(best).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_one_letter_after_the_first() {
        let matches = |word: &str, term: &str| TermPattern::OneTypo(word.to_owned()).matches(term);
        for (word, term) in [
            ("conect", "connect"),
            ("connnect", "connect"),
            ("connekt", "connect"),
            ("conenct", "connect"),
            ("größe", "große"),
        ] {
            assert!(matches(word, term) && matches(term, word), "{word} {term}");
        }
        for (word, term) in [
            ("connect", "connect"),
            ("konnect", "connect"),
            ("conect", "connekt"),
            ("connect", "conn"),
            ("", "a"),
            ("a", "b"),
        ] {
            assert!(!matches(word, term) && !matches(term, word), "{word} {term}");
        }
    }

    #[test]
    fn frequent_terms_come_first() {
        let patterns = [TermPattern::Prefix("ab".into()), TermPattern::Infix("c".into())];
        let mut finder = TermFinder::new(&patterns);
        for (term, texts) in [("abc", 1), ("abd", 3), ("xc", 2), ("abc", 1), ("abe", 2)] {
            finder.add(term, texts);
        }
        assert_eq!(finder.finish(2), [vec!["abd", "abc"], vec!["abc", "xc"]]);
    }
}
