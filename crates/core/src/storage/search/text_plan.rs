//! The terms for a search: those of its words, and those that match its prefixes and parts of words.

use crate::{
    Error, ErrorKind, KnownPart, Result, Scope,
    backend::{TermPattern, TextQuery},
    search::{SearchOptions, SearchResult},
    storage::store::TranscriptSearch,
    text::{
        Analyzer, QueryWords, TermPhrase, folded_words, is_unspaced_alone, query_terms, shorter_stems,
        stems_of_end, stems_of_part, stems_of_typos,
    },
};

/// At most this many terms are searched for a prefix.
const TERMS_OF_A_PREFIX: usize = 64;

/// At most this many terms are searched for a part of a word in an exact text.
const TERMS_OF_A_PART: usize = 300;

/// The minimum length of a word that may have a typo, in letters.
const LONG_WORD: usize = 6;

/// The maximum length of a word that may have a typo: the number of words that differ by one letter grows with it.
const LONGEST_WORD: usize = 32;

/// The minimum length of a hexadecimal number that may be the beginning of a hash.
const SHORT_HASH: usize = 7;

/// The minimum length of an identifier that may be the beginning of a longer one.
const SHORT_IDENTIFIER: usize = 5;

/// The terms to search for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TextPlan {
    /// The terms.
    pub(super) terms: Vec<String>,
    /// How much the first terms count; the others count 1.
    pub(super) weights: Vec<f32>,
    /// Groups of positions in `terms`. A text needs a term of each group: see
    /// [`TextQuery::required`](crate::backend::TextQuery::required).
    pub(super) required: Vec<Vec<usize>>,
    /// Phrases that a text must contain.
    pub(super) phrases: Vec<TermPhrase>,
    /// Whether there is no term to search for, so that messages are found by their fields or examined one by one.
    pub(super) is_scan: bool,
    /// Whether there are terms that a word or a prefix stands for.
    pub(super) is_expanded: bool,
    /// Notes for the user.
    pub(super) notices: Vec<String>,
}

/// A word with a typo, and the terms that are probably meant.
#[derive(Debug)]
pub(super) struct Correction {
    /// The word that was typed.
    pub(super) word: String,
    /// The terms.
    pub(super) terms: Vec<String>,
}

impl TextPlan {
    /// The position of `term`, which is added if it is new.
    fn add(&mut self, term: &str) -> usize {
        self.terms.iter().position(|known| known == term).unwrap_or_else(|| {
            self.terms.push(term.to_owned());
            self.terms.len() - 1
        })
    }

    /// All words of these paths, each of which must occur.
    pub(super) fn of_files(files: &[String]) -> Self {
        let mut plan = Self::default();
        for file in files {
            // Single characters of such scripts would have to be expanded. The conditions of the search decide instead.
            whole_words(file, &mut plan, &mut Expansions::default());
        }
        plan
    }

    /// The query for texts of `options`.
    pub(super) fn query(&self, scope: &Scope, options: &SearchOptions, limit: usize) -> TextQuery {
        TextQuery {
            scope: scope.clone(),
            filter: options.filter.clone(),
            content_types: options.content_types,
            terms: self.terms.clone(),
            weights: self.weights.clone(),
            required: self.required.clone(),
            phrases: self.phrases.clone(),
            tools: options.conditions.used_tools(),
            limit,
        }
    }

    /// Also searches for the terms that are probably meant.
    pub(super) fn with_corrections(mut self, corrections: &[Correction]) -> Self {
        for term in corrections.iter().flat_map(|correction| &correction.terms) {
            self.add(term);
        }
        self
    }

    fn require(&mut self, terms: &[String]) {
        let group = terms.iter().map(|term| self.add(term)).collect();
        self.required.push(group);
    }

    /// Requires the term of a word, at a place in a phrase.
    fn require_in(&mut self, phrase: &mut TermPhrase, term: &str, place: u32) {
        let at = self.add(term);
        self.required.push(vec![at]);
        phrase.push(at, place);
    }
}

/// Terms that replace a part of a query.
struct Expansion {
    /// Their range among all patterns.
    patterns: std::ops::Range<usize>,
    purpose: Purpose,
}

