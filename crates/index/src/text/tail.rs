//! Messages that are newer than the index, with their terms.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    ops::{ControlFlow, Range},
    sync::Arc,
};

use amplifier_session_core::{
    Result,
    backend::TextQuery,
    content::MessageLine,
    model::{ContentType, RawJson, SessionSource},
    text::{Analyzer, TermPlaces, bm25::DocumentTerms},
};

use crate::{
    filter::{FilterFields, FilterFieldsBuilder},
    rows::{MessageRow, Rows},
    tail::{RowIdentity, TailBuffer},
};

/// What a message has to be found by.
pub(super) struct RowTexts {
    /// Its texts by content type; empty if its line can't be read.
    pub(super) texts: Vec<(ContentType, String)>,
    /// The tools that it uses.
    pub(super) tools: BTreeSet<String>,
}

impl RowTexts {
    pub(super) fn of(row: &MessageRow<'_>) -> Self {
        let line = line_of(row);
        let texts = line.texts().into_iter().map(|text| (text.content_type, text.text)).collect();
        Self { texts, tools: line.used_tools() }
    }
}

fn line_of(row: &MessageRow<'_>) -> MessageLine {
    let (source, _) = SessionSource::split(row.session.session);
    MessageLine::stored(&RawJson::new(row.raw.as_ref()), row.role, source)
}

/// The texts of a message by content type; empty if its line can't be read.
pub(super) fn texts_of(row: &MessageRow<'_>) -> Vec<(ContentType, String)> {
    line_of(row).texts().into_iter().map(|text| (text.content_type, text.text)).collect()
}

/// Texts with an inverted index of their terms.
#[derive(Default)]
pub(crate) struct TextTailBuffer {
    texts: Vec<TailText>,
    /// The positions of the texts of a message.
    by_key: HashMap<u64, Range<usize>>,
    /// For each term, by its hash, the positions of the texts that contain it, with its places in them.
    postings: HashMap<u64, TailPostings>,
    removed: usize,
    filter_fields: FilterFieldsBuilder,
    analyzer: Analyzer,
}

/// The texts that contain a term.
struct TailPostings {
    term: Box<str>,
    /// Their positions, with the beginning of their part of `places`.
    texts: Vec<(u32, u32)>,
    /// The places of the term in all texts.
    places: Vec<u32>,
}

impl TailPostings {
    fn new(term: &str) -> Self {
        Self { term: term.into(), texts: Vec::new(), places: Vec::new() }
    }

    /// Each text, with the places of the term in it.
    fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        let ends = self.texts.iter().skip(1).map(|(_, start)| *start).chain([self.places.len() as u32]);
        let part = |((text, start), end): (&(u32, u32), u32)| {
            (*text, self.places.get(*start as usize..end as usize).unwrap_or_default())
        };
        self.texts.iter().zip(ends).map(part)
    }

    /// Adds a place in a text, the last one or a new one.
    fn push(&mut self, text: u32, place: u32) {
        if self.texts.last().is_none_or(|(last, _)| *last != text) {
            self.texts.push((text, self.places.len() as u32));
        }
        self.places.push(place);
    }

    /// The places of the term in a text.
    fn places_in(&self, text: u32) -> &[u32] {
        let Ok(at) = self.texts.binary_search_by_key(&text, |(text, _)| *text) else { return &[] };
        let start = self.texts.get(at).map_or(0, |(_, start)| *start as usize);
        let end = self.texts.get(at + 1).map_or(self.places.len(), |(_, start)| *start as usize);
        self.places.get(start..end).unwrap_or_default()
    }
}

/// A text of the tail.
#[derive(Debug, Clone)]
pub(super) struct TailText {
    pub(super) key: u64,
    /// The position among the texts.
    position: u32,
    pub(super) filter_fields: FilterFields,
    /// The tools that its message uses.
    pub(super) tools: Arc<BTreeSet<String>>,
    length: u32,
    removed: bool,
}

