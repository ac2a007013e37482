//! Finding what is near to a vector that the caller has.

use std::collections::HashSet;

use super::{SessionStorage, embeddings::of_unit_length, search::candidates_for};
use crate::{
    Error, Result, Scope,
    backend::{VectorCandidate, VectorQuery},
    search::{Fused, SearchMode, SearchResults, VectorSearchOptions},
};

impl SessionStorage {
    /// Finds the messages whose texts are nearest to a vector, nearest first: by cosine similarity alone, which is the
    /// score (0 where it is negative). Needs no embedding provider. The vector must be of the store's space.
    ///
    /// # Errors
    ///
    /// `Validation` when an option is out of range, the vector is zero or not finite, or has other dimensions than
    /// those of the store; those of the backend.
    pub async fn vector_search(&self, scope: &Scope, options: &VectorSearchOptions) -> Result<SearchResults> {
        let shown = options.as_search();
        shown.validate()?;
        let vector = of_unit_length(options.vector.clone())?;
        let mut answer =
            SearchResults { mode: SearchMode::Semantic, notices: Vec::new(), results: Vec::new() };
        let Some(space) = self.embedding_space().await? else { return Ok(answer) };
        if vector.len() != space.dimensions {
            let message = format!("has {} dimensions, the store has {}", vector.len(), space.dimensions);
            return Err(Error::validation("vector", message));
        }
        let mut query = VectorQuery {
            scope: scope.clone(),
            filter: options.filter.clone(),
            content_types: options.content_types,
            vector,
            limit: candidates_for(options.limit),
        };
        let nearest = loop {
            let candidates = self.backend.vector_candidates(&query).await?;
            let too_far = |last: &VectorCandidate| options.min_similarity > Some(last.similarity);
            let complete =
                candidates.items.len() < query.limit || candidates.items.last().is_some_and(too_far);
            answer.notices = candidates.notice.into_iter().collect();
            let nearest = nearest_of_each(candidates.items, options);
            if complete || nearest.len() >= options.limit {
                break nearest;
            }
            // The chunks of a few long messages took all the places.
            query.limit *= 4;
        };
        answer.results = self.show(nearest, &shown, &[]).await?;
        Ok(answer)
    }
}

/// The nearest chunk of each message, as far as it is near enough.
fn nearest_of_each(candidates: Vec<VectorCandidate>, options: &VectorSearchOptions) -> Vec<(Fused, f32)> {
    let mut seen = HashSet::new();
    let candidates = candidates.into_iter();
    let near = candidates
        .filter(|candidate| options.min_similarity.is_none_or(|least| candidate.similarity >= least))
        .filter(|candidate| seen.insert(candidate.place.clone()));
    let near = near.map(|candidate| {
        let score = candidate.similarity.max(0.0);
        (Fused::from_vector(candidate, score), score)
    });
    near.take(options.limit).collect()
}