#[derive(Clone, PartialEq)]
enum Purpose {
    /// A prefix that was typed.
    Prefix(String),
    /// A word of the query that may be the beginning of an identifier. The first pattern is the whole word.
    Identifier,
    /// A single character of a script in which a word is found by its parts.
    Character,
    /// A part of an exact text.
    Part,
}

#[derive(Default)]
struct Expansions {
    patterns: Vec<TermPattern>,
    list: Vec<Expansion>,
}

impl Expansions {
    fn push(&mut self, purpose: Purpose, patterns: impl IntoIterator<Item = TermPattern>) {
        let from = self.patterns.len();
        self.patterns.extend(patterns);
        self.list.push(Expansion { patterns: from..self.patterns.len(), purpose });
    }
}

impl TranscriptSearch<'_> {
    /// The terms of a search.
    pub(super) async fn text_plan(self, options: &SearchOptions, words: &QueryWords) -> Result<TextPlan> {
        let conditions = &options.conditions;
        let mut plan = TextPlan::default();
        let mut expansions = Expansions::default();
        if let Some(exact) = &conditions.exact {
            exact_parts(exact.trim(), &mut plan, &mut expansions);
        } else {
            (plan.terms, plan.weights) = (words.terms().to_vec(), words.weights().to_vec());
            identifiers(&options.query, &mut expansions);
            for prefix in &conditions.prefixes {
                let beginning = folded_words(prefix).pop().unwrap_or_default();
                // Its pairs of characters are terms already, and any text may follow them.
                if is_unspaced_alone(&beginning) {
                    continue;
                }
                expansions.push(Purpose::Prefix(prefix.clone()), beginnings(&beginning));
            }
        }
        for phrase in &conditions.phrases {
            whole_words(phrase, &mut plan, &mut expansions);
        }
        if options.needs_words() {
            self.expand(&expansions, &mut plan).await?;
        }
        plan.is_scan = options.lists_newest()
            || conditions.exact.is_some() && expansions.list.is_empty() && plan.terms.is_empty();
        Ok(plan)
    }

    async fn expand(self, expansions: &Expansions, plan: &mut TextPlan) -> Result<()> {
        if expansions.patterns.is_empty() {
            return Ok(());
        }
        let found = match self.store.backend.terms(&expansions.patterns, TERMS_OF_A_PART).await {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                return unexpanded(error, expansions, plan);
            }
            Err(error) => return Err(error),
        };
        let of = |expansion: &Expansion| found.part(expansion.patterns.clone());
        let parts = expansions.list.iter().filter(|expansion| expansion.purpose == Purpose::Part);
        let cut =
            parts.clone().filter(|part| of(part).iter().any(|terms| terms.len() >= TERMS_OF_A_PART)).count();
        let is_needed = plan.required.len() + parts.count() == cut;
        for expansion in &expansions.list {
            let lists = of(expansion);
            let mut terms: Vec<String> = lists.iter().flatten().cloned().collect();
            match &expansion.purpose {
                Purpose::Identifier if lists.first().is_some_and(|whole| !whole.is_empty()) => {}
                Purpose::Identifier | Purpose::Prefix(_) | Purpose::Character => {
                    terms.truncate(TERMS_OF_A_PREFIX);
                    plan.is_expanded |= !terms.is_empty();
                    for term in &terms {
                        plan.add(term);
                    }
                }
                // The rest of the text decides.
                Purpose::Part if lists.iter().any(|terms| terms.len() >= TERMS_OF_A_PART) && !is_needed => {}
                Purpose::Part => plan.require(&terms),
            }
        }
        if is_needed && cut > 0 {
            plan.notices.push(format!(
                "more than {TERMS_OF_A_PART} different words contain this text, so some messages may be missing"
            ));
        }
        Ok(())
    }

    /// The words of a query that no text contains, with similar terms that occur.
    pub(super) async fn corrections(self, query: &str) -> Result<Vec<Correction>> {
        let mut words: Vec<String> = Vec::new();
        for word in query.split(|c: char| !c.is_alphanumeric()) {
            if (LONG_WORD..=LONGEST_WORD).contains(&word.chars().count())
                && word.chars().all(char::is_alphabetic)
                && !words.iter().any(|w| w == word)
            {
                words.push(word.to_owned());
            }
        }
        let mut analyzer = Analyzer::new();
        let words: Vec<(String, String)> =
            words.into_iter().filter_map(|word| Some((analyzer.only_term(&word)?, word))).collect();
        let patterns: Vec<TermPattern> = words
            .iter()
            .flat_map(|(term, word)| [TermPattern::Whole(term.clone()), typo_of(term, word)])
            .collect();
        if patterns.is_empty() {
            return Ok(Vec::new());
        }
        const SIMILAR: usize = 8;
        let found = match self.store.backend.terms(&patterns, SIMILAR).await {
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(Vec::new()),
            found => found?,
        };
        // Each word has two patterns.
        let pairs = words.into_iter().zip(found.chunks(2));
        let corrections = pairs.filter_map(|((_, word), found)| match found {
            [whole, similar] if whole.is_empty() && !similar.is_empty() => {
                Some(Correction { word, terms: similar.clone() })
            }
            _ => None,
        });
        Ok(corrections.collect())
    }
}

