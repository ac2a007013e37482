//! Terms that match a pattern, in the dictionaries of the index and in the tail.

use std::collections::HashSet;

use amplifier_session_core::{
    KnownPart,
    backend::{TermFinder, TermPattern},
    text::Analyzer,
};

use super::{OpenText, TextPart, TextTailBuffer, tail::texts_of};
use crate::{
    error::{SearchFailure, tantivy_error},
    part::PartView,
    rows::{MessageRow, Rows},
    tail::{PartTail, Visitor},
};

/// Finds terms in the index and in the tail.
///
/// Whole terms are looked up in the sorted dictionary. For a prefix or a term with a typo, a part of the dictionary is
/// read, and for a suffix or an infix, all of it.
pub(crate) fn find_terms<'a>(
    view: &PartView<TextPart>,
    tail: &PartTail<TextTailBuffer>,
    rows: &mut dyn Rows,
    patterns: &'a [TermPattern],
) -> Result<TermFinder<'a>, SearchFailure> {
    let mut newer =
        TailTerms { finder: TermFinder::new(patterns), analyzer: Analyzer::new(), terms: HashSet::new() };
    tail.scan(rows, view.after(), view.now, &mut newer)?;
    let mut finder = newer.finder;
    if let Some(index) = view.part.as_ref().and_then(|part| part.opened.get()) {
        index.find_terms(&mut finder).map_err(tantivy_error)?;
    }
    Ok(finder)
}

struct TailTerms<'a> {
    finder: TermFinder<'a>,
    analyzer: Analyzer,
    /// The terms of a text.
    terms: HashSet<String>,
}

impl Visitor<TextTailBuffer> for TailTerms<'_> {
    fn row(&mut self, row: &MessageRow<'_>) {
        for (_, text) in texts_of(row) {
            self.terms.clear();
            let mut tokens = self.analyzer.tokens(&text);
            while tokens.advance() {
                if !self.terms.contains(tokens.term()) {
                    self.terms.insert(tokens.term().to_owned());
                }
            }
            self.terms.iter().for_each(|term| self.finder.add(term, 1));
        }
    }

    fn buffer(&mut self, buffer: &TextTailBuffer, only: Option<&HashSet<u64>>) {
        // If only some of the rows are current, terms of the others are found too, which is allowed.
        if only.is_none_or(|only| !only.is_empty()) {
            buffer.each_term(&mut |term, texts| self.finder.add(term, texts));
        }
    }
}

impl OpenText {
    fn find_terms(&self, finder: &mut TermFinder<'_>) -> tantivy::Result<()> {
        for segment in self.searcher.segment_readers() {
            let index = segment.inverted_index(self.fields.text)?;
            for (number, pattern) in finder.patterns().iter().enumerate() {
                if let Some(terms) = whole_terms(pattern) {
                    for term in terms {
                        if let Some(held) = index.terms().get(term)? {
                            finder.add_to(number, term, u64::from(held.doc_freq));
                        }
                    }
                    continue;
                }
                let beginning = pattern.beginning().as_bytes();
                let mut range = index.terms().range().ge(beginning);
                // The first bytes above all terms with this beginning.
                let end = beginning.iter().rposition(|byte| *byte < u8::MAX).map(|at| {
                    let mut end = beginning.part(..=at).to_vec();
                    end.last_mut().into_iter().for_each(|last| *last += 1);
                    end
                });
                if let Some(end) = &end {
                    range = range.lt(end);
                }
                let mut stream = range.into_stream()?;
                while stream.advance() {
                    let texts = u64::from(stream.value().doc_freq);
                    if let Ok(term) = std::str::from_utf8(stream.key()) {
                        finder.add_to(number, term, texts);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The terms that a pattern lists, if it lists whole terms.
fn whole_terms(pattern: &TermPattern) -> Option<Vec<&str>> {
    match pattern {
        TermPattern::Whole(term) => Some(vec![term]),
        TermPattern::AnyOf(terms) => Some(terms.iter().map(String::as_str).collect()),
        TermPattern::Prefix(_) | TermPattern::Suffix(_) | TermPattern::Infix(_) | TermPattern::OneTypo(_) => {
            None
        }
    }
}
