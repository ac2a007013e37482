//! The newest messages that match a query, however well.

use std::collections::HashSet;

use amplifier_session_core::{
    Result,
    backend::TextQuery,
    model::Timestamp,
    text::{
        Analyzer,
        bm25::{CollectionStatistics, count_terms},
    },
};
use tantivy::{
    DocSet, SegmentReader, TERMINATED, Term,
    postings::SegmentPostings,
    query::{AllQuery, BooleanQuery, EnableScoring, Occur, Query},
};

use super::{
    OpenText, SegmentColumns, TextPart, TextTailBuffer,
    search::{IndexSearch, PhraseLookup, any_of, holds, one_of},
    tail::{RowTexts, term_hash},
};
use crate::{
    answer::PartHits,
    error::{SearchFailure, tantivy_error},
    filter::Filter,
    part::PartView,
    rows::{MessageRow, Rows},
    tail::{PartTail, Visitor},
};

/// Finds the keys of the newest messages that match a query, in the index and in the tail: the newest first, and of
/// equally old ones that with the larger key.
pub(crate) fn newest(
    view: &PartView<TextPart>,
    tail: &PartTail<TextTailBuffer>,
    rows: &mut dyn Rows,
    query: &TextQuery,
) -> Result<PartHits<u64>, SearchFailure> {
    let filter = Filter::new(&query.scope, &query.filter, query.content_types, rows)?;
    let analyzer = Analyzer::looking_for(&query.terms);
    let mut newer = TailMessages { filter: &filter, query, analyzer, found: Vec::new() };
    let scanned = tail.scan(rows, view.after(), view.now, &mut newer)?;
    let mut found = newer.found;
    if let Some(index) = view.part.as_ref().and_then(|part| part.opened.get()) {
        let search = IndexSearch { index, filter: &filter, masked: &scanned.masked };
        search.all(query, &mut found).map_err(tantivy_error)?;
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    // A message may match with several texts.
    found.dedup();
    found.truncate(query.limit);
    let hits = found.into_iter().map(|(_, key)| key).collect();
    Ok(PartHits { hits, statistics: CollectionStatistics::default(), tail_rows: scanned.rows })
}

/// The time and the key of a message.
type DatedDocument = (Timestamp, u64);

struct TailMessages<'a> {
    filter: &'a Filter<'a>,
    query: &'a TextQuery,
    analyzer: Analyzer,
    found: Vec<DatedDocument>,
}

impl Visitor<TextTailBuffer> for TailMessages<'_> {
    fn row(&mut self, row: &MessageRow<'_>) {
        if !self.filter.admits_message(row.role, row.ts) || !self.filter.admits_session(row.session) {
            return;
        }
        let RowTexts { texts, tools } = RowTexts::of(row);
        let Self { filter, query, analyzer, found } = self;
        let mut matches = |text: &str| {
            query.is_matched_by(&count_terms(analyzer, text, &query.terms))
                && query.has_phrases_in(analyzer, text)
        };
        if query.has_tools(&tools)
            && texts.iter().any(|(of, text)| filter.admits_content(*of) && matches(text))
        {
            found.push((row.ts, row.key));
        }
    }

    fn buffer(&mut self, buffer: &TextTailBuffer, only: Option<&HashSet<u64>>) {
        let terms: Vec<u64> = self.query.terms.iter().map(|term| term_hash(term)).collect();
        buffer.count(&terms, only, &mut |text, counted| {
            if self.query.is_matched_by(counted)
                && text.filter_fields.admitted_by(self.filter)
                && self.query.has_tools(&text.tools)
                && buffer.has_phrases(self.query, &terms, text)
            {
                self.found.push((text.filter_fields.ts, text.key));
            }
        });
    }
}

impl IndexSearch<'_> {
    /// Adds all messages of the index that match.
    fn all(&self, query: &TextQuery, found: &mut Vec<DatedDocument>) -> tantivy::Result<()> {
        let OpenText { searcher, fields, columns } = self.index;
        let terms: Vec<Term> =
            query.terms.iter().map(|term| Term::from_field_text(fields.text, term)).collect();
        let Some(mut names) = self.names(query)? else { return Ok(()) };
        let mut leading = std::mem::take(&mut names.leading);
        leading.extend(query.required.iter().map(|group| one_of(&terms, group)));
        // A document with all required terms has one of all terms.
        let any = if query.required.is_empty() { terms.as_slice() } else { &[] };
        let weight = matching(any, leading).weight(EnableScoring::disabled_from_searcher(searcher))?;
        for (segment, columns) in searcher.segment_readers().iter().zip(columns) {
            let Some(lookups) = names.lookups(segment)? else { continue };
            let phrases = PhraseLookup::new(segment, query, &terms)?;
            let mut documents = weight.scorer(segment, 1.0)?;
            self.add_all(segment, columns, documents.as_mut(), (lookups, phrases), found);
        }
        Ok(())
    }

    fn add_all(
        &self,
        segment: &SegmentReader,
        columns: &SegmentColumns,
        documents: &mut dyn DocSet,
        (mut lookups, mut phrases): (Vec<SegmentPostings>, PhraseLookup<'_>),
        found: &mut Vec<DatedDocument>,
    ) {
        let mut doc = documents.doc();
        while doc != TERMINATED {
            if !segment.is_deleted(doc)
                && lookups.iter_mut().all(|postings| holds(postings, doc))
                && let Some((key, _)) = self.admitted(columns, doc)
                && phrases.are_in(doc)
                && let Some(ts) = columns.ts.first(doc)
            {
                found.push((Timestamp::from_micros(ts), key));
            }
            doc = documents.advance();
        }
    }
}

/// Documents that contain any of `terms`, if there are any, and match all of `leading`.
fn matching(terms: &[Term], leading: Vec<Box<dyn Query>>) -> Box<dyn Query> {
    match (terms.is_empty(), leading.is_empty()) {
        (false, _) => any_of(terms, &[], leading),
        (true, true) => Box::new(AllQuery),
        (true, false) => {
            let all = leading.into_iter().map(|query| (Occur::Must, query)).collect();
            Box::new(BooleanQuery::new(all))
        }
    }
}
