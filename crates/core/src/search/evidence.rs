//! Evidence: what a text has of the words of a query.

use std::collections::HashMap;

use super::MatchKind;
use crate::text::{Analyzer, QueryWords};

/// The maximum distance of two words that count as near each other, in words.
const NEAR: u32 = 6;

/// How much words of the query that are near each other add to the score of a text, relative to the words themselves.
const NEARNESS: f32 = 0.8;

/// How much a text with all words of the query gains, as a share of its score.
const COVERAGE: f32 = 0.2;

/// The factor for a text with an identifier or a path of the query, in any spelling: its words may be common, but not
/// joined.
const IDENTIFIER: f32 = 2.0;

/// The factor for a text with the whole query, word by word, if it has several words: an error message, for example.
const PHRASE: f32 = 1.5;

/// A query of fewer words is not counted as a phrase: neighbouring words already count.
const LEAST_OF_PHRASE: usize = 3;

/// At most this many characters join the words of a name, as in `storage::search` and `a->b`.
const MOST_JOINING: usize = 2;

/// What a text has of the words of a query.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Evidence {
    /// For each term of the query, whether the text contains it.
    pub(crate) has: Vec<bool>,
    /// Whether the text contains the whole query, word by word.
    has_phrase: bool,
    /// Whether the text contains an identifier or a path of the query, in any spelling.
    has_identifier: bool,
    /// For each term and the next one, the distance in words, if they are near each other. In the other order, the
    /// distance counts twice.
    distances: Vec<Option<u32>>,
    /// The number of words of the text.
    pub(crate) length: u32,
}

impl Evidence {
    /// The score of a text with this evidence, from its BM25 score. `weights` are those of the terms.
    ///
    /// BM25 ignores where words are. In a text about the query, words that are neighbours in the query are near each
    /// other, and most of the words are there.
    pub(crate) fn score(&self, bm25: f32, weights: &[f32]) -> f32 {
        let pairs = weights.iter().zip(weights.iter().skip(1));
        let near = self.distances.iter().zip(pairs).filter_map(|(distance, (a, b))| {
            let distance = (*distance)?;
            Some(a.min(*b) / distance as f32)
        });
        let whole = match (self.has_identifier, self.has_long_phrase()) {
            (true, _) => IDENTIFIER,
            (false, true) => PHRASE,
            (false, false) => 1.0,
        };
        (bm25 + NEARNESS * near.sum::<f32>()) * (1.0 + COVERAGE * coverage(&self.has, weights)) * whole
    }

    /// Whether the text contains the whole query, word by word, and that is more than neighbouring words.
    fn has_long_phrase(&self) -> bool {
        self.has_phrase && self.has.len() >= LEAST_OF_PHRASE
    }

    /// Whether the text contains an identifier or a path of the query, or the whole query, word by word. Hardly a text
    /// has that by chance, however long it is.
    pub(crate) fn is_exact(&self) -> bool {
        self.has_identifier || self.has_long_phrase()
    }

    /// Whether the text has all words of the query. Of an identifier, any spelling counts.
    pub(crate) fn has_all(&self, words: &QueryWords) -> bool {
        let mut needed = self.has.iter().zip(words.weights()).filter(|(_, weight)| **weight >= 1.0);
        self.has_identifier || needed.all(|(has, _)| *has)
    }

    /// What the text matches of the query.
    pub(crate) fn kind(&self) -> MatchKind {
        match (self.has_phrase, self.has.contains(&true)) {
            (true, _) => MatchKind::Exact,
            (false, true) => MatchKind::Words,
            (false, false) => MatchKind::Similar,
        }
    }

    /// The words of the query that the text has, as they were typed. A text with a part of an identifier does not have
    /// the identifier.
    pub(crate) fn typed(&self, words: &QueryWords) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for ((word, weight), has) in words.typed().iter().zip(words.weights()).zip(&self.has) {
            let is_whole = *weight >= 1.0 || self.has_identifier;
            if *has && is_whole && !found.contains(word) {
                found.push(word.clone());
            }
        }
        found
    }
}

/// The share of the words of a query that a text has, by the weights of their terms.
pub(crate) fn coverage(has: &[bool], weights: &[f32]) -> f32 {
    let all: f32 = weights.iter().sum();
    let held: f32 = has.iter().zip(weights).filter(|(has, _)| **has).map(|(_, weight)| weight).sum();
    if all > 0.0 { held / all } else { 0.0 }
}

/// Finds evidence in texts for one query.
#[derive(Debug)]
pub(crate) struct EvidenceFinder<'a> {
    words: &'a QueryWords,
    analyzer: Analyzer,
    wanted: HashMap<String, TargetTerm>,
    runs: Runs,
}

/// A term that is looked for.
#[derive(Debug, Default)]
struct TargetTerm {
    /// Its place among the terms of the query, if it is one of them.
    term: Option<usize>,
    /// For each run, a bit for each of its places in the run.
    places: Vec<u64>,
}

