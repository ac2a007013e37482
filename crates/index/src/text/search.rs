//! Text search.

use std::collections::HashSet;

use amplifier_session_core::{
    Result,
    backend::TextQuery,
    model::{ContentType, Timestamp},
    text::{
        Analyzer, TermPlaces,
        bm25::{CollectionStatistics, DocumentTerms, count_terms, score},
    },
};
use tantivy::{
    DocSet, SegmentReader, Term,
    postings::{Postings as _, SegmentPostings},
    query::{
        Bm25StatisticsProvider, BooleanQuery, BoostQuery, ConstScoreQuery, EnableScoring, Occur, Query,
        TermQuery, TermSetQuery, Weight,
    },
    schema::{Field, IndexRecordOption},
};

use super::{
    OpenText, SegmentColumns, TextPart, TextTailBuffer,
    schema::from_kind,
    tail::{RowTexts, term_hash},
};
use crate::{
    answer::{PartHits, TextHit},
    error::SearchFailure,
    error::tantivy_error,
    filter::Filter,
    part::PartView,
    rows::{MessageRow, Rows},
    tail::{PartTail, Visitor},
    top::Top,
};

/// A name that at least one in this many documents has is checked for each candidate. A rarer name drives the search.
const COMMON_NAME: u64 = 8;

/// At most this many sessions are looked up in the index to determine whether they can drive the search, which they do
/// if fewer than one in [`COMMON_NAME`] documents belong to them.
const FEW_SESSIONS: usize = 256;

/// How far below the worst kept score the upper bound of a block of documents may be before the block is skipped.
///
/// For each block, tantivy stores the document with the highest score at the true average length, and skips the block
/// if that score is too low. With [`AVERAGE_FACTOR`] times the average, another document may score higher, by a factor
/// of at most 1.19: if `f = tf / (0.3 · (1 + 3 · length / average))` is greatest for the stored document, its score is
/// at least `f / (1 + f)`, that of any other at most `3 · f / (1 + 3 · f)`, and the shortest possible text has `f = 1 /
/// 0.3`. The longer the stored text, the smaller the difference.
///
/// [`AVERAGE_FACTOR`]: amplifier_session_core::text::bm25::AVERAGE_FACTOR
const PRUNING_MARGIN: f32 = 1.2;

/// Finds the best texts for a query in the index and in the tail.
pub(crate) fn search(
    view: &PartView<TextPart>,
    tail: &PartTail<TextTailBuffer>,
    rows: &mut dyn Rows,
    query: &TextQuery,
) -> Result<PartHits<TextHit>, SearchFailure> {
    let filter = Filter::new(&query.scope, &query.filter, query.content_types, rows)?;
    let mut newer = TailMatches::new(&filter, query);
    let scanned = tail.scan(rows, view.after(), view.now, &mut newer)?;
    let TailMatches { mut statistics, matches, .. } = newer;
    let mut top = Top::new(query.limit);
    if let Some(index) = view.part.as_ref().and_then(|part| part.opened.get()) {
        let search = IndexSearch { index, filter: &filter, masked: &scanned.masked };
        search.run(query, &mut statistics, &mut top).map_err(tantivy_error)?;
    }
    for (key, content_type, document) in matches {
        top.put(score(&statistics, &document), key, content_type);
    }
    let hits = top.into_sorted().into_iter();
    let hits = hits.map(|hit| TextHit { key: hit.key, content_type: hit.item, score: hit.score });
    Ok(PartHits { hits: hits.collect(), statistics, tail_rows: scanned.rows })
}

/// Matches in the tail, scored when the statistics of all texts are known.
struct TailMatches<'a> {
    filter: &'a Filter<'a>,
    query: &'a TextQuery,
    terms: &'a [String],
    analyzer: Analyzer,
    statistics: CollectionStatistics,
    matches: Vec<(u64, ContentType, DocumentTerms)>,
}

