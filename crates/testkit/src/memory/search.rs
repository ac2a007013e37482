//! Search candidates, found by scanning everything.

use std::collections::BTreeSet;

use amplifier_session_core::{
    Result,
    backend::{
        Candidates, DatedMessage, IndexUpdate, Search, TermFinder, TermPattern, TextCandidate, TextQuery,
        VectorCandidate, VectorQuery,
    },
    content::ExtractedText,
    model::{Message, SessionKey},
    text::{
        Analyzer,
        bm25::{count_terms, score},
    },
};
use async_trait::async_trait;

use super::MemoryBackend;

#[async_trait]
impl Search for MemoryBackend {
    async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
        let mut analyzer = Analyzer::new();
        // The frequency of a word counts all texts, not only those within the scope.
        let mut statistics = query.no_statistics();
        let mut matching = Vec::new();
        for session in self.rows().sessions.values() {
            let is_within = session.is_within(&query.scope, &query.filter.sessions);
            for message in session.messages.values().map(|row| &row.message) {
                let line = message.line();
                let is_asked_for = is_within
                    && query.filter.admits_message(message.role, message.ts)
                    && query.has_tools(&line.used_tools());
                for text in line.texts() {
                    let terms = count_terms(&mut analyzer, &text.text, &query.terms);
                    statistics.add_document(&terms);
                    if is_asked_for
                        && query.is_matched_by(&terms)
                        && query.content_types.contains(text.content_type)
                        && query.has_phrases_in(&mut analyzer, &text.text)
                    {
                        matching.push((message.message_ref(), text.content_type, terms));
                    }
                }
            }
        }
        let candidates = matching.into_iter().map(|(message_ref, content_type, terms)| {
            let score = score(&statistics, &terms);
            TextCandidate { message_ref, content_type, score }
        });
        let found = best(candidates.collect(), |candidate| candidate.score, query.limit);
        Ok(found.with_statistics(statistics))
    }

    async fn newest_messages(&self, query: &TextQuery) -> Result<Candidates<DatedMessage>> {
        let mut analyzer = Analyzer::new();
        let rows = self.rows();
        let mut matches = |message: &Message| {
            let line = message.line();
            let is_match = |text: &ExtractedText| {
                query.content_types.contains(text.content_type)
                    && query.is_matched_by(&count_terms(&mut analyzer, &text.text, &query.terms))
                    && query.has_phrases_in(&mut analyzer, &text.text)
            };
            query.has_tools(&line.used_tools()) && line.texts().iter().any(is_match)
        };
        let messages = rows.messages(&query.scope, &query.filter).map(|row| &row.message);
        let mut found: Vec<DatedMessage> =
            messages.filter(|message| matches(message)).map(DatedMessage::from).collect();
        DatedMessage::keep_newest(&mut found, query.limit);
        Ok(Candidates::new(found))
    }

    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        let mut candidates = Vec::new();
        for row in self.rows().messages(&query.scope, &query.filter) {
            let used = row.message.line().used_tools();
            if !query.turns && !query.tools.iter().all(|tool| used.contains(tool)) {
                continue;
            }
            let records = row.records(query.generation).iter();
            let records = records.filter(|record| query.compares(record.text));
            candidates.extend(records.map(|record| VectorCandidate {
                message_ref: row.message.message_ref(),
                content_type: record.text.content_type(),
                span_start: record.span_start,
                span_end: record.span_end,
                // Both have unit length, so this is the cosine.
                similarity: query.vector.iter().zip(&record.vector).map(|(x, y)| x * y).sum(),
                vector: record.vector.clone(),
            }));
        }
        Ok(best(candidates, |candidate| candidate.similarity, query.limit))
    }

    async fn terms(&self, patterns: &[TermPattern], limit: usize) -> Result<Vec<Vec<String>>> {
        let (mut analyzer, mut finder) = (Analyzer::new(), TermFinder::new(patterns));
        let rows = self.rows();
        for message in rows.sessions.values().flat_map(|session| session.messages.values()) {
            let message = &message.message;
            for text in message.line().texts() {
                let mut tokens = analyzer.tokens(&text.text);
                let mut terms = BTreeSet::new();
                while tokens.advance() {
                    terms.insert(tokens.term().to_owned());
                }
                terms.iter().for_each(|term| finder.add(term, 1));
            }
        }
        Ok(finder.finish(limit))
    }

    async fn update_index(&self, _: IndexUpdate) -> Result<()> {
        Ok(())
    }

    async fn reindex_texts(&self, _: &SessionKey, _: &[u32]) -> Result<()> {
        Ok(())
    }
}

/// The best items first. The sort is stable: ties stay in order of sequences, in every call.
fn best<T>(mut items: Vec<T>, score: impl Fn(&T) -> f32, limit: usize) -> Candidates<T> {
    items.sort_by(|a, b| score(b).total_cmp(&score(a)));
    items.truncate(limit);
    Candidates::new(items)
}