/// The hash of a term, which is constant within a process. Two terms with the same 64 bits count as one.
pub(super) fn term_hash(term: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    term.hash(&mut hasher);
    hasher.finish()
}

impl TextTailBuffer {
    /// Calls `each` with every text of these messages, and the frequency of each of the terms, by their hashes.
    pub(super) fn count(
        &self,
        terms: &[u64],
        only: Option<&HashSet<u64>>,
        each: &mut dyn FnMut(&TailText, &DocumentTerms),
    ) {
        // Without terms, each text still has a row.
        let width = terms.len().max(1);
        let mut counts = vec![0_u32; self.texts.len() * width];
        for (column, term) in terms.iter().enumerate() {
            for (text, places) in self.postings.get(term).into_iter().flat_map(TailPostings::iter) {
                if let Some(cell) = counts.get_mut(text as usize * width + column) {
                    *cell = places.len() as u32;
                }
            }
        }
        let mut found = DocumentTerms::default();
        for (text, counts) in self.texts.iter().zip(counts.chunks_exact(width)) {
            if !text.removed && only.is_none_or(|only| only.contains(&text.key)) {
                found.length = text.length;
                found.frequencies.clear();
                found.frequencies.extend_from_slice(counts);
                each(text, &found);
            }
        }
    }

    /// Calls `each` with every term, and the number of texts that contain it.
    pub(super) fn each_term(&self, each: &mut dyn FnMut(&str, u64)) {
        let is_kept =
            |(text, _): &&(u32, u32)| self.texts.get(*text as usize).is_some_and(|text| !text.removed);
        for TailPostings { term, texts, .. } in self.postings.values() {
            let texts = texts.iter().filter(is_kept).count();
            if texts > 0 {
                each(term, texts as u64);
            }
        }
    }

    fn add(
        &mut self,
        row: &MessageRow<'_>,
        content_type: ContentType,
        text: &str,
        tools: &Arc<BTreeSet<String>>,
    ) {
        let position = self.texts.len() as u32;
        let mut length = 0;
        let mut tokens = self.analyzer.tokens(text);
        while tokens.advance() {
            length += 1;
            let postings = self.postings.entry(term_hash(tokens.term()));
            postings.or_insert_with(|| TailPostings::new(tokens.term())).push(position, tokens.place());
        }
        let filter_fields = self.filter_fields.of(row.session, row.role, row.ts, content_type);
        let tools = Arc::clone(tools);
        self.texts.push(TailText { key: row.key, position, filter_fields, tools, length, removed: false });
    }

    /// Whether a text has all phrases of a query whose terms have these hashes.
    pub(super) fn has_phrases(&self, query: &TextQuery, terms: &[u64], text: &TailText) -> bool {
        let mut places = TermPlaces::new(terms.len());
        for term in query.terms_of_phrases() {
            let postings = terms.get(term).and_then(|hash| self.postings.get(hash));
            if let Some((postings, places)) = postings.zip(places.of_mut(term)) {
                places.extend_from_slice(postings.places_in(text.position));
            }
        }
        query.has_phrases(&places)
    }

    /// Drops removed texts from all lists.
    fn compact(&mut self) {
        let mut kept = 0;
        let moved: Vec<Option<u32>> = self
            .texts
            .iter()
            .map(|text| {
                let position = (!text.removed).then_some(kept);
                kept += u32::from(!text.removed);
                position
            })
            .collect();
        self.postings.retain(|_, postings| {
            let mut kept = TailPostings::new(&postings.term);
            for (text, places) in postings.iter() {
                if let Some(text) = moved.get(text as usize).copied().flatten() {
                    places.iter().for_each(|place| kept.push(text, *place));
                }
            }
            *postings = kept;
            !postings.texts.is_empty()
        });
        self.texts.retain(|text| !text.removed);
        self.removed = 0;
        self.by_key.clear();
        for (position, text) in self.texts.iter_mut().enumerate() {
            text.position = position as u32;
            self.by_key.entry(text.key).or_insert(position..position).end = position + 1;
        }
    }
}