impl<'a> TailMatches<'a> {
    fn new(filter: &'a Filter<'a>, query: &'a TextQuery) -> Self {
        let terms = query.terms.as_slice();
        let (analyzer, statistics) = (Analyzer::looking_for(terms), query.no_statistics());
        Self { filter, query, terms, analyzer, statistics, matches: Vec::new() }
    }
}

impl Visitor<TextTailBuffer> for TailMatches<'_> {
    fn row(&mut self, row: &MessageRow<'_>) {
        let RowTexts { texts, tools } = RowTexts::of(row);
        let admitted = self.filter.admits_message(row.role, row.ts)
            && self.filter.admits_session(row.session)
            && self.query.has_tools(&tools);
        for (content_type, text) in texts {
            let found = count_terms(&mut self.analyzer, &text, self.terms);
            self.statistics.add_document(&found);
            if admitted
                && self.filter.admits_content(content_type)
                && self.query.is_matched_by(&found)
                && self.query.has_phrases_in(&mut self.analyzer, &text)
            {
                self.matches.push((row.key, content_type, found));
            }
        }
    }

    fn buffer(&mut self, buffer: &TextTailBuffer, only: Option<&HashSet<u64>>) {
        let terms: Vec<u64> = self.terms.iter().map(|term| term_hash(term)).collect();
        buffer.count(&terms, only, &mut |text, found| {
            self.statistics.add_document(found);
            if self.query.is_matched_by(found)
                && text.filter_fields.admitted_by(self.filter)
                && self.query.has_tools(&text.tools)
                && buffer.has_phrases(self.query, &terms, text)
            {
                self.matches.push((text.key, text.filter_fields.content_type, found.clone()));
            }
        });
    }
}

pub(super) struct IndexSearch<'a> {
    pub(super) index: &'a OpenText,
    pub(super) filter: &'a Filter<'a>,
    pub(super) masked: &'a HashSet<u64>,
}

