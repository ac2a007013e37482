//! Candidates by looking at everything, a page at a time.

use amplifier_session_core::{
    Error, Result, Scope,
    backend::{TextCandidate, TextQuery, VectorCandidate, VectorQuery},
    content::extract,
    model::{ContentType, Message, Place, SessionKey},
    search::SearchFilter,
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
        self.each_message(|message| {
            let within = admits(&query.scope, &query.filter, &message);
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
        let mut after = None;
        loop {
            let page = self.documents().vectors.page_across(after.as_ref(), self.settings.page_size);
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            for ((key, (sequence, content_type, _)), document) in page {
                let within = in_scope(&query.scope, &key)
                    && query.filter.admits_session(&document.project, &key.session_id)
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

    fn each_message(&self, mut each: impl FnMut(Message)) {
        let mut after = None;
        loop {
            let page = self.documents().messages.page_across(after.as_ref(), self.settings.page_size);
            let Some((last, _)) = page.last() else { return };
            after = Some(last.clone());
            page.into_iter().for_each(|(_, message)| each(message));
        }
    }
}

fn admits(scope: &Scope, filter: &SearchFilter, message: &Message) -> bool {
    in_scope(scope, &message.place().session)
        && filter.admits_session(&message.project_slug, &message.session_id)
        && filter.admits_message(message.role, message.ts)
}

fn in_scope(scope: &Scope, key: &SessionKey) -> bool {
    scope.user().is_none_or(|user| *user == key.user_id)
}

/// Both are of unit length, so this is the cosine.
fn similarity(a: &[f32], b: &[f32]) -> Result<f32> {
    if a.len() != b.len() {
        let message = format!("has {} dimensions, the store has {}", a.len(), b.len());
        return Err(Error::validation("vector", message));
    }
    Ok(a.iter().zip(b).map(|(x, y)| x * y).sum())
}
