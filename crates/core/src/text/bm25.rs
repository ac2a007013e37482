//! BM25 scores of texts that are not in an index. They are computed as in tantivy, so that both kinds of matches can be
//! in one list.
//!
//! The formula is that of `tantivy` 0.27 (`query/bm25.rs`): `idf · tf · (k1 + 1) / (tf + k1 · (1 - b + b · length /
//! average))` summed over the terms of the query, with `idf = ln(1 + (N - n + 0.5) / (n + 0.5))`.
//!
//! tantivy's `k1` and `b` are fixed, but the average length is an input. For both kinds of matches, it is three times
//! the true average, so that the length of a text counts less: `1.2 · (0.25 + 0.75 · length / (3 · average))` is `0.6 ·
//! (0.5 + 0.5 · length / average)`, which ranks texts as with `k1 = 0.6` and `b = 0.5`. The usual parameters are for
//! long articles: with them, a short remark with one word of the question ranks above the message that answers it. See
//! `docs/search-quality.md`.

use super::Analyzer;

/// How fast further occurrences of a term stop counting, in tantivy.
pub const K1: f32 = 1.2;

/// How much the length of a text counts, in tantivy.
pub const B: f32 = 0.75;

/// The factor of the true average length in the formula.
pub const AVERAGE_FACTOR: u64 = 3;

/// Statistics of all texts, on which scores depend.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CollectionStatistics {
    /// The number of texts, `N`.
    pub documents: u64,
    /// The number of tokens in all of them, the sum of their [stored lengths](stored_length): so it is the same whether a
    /// text is in an index or not, and can be computed again after texts were removed from an index.
    pub tokens: u64,
    /// For each term of the query, the number of texts that contain it, `n`.
    pub document_frequency: Vec<u64>,
    /// How much each term counts in a score. Terms without a weight count 1.
    pub weights: Vec<f32>,
}

impl CollectionStatistics {
    /// The statistics of no texts, for a query of `terms` terms.
    #[must_use]
    pub fn new(terms: usize) -> Self {
        Self { document_frequency: vec![0; terms], ..Self::default() }
    }

    /// Sets how much each term counts in a score.
    #[must_use]
    pub fn with_weights(mut self, weights: &[f32]) -> Self {
        self.weights = weights.to_vec();
        self
    }

    /// Adds one text.
    pub fn add_document(&mut self, document: &DocumentTerms) {
        self.documents += 1;
        self.tokens += u64::from(stored_length(document.length));
        self.grow(document.frequencies.len());
        for (known, frequency) in self.document_frequency.iter_mut().zip(&document.frequencies) {
            *known += u64::from(*frequency > 0);
        }
    }

    /// Adds the statistics of other texts, for the same query.
    pub fn merge(&mut self, other: &Self) {
        self.documents += other.documents;
        self.tokens += other.tokens;
        self.grow(other.document_frequency.len());
        for (known, more) in self.document_frequency.iter_mut().zip(&other.document_frequency) {
            *known += more;
        }
    }

    fn grow(&mut self, terms: usize) {
        if self.document_frequency.len() < terms {
            self.document_frequency.resize(terms, 0);
        }
    }

    /// The number of tokens for the average length in the formula: [`AVERAGE_FACTOR`] times the true number.
    #[must_use]
    pub fn tokens_for_average(&self) -> u64 {
        self.tokens.saturating_mul(AVERAGE_FACTOR)
    }

    fn average_length(&self) -> f32 {
        self.tokens_for_average() as f32 / self.documents.max(1) as f32
    }

    /// The inverse document frequency of a term, times its weight.
    #[must_use]
    pub fn idf(&self, term: usize) -> f32 {
        let frequency = self.document_frequency.get(term).copied().unwrap_or(0);
        let without = self.documents.saturating_sub(frequency) as f32;
        let weight = self.weights.get(term).copied().unwrap_or(1.0);
        weight * (1.0 + (without + 0.5) / (frequency as f32 + 0.5)).ln()
    }
}

/// Statistics of one text, on which its score depends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DocumentTerms {
    /// Its number of tokens.
    pub length: u32,
    /// For each term of the query, how often it occurs.
    pub frequencies: Vec<u32>,
}

impl DocumentTerms {
    /// Whether any term occurs.
    #[must_use]
    pub fn matches(&self) -> bool {
        self.frequencies.iter().any(|frequency| *frequency > 0)
    }
}

/// Counts how often each of `terms` occurs in `text`. Use an analyzer from [`Analyzer::looking_for`].
#[must_use]
pub fn count_terms(analyzer: &mut Analyzer, text: &str, terms: &[String]) -> DocumentTerms {
    let mut found = DocumentTerms { length: 0, frequencies: vec![0; terms.len()] };
    let mut tokens = analyzer.tokens(text);
    while tokens.advance() {
        found.length = found.length.saturating_add(1);
        let term = terms.iter().position(|term| term == tokens.term());
        if let Some(frequency) = term.and_then(|term| found.frequencies.get_mut(term)) {
            *frequency = frequency.saturating_add(1);
        }
    }
    found
}

/// Scores many texts by the same statistics.
#[derive(Debug, Clone)]
pub struct Scorer {
    idf: Vec<f32>,
    average: f32,
}

