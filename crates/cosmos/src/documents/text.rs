//! What the texts of a message say, as search sees it: their terms and how often each occurs.
//!
//! The terms are those of [`amplifier_session_core::text`], made when a message is written. A search compares terms with
//! terms, so that it finds what the other backends find, and scores without reading a line.

use std::collections::BTreeMap;

use amplifier_session_core::{
    content::extract,
    model::{ContentType, Message, Place, Role, SessionId, SessionKey, Timestamp, UserId},
    text::{Analyzer, bm25::DocumentTerms},
};
use serde::{Deserialize, Serialize};

use super::kind;
use crate::ids;

/// The most bytes of terms in one document: a text with more of them has several.
const TERM_BYTES: usize = 400_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TextDocument {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) user_id_session_id: String,
    pub(crate) user_id: UserId,
    pub(crate) session_id: SessionId,
    pub(crate) sequence: u32,
    pub(crate) role: Role,
    pub(crate) ts: Timestamp,
    pub(crate) content_type: ContentType,
    /// Which of the text's documents this is, from 0.
    pub(crate) part: usize,
    /// Tokens of the whole text.
    pub(crate) length: u32,
    /// The terms, with a blank before and behind each.
    pub(crate) terms: String,
    /// How often each occurs, in order of `terms`.
    pub(crate) counts: Vec<u32>,
}

impl TextDocument {
    /// The part of a text that a query matched.
    pub(crate) fn matched(&self, terms: &[String]) -> DocumentTerms {
        let mut found = DocumentTerms { length: self.length, frequencies: vec![0; terms.len()] };
        for (term, count) in self.terms.split(' ').filter(|term| !term.is_empty()).zip(&self.counts) {
            let position = terms.iter().position(|wanted| wanted == term);
            if let Some(frequency) = position.and_then(|position| found.frequencies.get_mut(position)) {
                *frequency = *count;
            }
        }
        found
    }

    pub(crate) fn place(&self) -> Place {
        Place::new(SessionKey::new(self.user_id.clone(), self.session_id.clone()), self.sequence)
    }
}

/// The documents of all texts of a message. A text without a term has one too: it counts among the texts.
pub(crate) fn texts_of(message: &Message, partition: &str, analyzer: &mut Analyzer) -> Vec<TextDocument> {
    let line = message.raw.parse_object().unwrap_or_default();
    let mut documents = Vec::new();
    for text in extract(&line, message.role) {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let mut length = 0_u32;
        let mut tokens = analyzer.tokens(&text.text);
        while tokens.advance() {
            length = length.saturating_add(1);
            *counts.entry(tokens.term().to_owned()).or_default() += 1;
        }
        for (part, (terms, counts)) in parts(counts).into_iter().enumerate() {
            documents.push(TextDocument {
                id: ids::text(&message.session_id, message.sequence, text.content_type, part),
                kind: kind::TEXT.to_owned(),
                user_id_session_id: partition.to_owned(),
                user_id: message.user_id.clone(),
                session_id: message.session_id.clone(),
                sequence: message.sequence,
                role: message.role,
                ts: message.ts,
                content_type: text.content_type,
                part,
                length,
                terms,
                counts,
            });
        }
    }
    documents
}

/// Terms and their counts, cut into what one document takes.
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
    fn terms_that_do_not_fit_go_into_another_part() {
        let counts = (0..100_000).map(|n| (format!("word{n:06}"), 2));
        let parts = parts(counts.collect());
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().all(|(terms, counts)| {
            terms.len() <= TERM_BYTES + 12 && terms.split_whitespace().count() == counts.len()
        }));
    }
}
