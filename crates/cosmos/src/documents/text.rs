//! The texts of a message in the form that search needs: their terms, and how often each occurs.
//!
//! The terms are those of [`amplifier_session_core::text`], derived when a message is written. Because a search
//! compares terms with terms, it finds the same texts as the other backends, and computes scores without reading a
//! line.

use std::collections::BTreeMap;

use amplifier_session_core::{
    model::{ContentType, Message},
    text::{Analyzer, TermPlaces, bm25::DocumentTerms},
};
use serde::{Deserialize, Serialize};

use super::{Document, OfMessage, TextTotals, kind};
use crate::ids;

/// The maximum size of the terms in one document. A text with more is split over several documents.
const TERM_BYTES: usize = 400_000;

/// The maximum number of places in one document, of up to eight digits each. With more of them, a document has none.
const MOST_PLACES: usize = 100_000;

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
    /// Where they occur, in the order of `terms`: for each one, its first place and the differences of the others. Empty if
    /// there are many, or if an earlier version wrote the document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    places: Vec<u32>,
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

    /// Adds to `found` where each of `terms` occurs in this part. Returns false if that is unknown.
    pub(crate) fn find_places(&self, terms: &[String], found: &mut TermPlaces) -> bool {
        let mut rest = self.places.iter();
        for (term, count) in self.terms.split(' ').filter(|term| !term.is_empty()).zip(&self.counts) {
            let of_term = rest.by_ref().take(*count as usize);
            let position = terms.iter().position(|wanted| wanted == term);
            match position.and_then(|position| found.of_mut(position)) {
                Some(places) => places.extend(of_term.scan(0_u32, |last, difference| {
                    *last = last.saturating_add(*difference);
                    Some(*last)
                })),
                None => of_term.for_each(drop),
            }
        }
        !self.places.is_empty()
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
        let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let mut length = 0_u32;
        let mut tokens = analyzer.tokens(&text.text);
        while tokens.advance() {
            length = length.saturating_add(1);
            found.entry(tokens.term().to_owned()).or_default().push(tokens.place());
        }
        for (part, TermPart { terms, counts, places }) in parts(found).into_iter().enumerate() {
            let fields = TextFields { of: message.into(), content_type, part, length, terms, counts, places };
            let id = ids::text(&message.session_id, message.sequence, content_type, part);
            documents.push(TextDocument::of(kind::TEXT, id, fields));
        }
    }
    documents
}

/// The terms of a document.
#[derive(Debug)]
struct TermPart {
    terms: String,
    counts: Vec<u32>,
    places: Vec<u32>,
}

impl TermPart {
    fn new() -> Self {
        Self { terms: " ".to_owned(), counts: Vec::new(), places: Vec::new() }
    }

    fn push(&mut self, term: &str, places: &[u32]) {
        self.terms.push_str(term);
        self.terms.push(' ');
        self.counts.push(places.len() as u32);
        let mut last = 0;
        for place in places {
            self.places.push(place - last);
            last = *place;
        }
    }

    fn finish(mut self) -> Self {
        if self.places.len() > MOST_PLACES {
            self.places.clear();
        }
        self
    }
}

/// Splits terms and their places so that each part fits into a document.
fn parts(found: BTreeMap<String, Vec<u32>>) -> Vec<TermPart> {
    let (mut parts, mut part) = (Vec::new(), TermPart::new());
    for (term, places) in found {
        if part.terms.len() + term.len() > TERM_BYTES {
            parts.push(std::mem::replace(&mut part, TermPart::new()).finish());
        }
        part.push(&term, &places);
    }
    parts.push(part.finish());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_do_not_fit_are_split() {
        let found = (0..100_000).map(|n| (format!("word{n:06}"), vec![n, n + 8]));
        let parts = parts(found.collect());
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().all(|TermPart { terms, counts, places }| {
            terms.len() <= TERM_BYTES + 12
                && terms.split_whitespace().count() == counts.len()
                && places.len() == 2 * counts.len()
        }));
    }
}