impl Scorer {
    /// Scores texts for a query of `terms` terms.
    #[must_use]
    pub fn new(statistics: &CollectionStatistics, terms: usize) -> Self {
        let idf = (0..terms).map(|term| statistics.idf(term)).collect();
        Self { idf, average: statistics.average_length().max(f32::MIN_POSITIVE) }
    }

    /// The score of a text; zero if it contains none of the terms.
    #[must_use]
    pub fn score(&self, document: &DocumentTerms) -> f32 {
        let norm = K1 * (1.0 - B + B * stored_length(document.length) as f32 / self.average);
        let occurring = self.idf.iter().zip(&document.frequencies).filter(|(_, frequency)| **frequency > 0);
        occurring.map(|(idf, tf)| idf * (1.0 + K1) * (*tf as f32 / (*tf as f32 + norm))).sum()
    }
}

/// The score of a text; zero if it contains none of the terms.
#[must_use]
pub fn score(statistics: &CollectionStatistics, document: &DocumentTerms) -> f32 {
    Scorer::new(statistics, document.frequencies.len()).score(document)
}

/// The length that an index stores in one byte: exact up to 40, with four significant bits above (Lucene's
/// `SmallFloat.intToByte4`).
#[must_use]
pub fn stored_length(length: u32) -> u32 {
    const EXACT: u32 = 24;
    let Some(beyond) = length.checked_sub(EXACT) else { return length };
    let dropped_bits = (u32::BITS - 4).saturating_sub(beyond.leading_zeros());
    EXACT + ((beyond >> dropped_bits) << dropped_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics_of(texts: &[&str], terms: &[String]) -> (CollectionStatistics, Vec<DocumentTerms>) {
        let mut analyzer = Analyzer::new();
        let mut statistics = CollectionStatistics::new(terms.len());
        let documents: Vec<_> = texts.iter().map(|text| count_terms(&mut analyzer, text, terms)).collect();
        documents.iter().for_each(|document| statistics.add_document(document));
        (statistics, documents)
    }

    fn terms(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn lengths_are_stored_as_in_tantivy() {
        // From tantivy's table: every length up to 40, then steps of 2, 4, 8 and so on.
        let kept = [
            (0, 0),
            (23, 23),
            (40, 40),
            (41, 40),
            (42, 42),
            (55, 54),
            (56, 56),
            (59, 56),
            (60, 60),
            (88, 88),
            (95, 88),
        ];
        for (length, expected) in kept {
            assert_eq!(stored_length(length), expected, "{length}");
        }
        assert_eq!(stored_length(2_013_265_944), 2_013_265_944);
        assert!(stored_length(u32::MAX) < u32::MAX);
    }

    #[test]
    fn the_score_follows_the_formula() {
        let terms = terms(&["alpha"]);
        let (statistics, documents) = statistics_of(&["alpha alpha beta", "beta", "gamma delta"], &terms);
        let idf = (1.0_f32 + (3.0 - 1.0 + 0.5) / (1.0 + 0.5)).ln();
        let expected = idf * 2.0 * 2.2 / (2.0 + 1.2 * (0.25 + 0.75 * 3.0 / (3.0 * 2.0)));
        assert!((score(&statistics, &documents[0]) - expected).abs() < 1e-6);
        let (k1, b) = (0.6, 0.5);
        let usual = idf * 2.0 * (k1 + 1.0) / (2.0 + k1 * (1.0 - b + b * 3.0 / 2.0));
        assert!((expected - usual * (1.0 + K1) / (1.0 + k1)).abs() < 1e-6, "{expected} {usual}");
        assert_eq!(score(&statistics, &documents[1]), 0.0);
        assert!(documents[0].matches() && !documents[1].matches());
    }

    #[test]
    fn rare_words_and_short_texts_score_higher() {
        let terms = terms(&["rare", "common"]);
        let texts = ["rare x y", "common x y", "common z", "common x y z z z z z"];
        let (statistics, documents) = statistics_of(&texts, &terms);
        let scores: Vec<_> = documents.iter().map(|document| score(&statistics, document)).collect();
        assert!(scores[0] > scores[1] && scores[2] > scores[1] && scores[1] > scores[3]);
    }

    #[test]
    fn merged_statistics_are_those_of_all_texts() {
        let terms = terms(&["a", "b"]);
        let (mut left, _) = statistics_of(&["a b", "a"], &terms);
        let (right, _) = statistics_of(&["b c d"], &terms);
        left.merge(&right);
        assert_eq!(left, statistics_of(&["a b", "a", "b c d"], &terms).0);
    }

    #[test]
    fn a_term_counts_by_its_weight() {
        let terms = terms(&["rare", "common"]);
        let (statistics, documents) = statistics_of(&["rare", "common", "common"], &terms);
        let weighted = statistics.clone().with_weights(&[0.5]);
        assert_eq!(score(&weighted, &documents[0]), 0.5 * score(&statistics, &documents[0]));
        assert_eq!(score(&weighted, &documents[1]), score(&statistics, &documents[1]));
    }

    #[test]
    fn contradictory_statistics_are_harmless() {
        let statistics = CollectionStatistics {
            documents: 1,
            document_frequency: vec![5],
            ..CollectionStatistics::default()
        };
        let document = DocumentTerms { length: 10, frequencies: vec![1, 1] };
        assert!(score(&statistics, &document).is_finite());
    }
}
