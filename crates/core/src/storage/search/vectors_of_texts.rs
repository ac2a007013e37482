//! The stored vectors of texts that were found by their words.

use std::collections::HashMap;

use super::QueryVector;
use crate::{
    ErrorKind, Result,
    backend::{TextCandidate, VectorCandidate},
    model::{MessageRef, VectorRecord, VectorText},
    search::{SearchOptions, dot},
    storage::store::TranscriptSearch,
};

impl TranscriptSearch<'_> {
    /// The nearest chunk of each of these texts.
    pub(super) async fn vectors_of_texts(
        self,
        texts: &[TextCandidate],
        asked: &QueryVector,
        options: &SearchOptions,
    ) -> Result<Vec<VectorCandidate>> {
        let wanted = texts.iter().map(|text| (text.message_ref.clone(), text.content_type.into()));
        let nearest = self.nearest_stored(wanted.collect(), asked).await?;
        let is_near = |similarity: &f32| options.min_similarity.is_none_or(|least| *similarity >= least);
        let near = nearest.into_iter().filter(|(_, (similarity, _))| is_near(similarity));
        let chunk =
            |(message_ref, (similarity, record)): (MessageRef, (f32, VectorRecord))| VectorCandidate {
                message_ref,
                content_type: record.text.content_type(),
                span_start: record.span_start,
                span_end: record.span_end,
                similarity,
                vector: record.vector,
            };
        Ok(near.map(chunk).collect())
    }

    /// The stored vector of each text that is nearest to that of the query. Without vectors, or if they can't be read,
    /// texts are compared by words.
    pub(super) async fn nearest_stored(
        self,
        texts: Vec<(MessageRef, VectorText)>,
        query: &QueryVector,
    ) -> Result<HashMap<MessageRef, (f32, VectorRecord)>> {
        let mut nearest: HashMap<MessageRef, (f32, VectorRecord)> = HashMap::new();
        if texts.is_empty() || query.vector.iter().all(|x| *x == 0.0) {
            return Ok(nearest);
        }
        let stored = match self.store.backend.vectors_of(query.generation, &texts).await {
            Err(error) if error.kind() == ErrorKind::Damaged => return Ok(nearest),
            stored => stored?,
        };
        for (message_ref, record) in stored {
            let similarity = dot(&query.vector, &record.vector);
            if nearest.get(&message_ref).is_none_or(|(best, _)| similarity > *best) {
                nearest.insert(message_ref, (similarity, record));
            }
        }
        Ok(nearest)
    }
}