impl IndexSearch<'_> {
    /// Adds the statistics of the index to those of the tail, and its best documents to `top`.
    fn run(
        &self,
        query: &TextQuery,
        statistics: &mut CollectionStatistics,
        top: &mut Top<ContentType>,
    ) -> tantivy::Result<()> {
        let OpenText { searcher, fields, columns } = self.index;
        let terms: Vec<Term> =
            query.terms.iter().map(|term| Term::from_field_text(fields.text, term)).collect();
        statistics.merge(&self.index.statistics(&terms, self.masked)?);
        let Some(mut names) = self.names(query)? else { return Ok(()) };
        names.leading.extend(query.required.iter().map(|group| one_of(&terms, group)));
        let shared = SharedStatistics { statistics, terms: &terms };
        let scoring = EnableScoring::enabled_from_statistics_provider(&shared, searcher);
        let leading = std::mem::take(&mut names.leading);
        let weight = any_of(&terms, &statistics.weights, leading).weight(scoring)?;
        for (segment, columns) in searcher.segment_readers().iter().zip(columns) {
            let Some(lookups) = names.lookups(segment)? else { continue };
            let phrases = PhraseLookup::new(segment, query, &terms)?;
            self.segment(segment, columns, weight.as_ref(), (lookups, phrases), top)?;
        }
        Ok(())
    }

    /// How to apply the names in the filter and the tools of the query; `None` if no document has one of them.
    pub(super) fn names(&self, query: &TextQuery) -> tantivy::Result<Option<RequiredNames>> {
        let OpenText { searcher, fields, .. } = self.index;
        let of_session = [
            (fields.user, self.filter.user()),
            (fields.project, self.filter.project()),
            (fields.session, self.filter.session()),
        ];
        let tools = query.tools.iter().map(|tool| (fields.tool, Some(tool.as_str())));
        let wanted = of_session.into_iter().chain(tools);
        let documents = searcher.total_num_docs()?;
        let mut names = RequiredNames::default();
        for (field, name) in wanted {
            let Some(name) = name else { continue };
            let term = Term::from_field_text(field, name);
            match searcher.doc_freq(&term)? {
                0 => return Ok(None),
                // Excludes nothing.
                all if all == documents => {}
                many if many >= documents / COMMON_NAME => names.looked_up.push(term),
                _ => names.leading.push(silent(TermQuery::new(term, IndexRecordOption::Basic))),
            }
        }
        match self.few_sessions()? {
            Some(sessions) if sessions.is_empty() => return Ok(None),
            Some(sessions) => names.leading.push(silent(TermSetQuery::new(sessions))),
            // The sessions of candidates are checked one by one.
            None => {}
        }
        Ok(Some(names))
    }

    /// The sessions that are admitted by their keys, if they have few enough documents to drive the search.
    fn few_sessions(&self) -> tantivy::Result<Option<Vec<Term>>> {
        let OpenText { searcher, fields, .. } = self.index;
        let Some(keys) = self.filter.session_keys().filter(|keys| keys.len() <= FEW_SESSIONS) else {
            return Ok(None);
        };
        let sessions = keys.iter().map(|key| Term::from_field_u64(fields.session_key, *key));
        let sessions: Vec<Term> = sessions.collect();
        let held = sessions.iter().map(|session| searcher.doc_freq(session)).sum::<tantivy::Result<u64>>()?;
        Ok(match held {
            0 => Some(Vec::new()),
            few if few < searcher.total_num_docs()? / COMMON_NAME => Some(sessions),
            _ => None,
        })
    }

    fn segment(
        &self,
        segment: &SegmentReader,
        columns: &SegmentColumns,
        weight: &dyn Weight,
        (mut lookups, mut phrases): (Vec<SegmentPostings>, PhraseLookup<'_>),
        top: &mut Top<ContentType>,
    ) -> tantivy::Result<()> {
        // Documents come in ascending order, and only those that score above the returned threshold. A document with
        // the same score as the worst kept one may still win by its key.
        let threshold = |top: &Top<ContentType>| (top.least() / PRUNING_MARGIN).next_down();
        weight.for_each_pruning(threshold(top), segment, &mut |doc, score| {
            if !segment.is_deleted(doc)
                && lookups.iter_mut().all(|postings| holds(postings, doc))
                && let Some((key, content_type)) = self.admitted(columns, doc)
                && phrases.are_in(doc)
            {
                top.put(score, key, content_type);
            }
            threshold(top)
        })
    }

    /// The key and the content type of a document, if it is admitted.
    pub(super) fn admitted(&self, columns: &SegmentColumns, doc: u32) -> Option<(u64, ContentType)> {
        let (role, content_type) = from_kind(columns.kind.first(doc)?)?;
        let ts = Timestamp::from_micros(columns.ts.first(doc)?);
        let key = columns.key.first(doc)?;
        let admitted = self.filter.admits_content(content_type)
            && self.filter.admits_message(role, ts)
            && self.admits_session(columns, doc)
            && !self.masked.contains(&key);
        admitted.then_some((key, content_type))
    }

    /// Whether the session of a document is admitted by its key. Names were compared before.
    fn admits_session(&self, columns: &SegmentColumns, doc: u32) -> bool {
        self.filter.admits_all_keys()
            || columns.session_key.first(doc).is_some_and(|key| self.filter.admits_key(key))
    }
}

/// Names that a document must have.
#[derive(Default)]
pub(super) struct RequiredNames {
    /// Rare names: only documents with these names are visited.
    pub(super) leading: Vec<Box<dyn Query>>,
    /// Common names: checked for each document with a sufficient score. A clause of the query would cost more, because
    /// it keeps tantivy from skipping documents that can't reach the top.
    looked_up: Vec<Term>,
}

impl RequiredNames {
    /// The postings of the common names in a segment; `None` if it has no document with one of them.
    pub(super) fn lookups(&self, segment: &SegmentReader) -> tantivy::Result<Option<Vec<SegmentPostings>>> {
        let of_name = |term: &Term| {
            segment
                .inverted_index(term.field())?
                .read_postings(term, IndexRecordOption::Basic)
                .map_err(Into::into)
        };
        self.looked_up.iter().map(of_name).collect()
    }
}

