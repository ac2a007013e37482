//! Searches with a vector from the caller.

use std::collections::HashSet;

use super::{CANDIDATES_A_RESULT, PlannedQuery, ReadMessages, Shown};
use crate::{
    Error, ErrorField, Result, Scope,
    backend::{VectorCandidate, VectorQuery},
    search::{Fused, SearchMode, SearchResults, VectorSearchOptions},
    storage::{embeddings::of_unit_length, store::TranscriptSearch},
    text::QueryWords,
};

impl TranscriptSearch<'_> {
    /// Finds the messages whose texts are nearest to a vector, nearest first. The score is the cosine similarity, or 0
    /// if that is negative. No embedding provider is needed. The vector must be of the store's space.
    ///
    /// # Errors
    ///
    /// `Validation` if an option is out of range, or if the vector is zero, is not finite, or has other dimensions than
    /// the store's vectors; errors of the backend.
    pub async fn vector_search(self, scope: &Scope, options: &VectorSearchOptions) -> Result<SearchResults> {
        let shown = options.as_search();
        shown.validate()?;
        let vector = of_unit_length(options.vector.clone())?;
        let mut answer = SearchResults {
            mode: SearchMode::Semantic,
            notices: Vec::new(),
            missing_vectors: None,
            examined: None,
            results: Vec::new(),
            nearest: None,
            explanation: None,
            damaged: Vec::new(),
        };
        let Some(held) = self.store.generations().await?.current else { return Ok(answer) };
        let space = held.space;
        if vector.len() != space.dimensions {
            let message = format!("has {} dimensions, but the store has {}", vector.len(), space.dimensions);
            return Err(Error::validation(ErrorField::Vector, message));
        }
        let query = VectorQuery {
            scope: scope.clone(),
            filter: options.filter.clone(),
            content_types: options.content_types,
            tools: Vec::new(),
            turns: false,
            vector,
            generation: held.number,
            limit: options.limit * CANDIDATES_A_RESULT,
        };
        let candidates = self.nearest_chunks(query, options.limit, options.min_similarity).await?;
        answer.notices = self.notices(SearchMode::Semantic, candidates.notice, None);
        let nearest = nearest_of_each(candidates.items, options.limit);
        let mut reading = ReadMessages::default();
        let words = QueryWords::default();
        let planned =
            PlannedQuery { words: &words, terms: &[], floor: None, merges_repeats: true, options: &shown };
        let Shown { results, .. } = self.show(nearest, planned, &mut reading).await?;
        (answer.results, answer.damaged) = (results, reading.damaged);
        Ok(answer)
    }
}

/// The nearest chunk of each message.
fn nearest_of_each(candidates: Vec<VectorCandidate>, limit: usize) -> Vec<(Fused, f32)> {
    let mut seen = HashSet::new();
    let nearest = candidates.into_iter().filter(|candidate| seen.insert(candidate.message_ref.clone()));
    let nearest = nearest.map(|candidate| {
        let score = candidate.similarity.max(0.0);
        (Fused::from_vector(candidate, score), score)
    });
    nearest.take(limit).collect()
}
