//! The terms of a query.

use super::Analyzer;
use crate::KnownPart;

/// The maximum number of terms in a query; further ones are ignored.
pub const MAX_QUERY_TERMS: usize = 64;

/// The distinct terms of `query`, in order.
///
/// A query is plain text: `%`, `"`, `*` and other punctuation separate words, and `AND` is an ordinary word. English
/// stop words and question words are left out, unless there are no others.
///
/// ```
/// use amplifier_session_core::text::query_terms;
///
/// assert_eq!(query_terms("How did we fix the failing tests?"), ["fix", "fail", "test"]);
/// assert_eq!(query_terms("what was it"), ["what", "was", "it"]);
/// ```
#[must_use]
pub fn query_terms(query: &str) -> Vec<String> {
    QueryWords::of(query).terms
}

/// How much a part of an identifier counts, relative to the whole.
const PART_WEIGHT: f32 = 0.3;

/// The words of a query, as typed and as terms.
///
/// An identifier is also searched in other spellings: `getUserId` by its parts, which are the words of `get_user_id`,
/// and `get_user_id` as one word, `getuserid`, which is what becomes of `getUserId`.
///
/// ```
/// use amplifier_session_core::text::QueryWords;
///
/// assert_eq!(QueryWords::of("getUserId").terms(), ["getuserid", "get", "user", "id"]);
/// assert_eq!(QueryWords::of("get_user_id").terms(), ["get", "user", "id", "getuserid"]);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueryWords {
    terms: Vec<String>,
    weights: Vec<f32>,
    typed: Vec<String>,
    sequence: Vec<String>,
    identifiers: Vec<Identifier>,
}

/// An identifier of several words in a query, or a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identifier {
    /// The term of its spelling as one word, as in `getUserId`. A path has none.
    pub joined: Option<String>,
    /// The terms of its words, as in `get_user_id` and `get/user.id`.
    pub parts: Vec<String>,
}

impl QueryWords {
    /// The words of `query`. At most [`MAX_QUERY_TERMS`] count.
    #[must_use]
    pub fn of(query: &str) -> Self {
        let mut analyzer = Analyzer::new();
        let mut tokens = analyzer.query_tokens(query);
        let (mut words, mut stop_words) = (Self::default(), Self::default());
        let mut sequence = Vec::new();
        while words.terms.len() < MAX_QUERY_TERMS && tokens.advance() {
            let typed = query.part(tokens.range());
            let list = if is_stop_word(typed) { &mut stop_words } else { &mut words };
            list.add(tokens.term(), typed, 1.0);
            if sequence.len() < MAX_QUERY_TERMS {
                sequence.push(tokens.term().to_owned());
            }
        }
        let mut words = if words.terms.is_empty() { stop_words } else { words };
        words.sequence = sequence;
        query.split_whitespace().for_each(|typed| words.add_spellings(typed));
        words
    }

    /// The distinct terms to search for, without stop words unless there are no others.
    #[must_use]
    pub fn terms(&self) -> &[String] {
        &self.terms
    }

    /// For each of the terms, how much it counts in a score.
    #[must_use]
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// The identifiers of several words, and the paths.
    #[must_use]
    pub fn identifiers(&self) -> &[Identifier] {
        &self.identifiers
    }

    /// Whether the query is only an identifier.
    #[must_use]
    pub fn is_identifier(&self) -> bool {
        let is_word = |term: &String| {
            self.identifiers
                .iter()
                .any(|name| name.joined.as_ref() == Some(term) || name.parts.contains(term))
        };
        !self.identifiers.is_empty() && self.sequence.iter().all(is_word)
    }

    /// The terms of the words as they were typed, without other spellings of identifiers.
    pub(crate) fn main_terms(&self) -> impl Iterator<Item = &str> {
        let weighted = self.terms.iter().zip(&self.weights);
        weighted.filter(|(_, weight)| **weight >= 1.0).map(|(term, _)| term.as_str())
    }

    /// For each of the terms, the word as it was typed first.
    #[must_use]
    pub fn typed(&self) -> &[String] {
        &self.typed
    }