/// The phrases of a query in the documents of a segment. Only documents with a sufficient score are compared.
pub(super) struct PhraseLookup<'a> {
    query: &'a TextQuery,
    /// The postings of the terms of the phrases, with the positions of the terms in the query.
    postings: Vec<(usize, SegmentPostings)>,
    places: TermPlaces,
}

impl<'a> PhraseLookup<'a> {
    pub(super) fn new(
        segment: &SegmentReader,
        query: &'a TextQuery,
        terms: &[Term],
    ) -> tantivy::Result<Self> {
        let mut postings = Vec::new();
        for position in query.terms_of_phrases() {
            let Some(term) = terms.get(position) else { continue };
            let index = segment.inverted_index(term.field())?;
            let found = index.read_postings(term, IndexRecordOption::WithFreqsAndPositions)?;
            postings.extend(found.map(|found| (position, found)));
        }
        Ok(Self { query, postings, places: TermPlaces::new(terms.len()) })
    }

    /// Whether a document has all phrases. Documents must come in ascending order.
    pub(super) fn are_in(&mut self, doc: u32) -> bool {
        for (position, postings) in &mut self.postings {
            if let Some(places) = self.places.of_mut(*position) {
                places.clear();
                if holds(postings, doc) {
                    postings.positions(places);
                }
            }
        }
        self.query.has_phrases(&self.places)
    }
}

/// Documents that contain any of `terms`, each with its weight, and match all of `leading`.
pub(super) fn any_of(terms: &[Term], weights: &[f32], leading: Vec<Box<dyn Query>>) -> Box<dyn Query> {
    let weights = weights.iter().copied().chain(std::iter::repeat(1.0));
    let clause = |(term, weight): (&Term, f32)| -> (Occur, Box<dyn Query>) {
        let query = Box::new(TermQuery::new(term.clone(), IndexRecordOption::WithFreqs));
        match weight {
            1.0 => (Occur::Should, query),
            _ => (Occur::Should, Box::new(BoostQuery::new(query, weight))),
        }
    };
    let any = Box::new(BooleanQuery::new(terms.iter().zip(weights).map(clause).collect()));
    if leading.is_empty() {
        return any;
    }
    let all = leading.into_iter().chain([any as Box<dyn Query>]);
    Box::new(BooleanQuery::new(all.map(|query| (Occur::Must, query)).collect()))
}

/// Documents that contain one of the terms at these positions. Adds nothing to the score.
pub(super) fn one_of(terms: &[Term], group: &[usize]) -> Box<dyn Query> {
    let terms: Vec<Term> = group.iter().filter_map(|position| terms.get(*position)).cloned().collect();
    match terms.as_slice() {
        [term] => silent(TermQuery::new(term.clone(), IndexRecordOption::Basic)),
        _ => silent(TermSetQuery::new(terms)),
    }
}

/// A condition that adds nothing to the score.
fn silent(condition: impl Query) -> Box<dyn Query> {
    Box::new(ConstScoreQuery::new(Box::new(condition), 0.0))
}

/// Whether a document is in the postings, which can only be read forwards.
pub(super) fn holds(postings: &mut SegmentPostings, doc: u32) -> bool {
    if postings.doc() < doc {
        postings.seek(doc);
    }
    postings.doc() == doc
}

/// The combined statistics of the index and the tail, for tantivy.
struct SharedStatistics<'a> {
    statistics: &'a CollectionStatistics,
    terms: &'a [Term],
}

impl Bm25StatisticsProvider for SharedStatistics<'_> {
    fn total_num_tokens(&self, _field: Field) -> tantivy::Result<u64> {
        Ok(self.statistics.tokens_for_average())
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.statistics.documents)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let position = self.terms.iter().position(|known| known == term);
        let frequency = position.and_then(|position| self.statistics.document_frequency.get(position));
        Ok(frequency.copied().unwrap_or(0))
    }
}
