//! The results of a ranking: texts, snippets, what matched, and repeats as one result.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    ops::Range,
};

use serde_json::Value;

use super::reading::{ReadMessage, ReadMessages};
use crate::{
    Result,
    content::MessageLine,
    model::{ContentType, MessageRef},
    search::{EvidenceFinder, Fused, MatchKind, Repeat, SearchOptions, SearchResult},
    storage::store::{StoreContext, TranscriptSearch},
    text::{QueryWords, Snippets},
};

/// Shorter texts are not compared: that two people said "yes" makes no repeat.
const LEAST_REPEATED_CHARS: usize = 20;

/// The query that results are made for.
#[derive(Debug, Clone, Copy)]
pub(in crate::storage) struct PlannedQuery<'a> {
    pub(in crate::storage) words: &'a QueryWords,
    /// The terms that were searched: those of the words, and those that prefixes stand for.
    pub(in crate::storage) terms: &'a [String],
    /// The least similarity of a text without a word of the query.
    pub(in crate::storage) floor: Option<f32>,
    /// Whether messages with the same text are one result.
    pub(in crate::storage) merges_repeats: bool,
    pub(in crate::storage) options: &'a SearchOptions,
}

/// The results of a ranking.
#[derive(Debug, Default)]
pub(in crate::storage) struct Shown {
    pub(in crate::storage) results: Vec<SearchResult>,
    /// The best message that is too far from the query to be a result.
    pub(in crate::storage) nearest: Option<SearchResult>,
}

impl TranscriptSearch<'_> {
    /// Makes results of the best `limit` candidates, in their order. Candidates with the same text may be one result.
    /// Candidates that were removed in the meantime or can't be read are left out, and so are those without a word of
    /// the query whose similarity is below the floor.
    pub(in crate::storage) async fn show(
        self,
        picked: Vec<(Fused, f32)>,
        query: PlannedQuery<'_>,
        reading: &mut ReadMessages,
    ) -> Result<Shown> {
        let options = query.options;
        let mut builder = ResultBuilder {
            store: self.store,
            query,
            evidence: EvidenceFinder::new(query.words),
            snippets: Snippets::new(query.terms),
            seen: HashMap::new(),
            shown: Shown::default(),
        };
        let mut rest = picked.into_iter().peekable();
        while builder.shown.results.len() < options.limit && rest.peek().is_some() {
            let missing = options.limit - builder.shown.results.len();
            let next: Vec<(Fused, f32)> = rest.by_ref().take(missing).collect();
            reading.read(self.store, next.iter().map(|(fused, _)| fused.message_ref.clone())).await?;
            for (fused, score) in next {
                if let Some(read) = reading.get(&fused.message_ref) {
                    builder.add(read, fused, score)?;
                }
            }
        }
        // The rest are no results, but may repeat one.
        for (fused, _) in rest {
            if let Some(read) = reading.get(&fused.message_ref).filter(|_| query.merges_repeats) {
                builder.note_repeat(read, &fused);
            }
        }
        let mut shown = builder.shown;
        self.show_originals(&mut shown.results, reading).await?;
        Ok(shown)
    }
}

struct ResultBuilder<'a> {
    store: &'a StoreContext,
    query: PlannedQuery<'a>,
    evidence: EvidenceFinder<'a>,
    snippets: Snippets<'a>,
    /// The texts of results, by their digests.
    seen: HashMap<u64, usize>,
    shown: Shown,
}