    /// The terms of all words in their order, with stop words.
    #[must_use]
    pub fn sequence(&self) -> &[String] {
        &self.sequence
    }

    fn add(&mut self, term: &str, typed: &str, weight: f32) {
        if self.terms.len() < MAX_QUERY_TERMS && !self.terms.iter().any(|known| known == term) {
            self.terms.push(term.to_owned());
            self.typed.push(typed.to_owned());
            self.weights.push(weight);
        }
    }

    /// Adds the other spellings of an identifier.
    fn add_spellings(&mut self, typed: &str) {
        let is_letter = |c: char| c.is_ascii_alphanumeric();
        let name = typed.trim_matches(|c: char| !is_letter(c));
        if !name.chars().all(|c| is_letter(c) || matches!(c, '_' | '-')) {
            self.add_path(name);
            return;
        }
        let parts = parts_of(name);
        if parts.len() < 2 {
            return;
        }
        let mut analyzer = Analyzer::new();
        let joined: String = name.chars().filter(|c| is_letter(*c)).collect();
        let Some(joined) = analyzer.only_term(&joined) else { return };
        self.add(&joined, typed, 1.0);
        let mut terms = Vec::new();
        for part in parts {
            let Some(term) = analyzer.only_term(part) else { continue };
            if !is_stop_word(part) {
                self.add(&term, typed, PART_WEIGHT);
            }
            terms.push(term);
        }
        self.add_identifier(Identifier { joined: Some(joined), parts: terms });
    }

    /// Adds an identifier, unless it is known or there are too many.
    fn add_identifier(&mut self, name: Identifier) {
        if self.identifiers.len() < MAX_QUERY_TERMS && !self.identifiers.contains(&name) {
            self.identifiers.push(name);
        }
    }

    /// Adds a path, such as `src/main.rs` or `std::fs`. Its words are terms of the query already.
    fn add_path(&mut self, name: &str) {
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '\\' | '.' | ':'))
        {
            return;
        }
        let mut analyzer = Analyzer::new();
        let mut tokens = analyzer.query_tokens(name);
        let mut parts = Vec::new();
        while parts.len() < MAX_QUERY_TERMS && tokens.advance() {
            parts.push(tokens.term().to_owned());
        }
        if parts.len() > 1 {
            self.add_identifier(Identifier { joined: None, parts });
        }
    }
}

/// The words of a name: `HTTPServer2` has `HTTP` and `Server2`.
fn parts_of(name: &str) -> Vec<&str> {
    let bytes = name.as_bytes();
    let class = |at: usize| match bytes.get(at) {
        Some(byte) if byte.is_ascii_uppercase() => 'A',
        Some(byte) if byte.is_ascii_lowercase() || byte.is_ascii_digit() => 'a',
        _ => '_',
    };
    let begins = |at: &usize| match (class(*at - 1), class(*at)) {
        (before, 'A') => before != 'A' || class(*at + 1) == 'a',
        ('A', 'a') => false,
        (before, now) => before != now,
    };
    let mut parts = Vec::new();
    let mut start = 0;
    for end in (1..bytes.len()).filter(begins).chain([bytes.len()]) {
        parts.extend(name.get(start..end).filter(|part| !part.is_empty() && !part.starts_with(['_', '-'])));
        start = end;
    }
    parts
}

/// Whether `word` is an English stop word, ignoring case.
fn is_stop_word(word: &str) -> bool {
    let longest = 10;
    word.len() <= longest && STOP_WORDS.binary_search(&word.to_ascii_lowercase().as_str()).is_ok()
}

