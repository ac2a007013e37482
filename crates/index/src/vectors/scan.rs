//! Search for the nearest vectors.

use std::{collections::HashSet, ops::Range, sync::Arc};

use amplifier_session_core::{
    Error, ErrorField, KnownPart, Result, backend::VectorQuery, model::ContentTypes,
    text::bm25::CollectionStatistics,
};

use rayon::prelude::*;

use super::{
    VectorPart, VectorTailBuffer,
    codes::{QueryCodes, product},
    lazy::LazySegment,
    segment::SegmentTable,
};
use crate::{
    answer::{PartHits, VectorHit},
    error::{PartError, SearchFailure},
    filter::Filter,
    part::PartView,
    rows::{Rows, VectorRow},
    tail::{PartTail, Visitor},
    top::{Ranked, Top},
};

/// How many more vectors than the limit are compared in full, because the order by codes is approximate.
const SPARE: usize = 20;

/// For each vector compared in full, this many are compared by both codes, because the order by coarse codes is less
/// exact. Of the 333 nearest among 159,363 vectors of very similar texts, 99.86 % were among the best 1,332 by coarse
/// codes. With 54,826 vectors of real sessions, all were.
const BY_BOTH_CODES: usize = 4;

/// The minimum number of vectors compared by both codes, even if a search wants only a few.
const LEAST_BY_BOTH_CODES: usize = 1_000;

/// For fewer bytes of coarse and fine codes, waking up other cores takes longer than comparing them on one core.
const ON_ONE_CORE: u64 = 4 << 20;

/// So many of the nearest vectors are examined for those of some messages. Looking up the message of a vector takes longer
/// than comparing it.
const EXAMINED: usize = 2_000;

/// Finds the vectors nearest to the query's in the index and in the tail: of all messages, or `among` those with these keys.
pub(crate) fn search<const TURNS: bool>(
    view: &PartView<VectorPart<TURNS>>,
    tail: &PartTail<VectorTailBuffer<TURNS>>,
    rows: &mut dyn Rows,
    query: &VectorQuery,
    among: Option<&HashSet<u64>>,
) -> Result<PartHits<VectorHit>, SearchFailure> {
    let content_types = if TURNS { ContentTypes::embedded() } else { query.content_types };
    let filter = Filter::new(&query.scope, &query.filter, content_types, rows)?;
    let limit = among.map_or(query.limit, |_| query.limit.max(EXAMINED));
    let (top, same_length) = (Top::new(limit), true);
    let mut nearest = NearestRows { filter: &filter, query, top, same_length };
    let scanned = tail.scan(rows, view.after(), view.now, &mut nearest)?;
    if let Some(part) = &view.part {
        nearest.same_length &=
            segments_of(part, query).all(|segment| segment.entry.kind.dimensions == query.vector.len());
        let mut candidates = candidates(part, &filter, &scanned.masked, query, limit)?;
        if let Some(among) = among {
            let of_messages = vectors_of(among, &candidates, rows)?;
            candidates.retain(|key| of_messages.contains(key));
        }
        rows.vectors(TURNS, &candidates, &mut |key, vector| {
            nearest.compare(key, vector);
            Ok(())
        })?;
    }
    if !nearest.same_length {
        let rule = "must have as many dimensions as the vectors of the store";
        return Err(Error::validation(ErrorField::Vector, rule).into());
    }
    let hits = nearest.top.into_sorted().into_iter();
    let mut hits: Vec<VectorHit> =
        hits.map(|hit| VectorHit { key: hit.key, similarity: hit.score, vector: hit.item }).collect();
    // Those of the index were examined before they were compared in full.
    if let Some(among) = among.filter(|_| scanned.rows > 0) {
        let keys: Vec<u64> = hits.iter().map(|hit| hit.key).collect();
        let of_messages = vectors_of(among, &keys, rows)?;
        hits.retain(|hit| of_messages.contains(&hit.key));
    }
    hits.truncate(query.limit);
    let statistics = CollectionStatistics::default();
    Ok(PartHits { hits, statistics, tail_rows: scanned.rows })
}