/// The runs of terms that are looked for: the whole query, then the spellings of its identifiers.
///
/// This is the shift-and algorithm: bit *n* of a state says that the last *n* + 1 tokens are the first *n* + 1 terms of
/// the run.
#[derive(Debug, Default)]
struct Runs {
    /// The bit of the last term of each run.
    last: Vec<u64>,
    /// The state of each run.
    open: Vec<u64>,
    /// Whether a run may be open: after most tokens, none is.
    is_any_open: bool,
    found: Vec<bool>,
}

/// The run that is the whole query. Its words need not be joined.
const WHOLE_QUERY: usize = 0;

impl Runs {
    /// Adds a run, with its terms in `wanted`. One with more terms than bits is never found.
    fn add(&mut self, terms: &[String], wanted: &mut HashMap<String, TargetTerm>) {
        let run = self.last.len();
        self.last.push(match terms.len() {
            length @ 1..=64 => 1 << (length - 1),
            _ => 0,
        });
        for (place, term) in terms.iter().take(64).enumerate() {
            let places = &mut wanted.entry(term.clone()).or_default().places;
            places.resize(run + 1, 0);
            if let Some(bits) = places.last_mut() {
                *bits |= 1 << place;
            }
        }
    }

    fn restart(&mut self) {
        (self.open, self.is_any_open) = (vec![0; self.last.len()], false);
        self.found = vec![false; self.last.len()];
    }

    /// Takes the next token: a term with these places, joined to the token before it or not.
    fn next(&mut self, places: &[u64], is_joined: bool) {
        if places.is_empty() {
            if std::mem::take(&mut self.is_any_open) {
                self.open.fill(0);
            }
            return;
        }
        self.is_any_open = true;
        let places = places.iter().chain(std::iter::repeat(&0));
        let runs = self.open.iter_mut().zip(&mut self.found).zip(&self.last).zip(places).enumerate();
        for (run, (((open, found), last), places)) in runs {
            let before = if is_joined || run == WHOLE_QUERY { *open } else { 0 };
            *open = ((before << 1) | 1) & places;
            *found |= *open & last != 0;
        }
    }
}

impl<'a> EvidenceFinder<'a> {
    pub(crate) fn new(words: &'a QueryWords) -> Self {
        let mut wanted: HashMap<String, TargetTerm> = HashMap::new();
        for (at, term) in words.terms().iter().enumerate() {
            wanted.entry(term.clone()).or_default().term = Some(at);
        }
        let mut runs = Runs::default();
        runs.add(words.sequence(), &mut wanted);
        for name in words.identifiers() {
            runs.add(name.joined.as_slice(), &mut wanted);
            runs.add(&name.parts, &mut wanted);
        }
        let terms: Vec<String> = wanted.keys().cloned().collect();
        Self { words, analyzer: Analyzer::looking_for(&terms), wanted, runs }
    }

    /// The evidence in `text`. The time is linear in its length.
    pub(crate) fn find(&mut self, text: &str) -> Evidence {
        let terms = self.words.terms();
        let mut found = Evidence {
            has: vec![false; terms.len()],
            distances: vec![None; terms.len().saturating_sub(1)],
            ..Evidence::default()
        };
        let mut last: Vec<Option<u32>> = vec![None; terms.len()];
        self.runs.restart();
        let mut end = 0;
        let mut tokens = self.analyzer.tokens(text);
        while tokens.advance() {
            let term = tokens.term();
            let wanted = if term.is_empty() { None } else { self.wanted.get(term) };
            // The last character of a run is also in the token before.
            if !tokens.is_last_of_run() {
                found.length = found.length.saturating_add(1);
                let range = tokens.range();
                let is_joined = wanted.is_some() && text.get(end..range.start).is_some_and(joins);
                end = range.end;
                self.runs.next(wanted.map_or(&[], |wanted| &wanted.places), is_joined);
            }
            let position = found.length;
            let Some(term) = wanted.and_then(|wanted| wanted.term) else { continue };
            let before = term.checked_sub(1);
            found.near(before, before.and_then(|before| *last.get(before)?), position, 1);
            found.near(Some(term), last.get(term + 1).copied().flatten(), position, 2);
            if let (Some(has), Some(last)) = (found.has.get_mut(term), last.get_mut(term)) {
                (*has, *last) = (true, Some(position));
            }
        }
        let [whole, names @ ..] = self.runs.found.as_slice() else { return found };
        found.has_identifier = names.contains(&true);
        found.has_phrase = *whole || (found.has_identifier && self.words.is_identifier());
        found
    }
}

