//! Whether any text has all words of a query.

use super::{checked::ConditionCheck, text_plan::TextPlan};
use crate::{
    Result, Scope,
    search::{MatchKind, SearchMode, SearchOptions, SearchResult},
    storage::store::TranscriptSearch,
    text::QueryWords,
};

/// A longer query is a question: nobody expects all of its words in one text.
const MOST_WORDS: usize = 8;

impl TranscriptSearch<'_> {
    /// The words of the query, as they were typed, if no text has all of them, although there are `results`. `None` if one
    /// has; for queries of one word or of many, with prefixes, identifiers or an exact text; and for searches by meaning
    /// alone.
    ///
    /// This is one query of the text index, unless a result has all words.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn words_not_together(
        self,
        scope: &Scope,
        options: &SearchOptions,
        results: &[SearchResult],
    ) -> Result<Option<Vec<String>>> {
        let words = QueryWords::of(&options.query);
        let conditions = &options.conditions;
        let is_possible = options.mode != SearchMode::Semantic
            && conditions.exact.is_none()
            && conditions.prefixes.is_empty()
            && words.identifiers().is_empty()
            && !results.is_empty();
        let typed: Vec<String> = words.typed().to_vec();
        let are_whole = typed.iter().all(|word| is_whole_word(&options.query, word));
        if !is_possible || !are_whole || !(2..=MOST_WORDS).contains(&typed.len()) {
            return Ok(None);
        }
        let has_all = |result: &SearchResult| {
            result.match_kind == MatchKind::Exact || typed.iter().all(|word| result.words.contains(word))
        };
        if results.iter().any(has_all) {
            return Ok(None);
        }
        let terms: Vec<String> = words.terms().to_vec();
        let required = (0..terms.len()).map(|term| vec![term]).collect();
        let plan = TextPlan { terms, weights: words.weights().to_vec(), required, ..TextPlan::default() };
        let found = self.planned_texts(scope, options, &plan, 1, ConditionCheck::First).await?;
        Ok(found.items.is_empty().then_some(typed))
    }
}

/// Whether `word` stands in the query between spaces or punctuation, as words of some scripts do not.
fn is_whole_word(query: &str, word: &str) -> bool {
    query.split(|c: char| !c.is_alphanumeric()).any(|one| one == word)
}
