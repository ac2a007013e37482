//! The texts of a message in the form that search needs: their terms, and how often each occurs.
//!
//! The terms are those of [`amplifier_session_core::text`], derived when a message is written. Because a search
//! compares terms with terms, it finds the same texts as the other backends, and computes scores without reading a
//! line.

use std::collections::BTreeMap;

use amplifier_session_core::{
    model::{ContentType, Message},
    text::{Analyzer, bm25::DocumentTerms},
};
use serde::{Deserialize, Serialize};

use super::{Document, OfMessage, TextTotals, kind};
use crate::ids;

/// The maximum size of the terms in one document. A text with more is split over several documents.
const TERM_BYTES: usize = 400_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TextFields {
    #[serde(flatten)]
    pub(crate) of: OfMessage,
    pub(crate) content_type: ContentType,
    /// The 0-based number among the documents of the text.
    part: usize,
    /// The number of tokens of the whole text.
    pub(crate) length: u32,
    /// The terms, with a space before and after each.
    terms: String,
    /// How often each occurs, in the order of `terms`.
    counts: Vec<u32>,
}

pub(crate) type TextDocument = Document<TextFields>;

impl TextFields {
    /// Adds to `found` how often each of `terms` occurs in this part.
    pub(crate) fn count(&self, terms: &[String], found: &mut DocumentTerms) {
        for (term, count) in self.terms.split(' ').filter(|term| !term.is_empty()).zip(&self.counts) {
            let position = terms.iter().position(|wanted| wanted == term);
            if let Some(frequency) = position.and_then(|position| found.frequencies.get_mut(position)) {
                *frequency = frequency.saturating_add(*count);
            }
        }
    }

    /// Calls `each` with every term.
    pub(crate) fn each_term(&self, each: impl FnMut(&str)) {
        self.terms.split(' ').filter(|term| !term.is_empty()).for_each(each);
    }

    /// The part's contribution to the totals of its session. A text counts with its first document.
    pub(crate) fn totals(&self) -> TextTotals {
        let is_first = self.part == 0;
        TextTotals { texts: is_first.into(), text_tokens: if is_first { self.length.into() } else { 0 } }
    }
}

/// The documents of all texts of a message. A text without terms has a document too, because it counts in the totals.
pub(crate) fn texts_of(message: &Message, analyzer: &mut Analyzer) -> Vec<TextDocument> {
    let mut documents = Vec::new();
    for text in message.line().texts() {
        let content_type = text.content_type;
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let mut length = 0_u32;
        let mut tokens = analyzer.tokens(&text.text);
        while tokens.advance() {
            length = length.saturating_add(1);
            *counts.entry(tokens.term().to_owned()).or_default() += 1;
        }
        for (part, (terms, counts)) in parts(counts).into_iter().enumerate() {
            let fields = TextFields { of: message.into(), content_type, part, length, terms, counts };
            let id = ids::text(&message.session_id, message.sequence, content_type, part);
            documents.push(TextDocument::of(kind::TEXT, id, fields));
        }
    }
    documents
}

/// Splits terms and their counts so that each part fits into a document.
fn parts(counts: BTreeMap<String, u32>) -> Vec<(String, Vec<u32>)> {
    let mut parts = Vec::new();
    let (mut terms, mut of_terms) = (" ".to_owned(), Vec::new());
    for (term, count) in counts {
        if terms.len() + term.len() > TERM_BYTES {
            parts.push((std::mem::replace(&mut terms, " ".to_owned()), std::mem::take(&mut of_terms)));
        }
        terms.push_str(&term);
        terms.push(' ');
        of_terms.push(count);
    }
    parts.push((terms, of_terms));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_do_not_fit_are_split() {
        let counts = (0..100_000).map(|n| (format!("word{n:06}"), 2));
        let parts = parts(counts.collect());
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().all(|(terms, counts)| {
            terms.len() <= TERM_BYTES + 12 && terms.split_whitespace().count() == counts.len()
        }));
    }
}