/// Those of the vectors that belong to one of the messages.
fn vectors_of(messages: &HashSet<u64>, vectors: &[u64], rows: &mut dyn Rows) -> Result<HashSet<u64>> {
    if messages.is_empty() {
        return Ok(HashSet::new());
    }
    let owned = rows.messages_of_vectors(vectors)?.into_iter();
    Ok(owned.filter(|(_, message)| messages.contains(message)).map(|(vector, _)| vector).collect())
}

/// The nearest vectors, compared in full.
struct NearestRows<'a> {
    filter: &'a Filter<'a>,
    query: &'a VectorQuery,
    top: Top<Vec<f32>>,
    same_length: bool,
}

impl NearestRows<'_> {
    fn compare(&mut self, key: u64, vector: &[f32]) {
        self.same_length &= vector.len() == self.query.vector.len();
        let similarity = product(vector, &self.query.vector);
        if similarity >= self.top.least() {
            self.top.put(similarity, key, vector.to_vec());
        }
    }
}

impl<const TURNS: bool> Visitor<VectorTailBuffer<TURNS>> for NearestRows<'_> {
    fn row(&mut self, row: &VectorRow<'_>) {
        let admitted = row.generation == self.query.generation
            && self.filter.admits_content(row.content_type)
            && self.filter.admits_message(row.role, row.ts)
            && self.filter.admits_session(row.session);
        if admitted {
            self.compare(row.key, row.vector);
        }
    }

    fn buffer(&mut self, buffer: &VectorTailBuffer<TURNS>, only: Option<&HashSet<u64>>) {
        for (key, row) in &buffer.vectors {
            if row.generation == self.query.generation
                && only.is_none_or(|only| only.contains(key))
                && row.filter_fields.admitted_by(self.filter)
            {
                self.compare(*key, &row.vector);
            }
        }
    }
}

/// The segments of the query's generation.
fn segments_of<'a, const TURNS: bool>(
    part: &'a VectorPart<TURNS>,
    query: &VectorQuery,
) -> impl Iterator<Item = &'a LazySegment> {
    let generation = query.generation;
    part.segments.iter().map(Arc::as_ref).filter(move |segment| segment.entry.kind.generation == generation)
}

/// The keys of the nearest vectors in the index, by their codes.
fn candidates<const TURNS: bool>(
    part: &VectorPart<TURNS>,
    filter: &Filter<'_>,
    masked: &HashSet<u64>,
    query: &VectorQuery,
    limit: usize,
) -> Result<Vec<u64>, PartError> {
    let segments: Vec<&LazySegment> = segments_of(part, query).collect();
    let codes = &QueryCodes::new(&query.vector);
    let wanted = limit.saturating_add(SPARE);
    let by_both = wanted.saturating_mul(BY_BOTH_CODES).max(LEAST_BY_BOTH_CODES);
    let numbered: Vec<(usize, &LazySegment)> = segments.iter().copied().enumerate().collect();
    let top = best_of(&segments, &numbered, by_both, |top, (number, segment)| {
        Scan { filter, masked, codes, top, products: Vec::new() }.segment(*number, segment)
    })?;
    let mut places = top.into_vec();
    if places.len() > wanted {
        places.sort_unstable_by_key(|place| (place.item.segment, place.item.row));
        let in_segments: Vec<&[Ranked<CandidateRow>]> =
            places.chunk_by(|a, b| a.item.segment == b.item.segment).collect();
        let top = best_of(&segments, &in_segments, wanted, |top, places| {
            compare_fine_codes(&segments, places, codes, top)
        })?;
        return Ok(top.into_vec().into_iter().map(|candidate| candidate.key).collect());
    }
    Ok(places.into_iter().map(|place| place.key).collect())
}