/// The terms of words that differ from `word` by one letter. Only English words are stemmed.
fn typo_of(term: &str, word: &str) -> TermPattern {
    let mut stems = stems_of_typos(&word.to_lowercase());
    stems.remove(term);
    if stems.is_empty() { TermPattern::OneTypo(term.to_owned()) } else { TermPattern::AnyOf(stems) }
}

/// Continues without expansions if the backend can't find terms.
fn unexpanded(error: Error, expansions: &Expansions, plan: &mut TextPlan) -> Result<()> {
    let prefixes: Vec<String> = expansions
        .list
        .iter()
        .filter_map(|expansion| match &expansion.purpose {
            Purpose::Prefix(prefix) => Some(format!("{prefix}*")),
            _ => None,
        })
        .collect();
    if expansions.list.iter().any(|expansion| expansion.purpose == Purpose::Part) && plan.required.is_empty()
    {
        return Err(error);
    }
    if !prefixes.is_empty() {
        plan.notices.push(format!("{} is searched as a word only: {error}", prefixes.join(", ")));
    }
    Ok(())
}

/// Terms that begin with this word, or whose words do.
fn beginnings(word: &str) -> Vec<TermPattern> {
    let stems = shorter_stems(word).into_iter().map(TermPattern::Whole);
    std::iter::once(TermPattern::Prefix(word.to_owned())).chain(stems).collect()
}

/// Adds the words of a query that may be the beginnings of identifiers and hashes, and single characters.
fn identifiers(query: &str, expansions: &mut Expansions) {
    const MOST: usize = 16;
    let mut analyzer = Analyzer::new();
    let mut tokens = analyzer.query_tokens(query);
    while tokens.advance() {
        let word = query.part(tokens.range());
        if is_unspaced_alone(word) {
            expansions.push(Purpose::Character, folded_words(word).pop().map(TermPattern::Prefix));
        } else if looks_like_identifier(word) {
            let terms = query_terms(&word.to_lowercase());
            let whole = terms.into_iter().next().map(TermPattern::Whole);
            let beginning = TermPattern::Prefix(word.to_ascii_lowercase());
            expansions.push(Purpose::Identifier, whole.into_iter().chain([beginning]));
        }
        if expansions.list.len() >= MOST {
            return;
        }
    }
}

/// Whether a word is a hexadecimal number like the beginning of a hash, has capital letters within like `getUser`, or
/// letters and digits.
fn looks_like_identifier(word: &str) -> bool {
    let bytes = word.as_bytes();
    let has_digit = bytes.iter().any(u8::is_ascii_digit);
    let is_hex = has_digit && bytes.iter().all(u8::is_ascii_hexdigit);
    let has_hump = bytes
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    let is_mixed = has_digit && bytes.iter().any(u8::is_ascii_alphabetic);
    let is_long = bytes.len() >= if is_hex { SHORT_HASH } else { SHORT_IDENTIFIER };
    word.is_ascii() && is_long && (is_hex || has_hump || is_mixed)
}

/// Requires that a text has all words of `text` in this order, including stop words.
fn whole_words(text: &str, plan: &mut TextPlan, expansions: &mut Expansions) {
    let lower = text.to_lowercase();
    let mut phrase = TermPhrase::default();
    let mut analyzer = Analyzer::new();
    let mut tokens = analyzer.query_tokens(&lower);
    while tokens.advance() {
        let word = lower.part(tokens.range());
        if is_unspaced_alone(word) {
            expansions.push(Purpose::Part, [TermPattern::Prefix(tokens.term().to_owned())]);
        } else {
            plan.require_in(&mut phrase, tokens.term(), tokens.place());
        }
    }
    plan.phrases.extend(Some(phrase).filter(|phrase| !phrase.is_empty()));
}

