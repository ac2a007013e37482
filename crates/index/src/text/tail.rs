//! Messages that are newer than the index, analysed.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    ops::ControlFlow,
};

use amplifier_session_core::{
    Result,
    content::extract,
    model::{ContentType, RawJson, Role},
    text::{Analyzer, bm25::DocumentTerms},
};

use crate::{
    facts::{FactKeeper, Facts},
    filter::Filter,
    rows::{MessageRow, Rows},
    tail::{Identity, Source},
};

/// The texts of a message by content type; none when its line can't be read.
pub(super) fn texts_of(raw: &[u8], role: Role) -> Vec<(ContentType, String)> {
    let line = RawJson::new(raw).parse_object().unwrap_or_default();
    extract(&line, role).into_iter().map(|text| (text.content_type, text.text)).collect()
}

/// Reads messages for the tail.
#[derive(Debug, Default)]
pub(crate) struct TextSource {
    facts: FactKeeper,
    analyzer: Analyzer,
}

/// A message of the tail.
#[derive(Debug)]
pub(crate) struct TailMessage {
    facts: Facts,
    pub(super) texts: Vec<TailText>,
}

/// One text of it: its terms, by a hash of 64 bits, ascending, and how often each occurs.
#[derive(Debug)]
pub(super) struct TailText {
    pub(super) content_type: ContentType,
    length: u32,
    terms: Box<[u64]>,
    counts: Box<[u32]>,
}

impl TailMessage {
    /// Whether the message and one of its texts pass a filter.
    pub(super) fn admitted_by(&self, filter: &Filter<'_>, content_type: ContentType) -> bool {
        filter.admits_content(content_type) && self.facts.admitted_by(filter)
    }
}

impl TailText {
    fn new(content_type: ContentType, text: &str, analyzer: &mut Analyzer) -> Self {
        let mut all = Vec::with_capacity(text.len() / 6);
        let mut tokens = analyzer.tokens(text);
        while tokens.advance() {
            all.push(term_hash(tokens.term()));
        }
        all.sort_unstable();
        let (terms, counts): (Vec<u64>, Vec<u32>) =
            all.chunk_by(|a, b| a == b).filter_map(|same| Some((*same.first()?, same.len() as u32))).unzip();
        Self { content_type, length: all.len() as u32, terms: terms.into(), counts: counts.into() }
    }

    /// Counts the terms of these hashes.
    pub(super) fn count_into(&self, hashes: &[u64], found: &mut DocumentTerms) {
        found.length = self.length;
        found.frequencies.clear();
        found.frequencies.extend(hashes.iter().map(|hash| {
            let at = self.terms.binary_search(hash).ok();
            at.and_then(|at| self.counts.get(at)).copied().unwrap_or(0)
        }));
    }
}

/// The hash of a term, the same within a process.
pub(super) fn term_hash(term: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    term.hash(&mut hasher);
    hasher.finish()
}

impl Source for TextSource {
    type Row<'a> = MessageRow<'a>;
    type Item = TailMessage;

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

    fn identity(row: &MessageRow<'_>) -> Identity {
        Identity {
            key: row.key,
            revision: row.revision,
            bytes: row.raw.len(),
            checksum: crc32fast::hash(row.raw),
        }
    }

    fn item(&mut self, row: &MessageRow<'_>) -> TailMessage {
        let texts = texts_of(row.raw, row.role).into_iter();
        let texts = texts.map(|(content_type, text)| TailText::new(content_type, &text, &mut self.analyzer));
        TailMessage { facts: self.facts.of_message(row), texts: texts.collect() }
    }
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::text::bm25::count_terms;

    use super::*;

    #[test]
    fn terms_are_counted_as_the_analysis_counts_them() {
        let text = "Alpha beta alpha, gamma! alphas 0123 Beta";
        let mut analyzer = Analyzer::new();
        let terms = ["alpha", "beta", "delta", "0123"].map(str::to_owned);
        let hashes: Vec<u64> = terms.iter().map(|term| term_hash(term)).collect();
        let mut found = DocumentTerms::default();
        TailText::new(ContentType::UserQuery, text, &mut analyzer).count_into(&hashes, &mut found);
        assert_eq!(found, count_terms(&mut analyzer, text, &terms));
        assert_eq!(found.frequencies, [3, 2, 0, 1]);
    }
}