impl Evidence {
    /// Notes that the terms of a pair are `position - other` words apart, times `factor`, unless they are nearer
    /// elsewhere.
    fn near(&mut self, pair: Option<usize>, other: Option<u32>, position: u32, factor: u32) {
        let (Some(pair), Some(other)) = (pair, other) else { return };
        let distance = position.saturating_sub(other).max(1).saturating_mul(factor);
        if let Some(nearest) = self.distances.get_mut(pair)
            && distance <= NEAR
            && nearest.is_none_or(|nearest| distance < nearest)
        {
            *nearest = Some(distance);
        }
    }
}

/// Whether the characters between two words make them one name.
fn joins(between: &str) -> bool {
    between.len() <= MOST_JOINING && between.bytes().all(|byte| b"_-./\\:>".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(query: &str, text: &str) -> Evidence {
        EvidenceFinder::new(&QueryWords::of(query)).find(text)
    }

    #[test]
    fn words_and_their_distances_are_found() {
        let found = evidence("connection pool size", "The pool had a size; the connection pools are fine");
        assert_eq!(found.has, [true, true, true]);
        assert_eq!(found.distances, [Some(1), Some(3)]);
        assert_eq!((found.length, found.has_phrase), (10, false));
        assert_eq!(evidence("alpha beta", "beta alpha").distances, [Some(2)]);
        assert_eq!(evidence("alpha beta", "alpha a b c d e f g beta").distances, [None]);
    }

    #[test]
    fn a_phrase_includes_stop_words_and_is_found_within_repetitions() {
        assert!(evidence("out of the memory", "runs out of the memory").has_phrase);
        assert!(!evidence("out of the memory", "out of a memory").has_phrase);
        assert!(evidence("a b a c", "a b a b a c").has_phrase);
        assert!(!evidence("", "text").has_phrase);
    }

    #[test]
    fn an_identifier_is_found_in_any_spelling() {
        for query in ["getUserId", "get_user_id", "GetUserID", "get-user-id"] {
            let words = QueryWords::of(query);
            for text in ["call getUserId(x)", "GET-USER-ID: 7", "let get_user_id = 1"] {
                let found = EvidenceFinder::new(&words).find(text);
                assert_eq!(found.kind(), MatchKind::Exact, "{query} in {text}");
            }
            for text in ["the user, by id: get it", "first get users' ids", "f(get, user, id)", "get,user,id"]
            {
                let found = EvidenceFinder::new(&words).find(text);
                assert!(!found.has_identifier, "{query} in {text}");
            }
        }
    }

    #[test]
    fn a_text_with_a_part_of_an_identifier_does_not_have_the_identifier() {
        let words = QueryWords::of("who calls getUser");
        for (text, has) in [
            ("getUser calls", &["calls", "getUser"] as &[&str]),
            ("get_user()", &["getUser"]),
            ("a user calls", &["calls"]),
        ] {
            assert_eq!(EvidenceFinder::new(&words).find(text).typed(&words), has, "{text}");
        }
    }

    #[test]
    fn a_name_of_any_length_can_be_searched_for() {
        for words in [63, 64, 65, 200] {
            let name: Vec<String> = (0..words).map(|n| format!("w{n}")).collect();
            let name = name.join("_");
            let found = evidence(&name, &format!("call {name}()"));
            assert_eq!(found.has_identifier, words <= 64, "{words}");
        }
    }

    #[test]
    fn a_path_is_found_as_it_is_written() {
        let is_there = |query, text| evidence(query, text).has_identifier;
        for query in ["Lib/socket.py", "`lib/socket.py`", "the file lib/socket.py"] {
            assert!(is_there(query, "I wrote /usr/Lib/socket.py today"), "{query}");
            assert!(!is_there(query, "the lib socket is in socket.py"), "{query}");
        }
        assert!(is_there("core::text", "use crate::core::text;"));
        assert!(!is_there("core::text", "the core: text"));
        assert!(!is_there("the core, text", "core::text"));
    }

    #[test]
    fn a_text_with_the_whole_query_scores_higher() {
        let weights = [1.0; 3];
        let score = |text| evidence("disk quota exceeded", text).score(3.0, &weights);
        assert!(score("error: disk quota exceeded") > 1.4 * score("disk quota was exceeded"));
    }

    #[test]
    fn identifiers_and_whole_queries_are_exact() {
        let is_exact = |query, text| evidence(query, text).is_exact();
        assert!(is_exact("where is excValue set", "exc_value = None"));
        assert!(is_exact("disk quota exceeded", "error: disk quota exceeded"));
        assert!(!is_exact("disk quota exceeded", "the quota of the disk was exceeded"));
        assert!(!is_exact("disk quota", "disk quota"), "two neighbours may be chance");
    }

    #[test]
    fn words_that_are_near_each_other_score_higher() {
        let (near, far) =
            (evidence("alpha beta", "alpha beta"), evidence("alpha beta", "alpha x x x x x x x beta"));
        let weights = [2.0, 1.0];
        assert!(near.score(3.0, &weights) > far.score(3.0, &weights));
        assert!(far.score(3.0, &weights) > evidence("alpha beta", "alpha").score(3.0, &weights));
    }
}