/// Requires of a text what it must have to contain `exact`: all complete words in it, in this order, and words of which
/// its first and last word are parts.
fn exact_parts(exact: &str, plan: &mut TextPlan, expansions: &mut Expansions) {
    let lower = exact.to_ascii_lowercase();
    let mut phrase = TermPhrase::default();
    let mut analyzer = Analyzer::new();
    let mut tokens = analyzer.query_tokens(&lower);
    while tokens.advance() {
        let range = tokens.range();
        let (is_first, is_last) = (range.start == 0, range.end == lower.len());
        let word = lower.part(range);
        let part = folded_words(word).pop().unwrap_or_default();
        let begins_wide = !word.is_ascii() && folded_words(word).len() > 1;
        if is_unspaced_alone(word) {
            expansions.push(Purpose::Part, [TermPattern::Prefix(part)]);
            continue;
        }
        match (is_first, is_last) {
            _ if begins_wide => plan.require(&[tokens.term().to_owned()]),
            (false, false) => plan.require_in(&mut phrase, tokens.term(), tokens.place()),
            (false, true) => expansions.push(Purpose::Part, beginnings(&part)),
            (true, false) => {
                let ends = stems_of_end(&part).into_iter().map(TermPattern::Suffix);
                expansions.push(Purpose::Part, ends);
            }
            (true, true) => {
                let stems = stems_of_part(&part).into_iter().map(TermPattern::Infix);
                expansions.push(Purpose::Part, std::iter::once(TermPattern::Infix(part)).chain(stems));
            }
        }
    }
    plan.phrases.extend(Some(phrase).filter(|phrase| !phrase.is_empty()));
}

/// Notes about the words that were searched for instead of words with a typo. The words come from the results, because
/// terms of texts out of scope must not be shown.
pub(super) fn did_you_mean(corrections: &[Correction], results: &[SearchResult]) -> Option<String> {
    let notes: Vec<String> = corrections
        .iter()
        .filter_map(|Correction { word, terms }| {
            let mut marked = results.iter().flat_map(marked_words);
            let meant = marked.find(|marked| query_terms(marked).iter().any(|term| terms.contains(term)))?;
            Some(format!("no message contains \"{word}\"; did you mean \"{}\"?", meant.to_lowercase()))
        })
        .collect();
    (!notes.is_empty()).then(|| notes.join(" "))
}

fn marked_words(result: &SearchResult) -> impl Iterator<Item = String> + '_ {
    let word = |(start, end): &(u32, u32)| {
        result.snippet.chars().skip(*start as usize).take(end.saturating_sub(*start) as usize).collect()
    };
    result.highlights.iter().map(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_and_hashes_may_be_beginnings() {
        for word in ["getUser", "NullPointerExc", "9f86d08", "utf8x", "3a7c1e90", "1234567"] {
            assert!(looks_like_identifier(word), "{word}");
        }
        for word in
            ["basket", "Basket", "HTTP", "x86", "9f86d", "E0308", "12345", "deadbeef", "größeR", "", "v1"]
        {
            assert!(!looks_like_identifier(word), "{word}");
        }
    }

    #[test]
    fn the_edges_of_an_exact_text_are_parts_of_words() {
        let (mut plan, mut expansions) = (TextPlan::default(), Expansions::default());
        exact_parts("ception: at com.shop.Bas", &mut plan, &mut expansions);
        assert_eq!(plan.terms, ["at", "com", "shop"]);
        assert!(expansions.patterns.contains(&TermPattern::Suffix("ception".into())));
        assert!(expansions.patterns.contains(&TermPattern::Prefix("bas".into())));
        let (mut plan, mut expansions) = (TextPlan::default(), Expansions::default());
        exact_parts("(9f86d)", &mut plan, &mut expansions);
        assert_eq!((plan.terms, expansions.patterns.len()), (vec!["9f86d".to_owned()], 0));
        exact_parts("6d08", &mut TextPlan::default(), &mut expansions);
        assert_eq!(expansions.patterns, [TermPattern::Infix("6d08".into())]);
    }
}
