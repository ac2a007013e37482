//! Finds messages by a vector of the caller.

use std::collections::HashMap;

use amplifier_session_core::search::VectorSearchOptions;
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use super::search::{SearchRequest, SearchResponse};
use crate::{
    Api, ApiAnswer, ApiError, FoundKind, Notice, incomplete::IncompleteReason, names::names,
    query::ResolvedQuery,
};

/// A search for the messages nearest to a vector, which the caller has made with the model of the store. Needs no model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct VectorSearchRequest {
    /// The vector, of any length but zero.
    pub vector: Vec<f32>,
    /// The filters, the number of results, and what they have. The query is empty, and results are not grouped.
    #[serde(flatten)]
    pub search: SearchRequest,
}

impl VectorSearchRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// As [`SearchRequest::check`].
    pub fn check(&self, now: &Zoned) -> Result<(), ApiError> {
        self.search.check(now)
    }
}

impl Api<'_> {
    /// Finds the messages whose texts are nearest in meaning to a vector.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; `Validation` (`vector`) if the vector is zero, is not
    /// finite, or has other dimensions than those of the store; errors of the store.
    #[crate::compiled_here]
    pub async fn search_vector(
        &self,
        request: &VectorSearchRequest,
    ) -> Result<ApiAnswer<SearchResponse>, ApiError> {
        let mut notices = Vec::new();
        let read = request.search.read(self.now, &mut notices)?;
        let ResolvedQuery { scope, options, .. } = self.resolved_query(read, &mut notices).await?;
        let mut nearest = VectorSearchOptions::new(request.vector.clone())
            .with_content_types(options.content_types)
            .with_filter(options.filter.clone())
            .with_limit(options.limit)
            .with_message(options.with_message);
        (nearest.min_similarity, nearest.snippet_chars) = (options.min_similarity, options.snippet_chars);
        let found = self.storage.search().vector_search(&scope, &nearest).await?;
        notices.extend(found.notices.iter().map(|text| Notice::Search { text: text.clone() }));
        let names = names(self.storage, &scope, found.results.iter()).await?;
        notices.extend(self.damaged_sessions(&scope));
        let incomplete = IncompleteReason::of_results(&options, &found);
        let mut response = self.response(&request.search, (found, &HashMap::new()), &names).await?;
        response.incomplete = incomplete;
        response.incomplete.extend(IncompleteReason::of_damage(&self.damaged_within(&scope)));
        if response.results.is_empty() && response.damaged.is_empty() {
            notices.push(Notice::NothingFound { what: FoundKind::Message, nearest: None });
        }
        Ok(ApiAnswer { response, notices })
    }
}
