//! Candidates by looking at everything, a page at a time.

use amplifier_session_core::{
    Error, Result,
    backend::{TextCandidate, TextQuery, VectorCandidate, VectorQuery},
    content::extract,
    model::{ContentType, Place},
    text::{
        Analyzer,
        bm25::{CollectionStatistics, DocumentTerms, count_terms, score},
    },
};

use super::MemoryBackend;

impl MemoryBackend {
    /// Texts that match, scored with the statistics of all texts in the store.
    pub(super) fn matching_texts(&self, query: &TextQuery) -> Vec<TextCandidate> {
        let mut analyzer = Analyzer::new();
        let mut statistics = CollectionStatistics::new(query.terms.len());
        let mut matching: Vec<(Place, ContentType, DocumentTerms)> = Vec::new();
        let sessions = self.sessions_within(&query.scope, &query.filter.sessions);
        self.each_message(|message| {
            let within = sessions.contains(&message.place().session)
                && query.filter.admits_message(message.role, message.ts);
            for text in extract(&message.raw.parse_object().unwrap_or_default(), message.role) {
                let terms = count_terms(&mut analyzer, &text.text, &query.terms);
                statistics.add_document(&terms);
                if within && query.content_types.contains(text.content_type) && terms.matches() {
                    matching.push((message.place(), text.content_type, terms));
                }
            }
        });
        let scored = matching.into_iter().map(|(place, content_type, terms)| TextCandidate {
            score: score(&statistics, &terms),
            place,
            content_type,
        });
        let mut candidates: Vec<TextCandidate> = scored.collect();
        candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.place.cmp(&b.place)));
        candidates.truncate(query.limit);
        candidates
    }

    /// Chunks in scope by their similarity.
    pub(super) fn nearest_chunks(&self, query: &VectorQuery) -> Result<Vec<VectorCandidate>> {
        let mut candidates = Vec::new();
        let sessions = self.sessions_within(&query.scope, &query.filter.sessions);
        let mut after = None;
        loop {
            let page = self.documents().vectors.page_across(after.as_ref(), self.settings.page_size);
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            for ((key, (sequence, generation, content_type, _)), document) in page {
                let within = generation == query.generation
                    && sessions.contains(&key)
                    && query.filter.admits_message(document.role, document.ts)
                    && query.content_types.contains(content_type);
                if within {
                    candidates.push(VectorCandidate {
                        place: Place::new(key, sequence),
                        content_type,
                        span_start: document.record.span_start,
                        span_end: document.record.span_end,
                        similarity: similarity(&query.vector, &document.record.vector)?,
                        vector: document.record.vector,
                    });
                }
            }
        }
        candidates.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then_with(|| a.place.cmp(&b.place)));
        candidates.truncate(query.limit);
        Ok(candidates)
    }
}

/// Both are of unit length, so this is the cosine.
fn similarity(a: &[f32], b: &[f32]) -> Result<f32> {
    if a.len() != b.len() {
        let message = format!("has {} dimensions, the store has {}", a.len(), b.len());
        return Err(Error::validation("vector", message));
    }
    Ok(a.iter().zip(b).map(|(x, y)| x * y).sum())
}