/// Articles, pronouns, prepositions, conjunctions, auxiliaries, question words, and parts of contractions, sorted.
/// Words with a meaning in code or commands (`for`, `if`, `while`, `not`) are included only if the ordinary meaning is
/// far more frequent.
#[rustfmt::skip]
static STOP_WORDS: &[&str] = &[
    "a", "about", "am", "an", "and", "any", "are", "aren", "as", "at",
    "be", "because", "been", "being", "but", "by",
    "can", "could", "couldn",
    "d", "did", "didn", "do", "does", "doesn", "doing", "don", "during",
    "for", "from",
    "had", "hadn", "has", "hasn", "have", "haven", "having", "he", "her", "hers", "him", "his", "how",
    "i", "if", "in", "into", "is", "isn", "it", "its",
    "just",
    "ll",
    "m", "may", "me", "might", "must", "my",
    "not",
    "of", "on", "or", "our", "ours", "over",
    "please",
    "re",
    "s", "shall", "she", "should", "shouldn", "so", "some", "such",
    "t", "than", "that", "the", "their", "theirs", "them", "then", "there", "these", "they", "this", "those",
    "to", "too",
    "us",
    "ve", "very",
    "was", "wasn", "we", "were", "weren", "what", "when", "where", "whether", "which", "who", "whom", "whose",
    "why", "will", "with", "won", "would", "wouldn",
    "you", "your", "yours",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_left_out_unless_there_are_no_others() {
        assert_eq!(query_terms("When did I ask about the authentication?"), ["ask", "authent"]);
        assert_eq!(query_terms("WHAT Is THE Deadline"), ["deadlin"]);
        assert_eq!(query_terms("to be or not to be"), ["to", "be", "or", "not"]);
        assert_eq!(query_terms("don't we've it's"), ["don", "t", "we", "ve", "it", "s"]);
        assert!(query_terms("").is_empty());
    }

    #[test]
    fn words_are_kept_as_typed_and_in_their_order() {
        let words = QueryWords::of("Why do Retries fail, and retry");
        assert_eq!(words.terms(), ["retri", "fail"]);
        assert_eq!(words.typed(), ["Retries", "fail"]);
        assert_eq!(words.sequence(), ["whi", "do", "retri", "fail", "and", "retri"]);
    }

    #[test]
    fn identifiers_are_searched_in_other_spellings() {
        let words = QueryWords::of("where is HTTPServer started");
        assert_eq!(words.terms(), ["httpserver", "start", "http", "server"]);
        assert_eq!(words.typed(), ["HTTPServer", "started", "HTTPServer", "HTTPServer"]);
        assert_eq!(words.weights(), [1.0, 1.0, PART_WEIGHT, PART_WEIGHT]);
        let identifier = Identifier {
            joined: Some("getuserid".into()),
            parts: ["get", "user", "id"].map(Into::into).into(),
        };
        for query in ["getUserId", "get-user-id", "`get_user_id()`"] {
            assert_eq!(QueryWords::of(query).identifiers(), std::slice::from_ref(&identifier), "{query}");
        }
        assert!(QueryWords::of("user id 7").identifiers().is_empty());
        let spellings: [(&str, &[&str]); 4] = [
            ("x86_64", &["x86", "64"]),
            ("HTTPServer2", &["HTTP", "Server2"]),
            ("parseJSON", &["parse", "JSON"]),
            ("", &[]),
        ];
        for (name, parts) in spellings {
            assert_eq!(parts_of(name), parts, "{name}");
        }
    }

    #[test]
    fn operators_are_plain_text() {
        assert_eq!(
            query_terms("100% \"exact phrase\" foo* AND bar_baz"),
            ["100", "exact", "phrase", "foo", "bar", "baz", "barbaz"]
        );
        assert!(query_terms("%_\"*' -- ;").is_empty());
        assert_eq!(query_terms("title:rust^2 (a OR b) NEAR/3"), ["titl", "rust", "2", "b", "near", "3"]);
    }

    #[test]
    fn terms_are_unique_and_bounded() {
        assert_eq!(query_terms("test tests Testing TEST"), ["test"]);
        let long: String = (0..5_000).map(|n| format!("word{n} ")).collect();
        assert_eq!(query_terms(&long).len(), MAX_QUERY_TERMS);
        let paths: String = (0..5_000).map(|n| format!("src/{n}.rs get_user{n} ")).collect();
        assert_eq!(QueryWords::of(&paths).identifiers().len(), MAX_QUERY_TERMS);
        assert_eq!(QueryWords::of("a/b a/b getUser getUser").identifiers().len(), 2);
    }

    #[test]
    fn the_list_is_sorted_and_short_enough() {
        assert!(STOP_WORDS.is_sorted());
        assert!(STOP_WORDS.iter().all(|word| word.len() <= 10));
    }
}