impl ResultBuilder<'_> {
    fn add(&mut self, read: &ReadMessage, fused: Fused, score: f32) -> Result<()> {
        if self.query.merges_repeats && self.note_repeat(read, &fused) {
            return Ok(());
        }
        let result = self.result(read, fused, score)?;
        let is_too_far = result.match_kind == MatchKind::Similar
            && !result.by_title
            && result.similarity.zip(self.query.floor).is_some_and(|(similarity, floor)| similarity < floor);
        if is_too_far {
            let nearest = self.shown.nearest.get_or_insert_with(|| result.clone());
            if result.similarity > nearest.similarity {
                *nearest = result;
            }
            return Ok(());
        }
        if let Some(digest) = text_digest(read, result.content_type) {
            self.seen.insert(digest, self.shown.results.len());
        }
        self.shown.results.push(result);
        Ok(())
    }

    /// Adds the message to the result that it repeats. Returns whether there is one.
    fn note_repeat(&mut self, read: &ReadMessage, fused: &Fused) -> bool {
        let seen = text_digest(read, fused.content_type).and_then(|digest| self.seen.get(&digest));
        let Some(result) = seen.and_then(|position| self.shown.results.get_mut(*position)) else {
            return false;
        };
        let MessageRef { session, sequence } = fused.message_ref.clone();
        result.also_in.push(Repeat { user_id: session.user_id, session_id: session.session_id, sequence });
        true
    }

    fn result(&mut self, read: &ReadMessage, fused: Fused, score: f32) -> Result<SearchResult> {
        let message = &read.message;
        // The whole text, because a snippet may have only a part of a secret.
        let text = &*self.store.masked_text(&message.user_id, read.text(fused.content_type))?;
        let evidence = self.evidence.find(text);
        let within = fused.span.map(|(start, end)| byte_range(text, start, end));
        let snippet = self.snippets.cut(text, fused.content_type, within, self.query.options.snippet_chars);
        Ok(SearchResult {
            user_id: message.user_id.clone(),
            session_id: message.session_id.clone(),
            project: message.project_slug.clone(),
            sequence: message.sequence,
            turn: message.turn,
            role: message.role,
            ts: message.ts,
            ts_estimated: message.ts_source.is_estimated(),
            ts_source: message.ts_source,
            content_type: fused.content_type,
            span: fused.span.unwrap_or_else(|| (0, text.chars().count() as u32)),
            score,
            match_kind: match evidence.kind() {
                // A word that a prefix or a mistyped word stands for.
                MatchKind::Similar if fused.text_score.is_some() => MatchKind::Words,
                kind => kind,
            },
            words: evidence.typed(self.query.words),
            by_title: fused.why.title > 0.0,
            source: fused.source,
            text_score: fused.text_score,
            similarity: fused.similarity,
            snippet: snippet.text,
            highlights: snippet.highlights,
            also_in: Vec::new(),
            explanation: self.query.options.explain.then_some(fused.why),
            message: self.query.options.with_message.then(|| self.message(read)).transpose()?,
        })
    }

    fn message(&self, read: &ReadMessage) -> Result<Value> {
        self.store.count_read(read.message.raw.as_bytes().len())?;
        let masked = self.store.masked_line(&read.message.user_id, &read.message.raw)?;
        let line =
            masked.map(|raw| MessageLine::stored(&raw, read.message.role, read.message.session_id.source()));
        Ok(Value::Object(line.as_ref().unwrap_or(&read.line).fields().clone()))
    }
}

/// A digest of a text, to find repeats; `None` if it is short, unless it is at the same place and time in several
/// sessions: people often say the same words, but forks and copied sessions have the same message.
fn text_digest(read: &ReadMessage, content_type: ContentType) -> Option<u64> {
    let text = read.text(content_type).trim();
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    if text.chars().nth(LEAST_REPEATED_CHARS).is_none() {
        let message = Some(&read.message).filter(|message| !message.ts_estimated())?;
        (&message.user_id, message.sequence, message.ts).hash(&mut hasher);
    }
    Some(hasher.finish())
}

/// The byte range of the characters `start..end`.
fn byte_range(text: &str, start: u32, end: u32) -> Range<usize> {
    let mut boundaries = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let first = boundaries.nth(start as usize).unwrap_or(text.len());
    let last =
        (end as usize).checked_sub(start as usize + 1).and_then(|n| boundaries.nth(n)).unwrap_or(text.len());
    first..last.max(first)
}

#[cfg(test)]
mod tests {
    use super::byte_range;

    #[test]
    fn spans_are_characters() {
        let text = "aé😀b";
        assert_eq!(&text[byte_range(text, 1, 3)], "é😀");
        assert_eq!(&text[byte_range(text, 0, 4)], text);
        assert_eq!(&text[byte_range(text, 3, 99)], "b");
        assert_eq!(&text[byte_range(text, 9, 12)], "");
    }
}
