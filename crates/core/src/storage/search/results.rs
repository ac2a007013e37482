//! The results of a ranking: texts, snippets, what matched, and repeats as one result.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    ops::Range,
};

use serde_json::Value;

use super::reading::{ReadMessage, ReadMessages};
use crate::{
    Result,
    content::MessageLine,
    model::{ContentType, MessageRef, SessionKey},
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
    /// The number of further candidates in sessions that have as many results as they may have.
    pub(in crate::storage) further: HashMap<SessionKey, usize>,
    /// The best message that is too far from the query to be a result.
    pub(in crate::storage) nearest: Option<SearchResult>,
}

impl TranscriptSearch<'_> {
    /// Makes results of the best `limit` candidates, in their order. Candidates with the same text may be one result.
    /// Candidates that were removed in the meantime or can't be read are left out, and so are those without a word of
    /// the query whose similarity is below the floor. Those of a session beyond the most that are wanted of it are only
    /// counted, and those of further sessions than are wanted are left out.
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
            originals: match options.most_of_session {
                Some(_) => self.presumed_originals(&picked).await?,
                None => HashMap::new(),
            },
            of_sessions: HashMap::new(),
            counted: HashSet::new(),
            shown: Shown::default(),
        };
        let mut rest = picked.into_iter().peekable();
        while builder.shown.results.len() < options.limit && rest.peek().is_some() {
            let missing = options.limit - builder.shown.results.len();
            let next: Vec<(Fused, f32)> = rest.by_ref().take(missing).collect();
            let wanted = next.iter().filter(|(fused, _)| !builder.has_enough_of(builder.session_of(fused)));
            reading.read(self.store, wanted.map(|(fused, _)| fused.message_ref.clone())).await?;
            for (fused, score) in next {
                if builder.has_enough_of(builder.session_of(&fused)) {
                    builder.count(reading, &fused);
                } else if let Some(read) = reading.get(&fused.message_ref) {
                    builder.add(read, fused, score)?;
                }
            }
        }
        // The rest are no results, but may repeat one.
        for (fused, _) in rest {
            builder.count(reading, &fused);
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
    /// The sessions in which copied candidates were written.
    originals: HashMap<MessageRef, SessionKey>,
    /// The number of results of each session.
    of_sessions: HashMap<SessionKey, usize>,
    /// The candidates that are not shown, where they were written.
    counted: HashSet<MessageRef>,
    shown: Shown,
}

impl ResultBuilder<'_> {
    /// The session that a candidate counts for.
    fn session_of<'f>(&'f self, fused: &'f Fused) -> &'f SessionKey {
        self.originals.get(&fused.message_ref).unwrap_or(&fused.message_ref.session)
    }

    /// Whether no more results of a session are wanted, or none.
    fn has_enough_of(&self, session: &SessionKey) -> bool {
        let SearchOptions { most_sessions, most_of_session, .. } = self.query.options;
        match self.of_sessions.get(session) {
            Some(results) => most_of_session.is_some_and(|most| *results >= most),
            None => most_sessions.is_some_and(|most| self.of_sessions.len() >= most),
        }
    }

    /// Counts a candidate that is not shown: as the repeat of a result, or as a further one of its session. It is not read
    /// for that.
    fn count(&mut self, reading: &ReadMessages, fused: &Fused) {
        let read = reading.get(&fused.message_ref).filter(|_| self.query.merges_repeats);
        if read.is_some_and(|read| self.note_repeat(read, fused)) {
            return;
        }
        let is_too_far = fused.text_score.is_none()
            && fused.similarity.zip(self.query.floor).is_some_and(|(similarity, floor)| similarity < floor);
        let session = self.session_of(fused).clone();
        let is_further =
            !is_too_far && self.of_sessions.contains_key(&session) && self.has_enough_of(&session);
        let place = MessageRef::new(session.clone(), fused.message_ref.sequence);
        if is_further && self.counted.insert(place) {
            *self.shown.further.entry(session).or_default() += 1;
        }
    }

    fn add(&mut self, read: &ReadMessage, fused: Fused, score: f32) -> Result<()> {
        if self.query.merges_repeats && self.note_repeat(read, &fused) {
            return Ok(());
        }
        let session = self.session_of(&fused).clone();
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
        *self.of_sessions.entry(session).or_default() += 1;
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