/// The best of what `add` finds in each part, on all cores if there are many codes.
fn best_of<P: Sync, T: Send>(
    segments: &[&LazySegment],
    parts: &[P],
    limit: usize,
    add: impl Fn(Top<T>, &P) -> Result<Top<T>, PartError> + Send + Sync,
) -> Result<Top<T>, PartError> {
    let none = || Top::new(limit);
    if segments.iter().map(|segment| segment.entry.code_bytes()).sum::<u64>() < ON_ONE_CORE {
        return parts.iter().try_fold(none(), add);
    }
    // Each core keeps the best of all its parts: a part on its own would first have to find as many good ones.
    let of_a_core = parts.len().div_ceil(rayon::current_num_threads());
    parts.par_iter().with_min_len(of_a_core).try_fold(none, add).try_reduce(none, |a, b| Ok(a.merge(b)))
}

/// Compares rows of one segment, which ascend, by coarse and fine codes.
fn compare_fine_codes(
    segments: &[&LazySegment],
    places: &[Ranked<CandidateRow>],
    codes: &QueryCodes,
    mut top: Top<()>,
) -> Result<Top<()>, PartError> {
    let segment = places.first().and_then(|place| segments.get(place.item.segment));
    let Some((segment, table)) = segment.and_then(|segment| Some((segment, segment.table()?))) else {
        return Ok(top);
    };
    let rows: Vec<usize> = places.iter().map(|place| place.item.row).collect();
    let (mut fine, mut products) = (Vec::new(), Vec::new());
    segment.fine_codes(&rows, &mut fine)?;
    codes.products(&fine, &mut products);
    for (Ranked { key, item, .. }, product) in places.iter().zip(products) {
        if let Some(scale) = table.fine_scales.get(item.row) {
            top.put(codes.similarity(item.coarse_product, product, *scale), *key, ());
        }
    }
    Ok(top)
}

/// The rows of the sessions that a filter admits. Adjacent ones are joined into one range.
fn admitted_stretches(table: &SegmentTable, filter: &Filter<'_>) -> Vec<Range<usize>> {
    let mut stretches: Vec<Range<usize>> = Vec::new();
    for (name, rows) in &table.sessions {
        if filter.admits_session(name.of_row()) {
            match stretches.last_mut() {
                Some(last) if last.end == rows.start => last.end = rows.end,
                _ => stretches.push(rows.clone()),
            }
        }
    }
    stretches
}

/// Where a row is, and the product of the query and its coarse codes.
#[derive(Debug, Clone, Copy)]
struct CandidateRow {
    /// The index of its segment among those that are searched.
    segment: usize,
    row: usize,
    coarse_product: i32,
}

struct Scan<'a> {
    filter: &'a Filter<'a>,
    masked: &'a HashSet<u64>,
    codes: &'a QueryCodes,
    top: Top<CandidateRow>,
    /// A buffer.
    products: Vec<i32>,
}

impl Scan<'_> {
    /// The nearest rows of a segment by coarse codes.
    fn segment(mut self, number: usize, segment: &LazySegment) -> Result<Top<CandidateRow>, PartError> {
        if let Some(table) = segment.table() {
            let stretches = admitted_stretches(table, self.filter);
            segment
                .each_stretch(&stretches, &mut |first, codes| self.compare(number, table, first, codes))?;
        }
        Ok(self.top)
    }

    /// Compares consecutive rows of a segment, which all belong to admitted sessions.
    fn compare(&mut self, segment: usize, table: &SegmentTable, first: usize, codes: &[u8]) {
        let all = self.filter.admits_all_messages() && self.filter.admits_all_vectors();
        self.codes.products(codes, &mut self.products);
        let scales = table.coarse_scales.part(first..);
        for ((row, product), scale) in (first..).zip(&self.products).zip(scales) {
            let similarity = self.codes.coarse_similarity(*product, *scale);
            if similarity >= self.top.least()
                && (all || self.admits(table, row))
                && let Some(key) = table.keys.get(row)
                && !self.masked.contains(key)
            {
                self.top.put(similarity, *key, CandidateRow { segment, row, coarse_product: *product });
            }
        }
    }

    fn admits(&self, table: &SegmentTable, row: usize) -> bool {
        table.row(row).is_some_and(|row| {
            self.filter.admits_content(row.content_type) && self.filter.admits_message(row.role, row.ts)
        })
    }
}