impl TailBuffer for TextTailBuffer {
    type Row<'a> = MessageRow<'a>;

    fn rows_after(
        rows: &mut dyn Rows,
        revision: u64,
        each: &mut dyn FnMut(MessageRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        rows.messages_after(revision, each)
    }

    fn removed_after(rows: &mut dyn Rows, revision: u64) -> Result<Vec<u64>> {
        rows.removed_messages_after(revision)
    }

    fn identity(row: &MessageRow<'_>) -> RowIdentity {
        RowIdentity {
            key: row.key,
            revision: row.revision,
            bytes: row.raw.len(),
            checksum: crc32fast::hash(&row.raw),
        }
    }

    fn put(&mut self, row: &MessageRow<'_>) {
        let start = self.texts.len();
        let RowTexts { texts, tools } = RowTexts::of(row);
        let tools = Arc::new(tools);
        for (content_type, text) in texts {
            self.add(row, content_type, &text, &tools);
        }
        self.by_key.insert(row.key, start..self.texts.len());
    }

    fn remove(&mut self, key: u64) {
        for text in self.by_key.remove(&key).and_then(|range| self.texts.get_mut(range)).into_iter().flatten()
        {
            text.removed = true;
            self.removed += 1;
        }
        if self.removed > self.texts.len() / 2 {
            self.compact();
        }
    }

    fn retain(&mut self, keep: &dyn Fn(u64) -> bool) {
        for text in self.texts.iter_mut().filter(|text| !text.removed && !keep(text.key)) {
            text.removed = true;
            self.removed += 1;
        }
        self.by_key.retain(|key, _| keep(*key));
        if self.removed > self.texts.len() / 2 {
            self.compact();
        }
    }
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::{
        model::{Role, Timestamp},
        text::bm25::count_terms,
    };

    use super::*;
    use crate::rows::SessionOfRow;

    fn put(buffer: &mut TextTailBuffer, key: u64, text: &str) {
        let raw = format!(r#"{{"role":"user","content":"{text}"}}"#);
        let session = SessionOfRow { key: 1, user: "ana", project: "shop", session: "s-1" };
        let (role, ts) = (Role::User, Timestamp::from_micros(0));
        buffer.put(&MessageRow { key, revision: 1, session, role, ts, raw: raw.as_bytes().into() });
    }

    fn counted(buffer: &TextTailBuffer, terms: &[String]) -> Vec<(u64, DocumentTerms)> {
        let hashes: Vec<u64> = terms.iter().map(|term| term_hash(term)).collect();
        let mut counted = Vec::new();
        buffer.count(&hashes, None, &mut |text, found| counted.push((text.key, found.clone())));
        counted
    }

    #[test]
    fn tail_terms_are_counted_as_analysed_also_after_removals() {
        let texts = ["Alpha beta alpha, gamma! alphas 0123 Beta", "beta", "gamma 0123", "", "alpha delta"];
        let terms = ["alpha", "beta", "delta", "0123"].map(str::to_owned);
        let mut buffer = TextTailBuffer::default();
        let mut kept: Vec<(u64, &str)> = (0..).zip(texts).collect();
        kept.iter().for_each(|(key, text)| put(&mut buffer, *key, text));
        for removed in [9, 1, 0, 2] {
            buffer.remove(removed);
            kept.retain(|(key, _)| *key != removed);
            let expected = kept.iter().filter(|(_, text)| !text.is_empty());
            let expected =
                expected.map(|(key, text)| (*key, count_terms(&mut Analyzer::new(), text, &terms)));
            assert_eq!(counted(&buffer, &terms), expected.collect::<Vec<_>>());
        }
        buffer.retain(&|_| false);
        assert!(counted(&buffer, &terms).is_empty() && buffer.postings.is_empty());
    }
}
