//! Search for the nearest vectors.

use std::{collections::HashSet, ops::Range, sync::Arc};

use amplifier_session_core::{Error, Result, backend::VectorQuery, text::bm25::CollectionStatistics};

use rayon::prelude::*;

use super::{
    VectorPart, VectorTailBuffer,
    codes::{QueryCodes, product},
    lazy::LazySegment,
    segment::Table,
};
use crate::{
    answer::{Found, VectorHit},
    error::{PartError, SearchFailure},
    filter::Filter,
    part::PartView,
    rows::{Rows, VectorRow},
    tail::{Tail, Visitor},
    top::{Ranked, Top},
};

/// How many more vectors than the limit are compared in full, because the order by codes is approximate.
const SPARE: usize = 20;

/// How many times as many vectors are compared by both codes, because the order by coarse codes is less exact. The
/// nearest 333 of 159,363 vectors of texts that are much alike were among the first 1,332 by coarse codes, but for 0.14 %,
/// and all of those of 54,826 vectors of real sessions.
const COARSE: usize = 4;

/// For fewer bytes of codes, waking up other cores takes longer than comparing them on one core.
const ON_ONE_CORE: u64 = 4 << 20;

/// Finds the vectors nearest to the query's in the index and in the tail.
pub(crate) fn search(
    view: &PartView<VectorPart>,
    tail: &Tail<VectorTailBuffer>,
    rows: &mut dyn Rows,
    query: &VectorQuery,
) -> Result<Found<VectorHit>, SearchFailure> {
    let filter = Filter::new(&query.scope, &query.filter, query.content_types, rows)?;
    let (top, same_length) = (Top::new(query.limit), true);
    let mut nearest = Nearest { filter: &filter, query, top, same_length };
    let scanned = tail.scan(rows, view.after(), view.now, &mut nearest)?;
    if let Some(part) = &view.part {
        nearest.same_length &=
            segments_of(part, query).all(|segment| segment.entry.kind.dimensions == query.vector.len());
        let candidates = candidates(part, &filter, &scanned.masked, query)?;
        rows.vectors(&candidates, &mut |key, vector| {
            nearest.compare(key, vector);
            Ok(())
        })?;
    }
    if !nearest.same_length {
        let rule = "must have as many dimensions as the vectors of the store";
        return Err(Error::validation("vector", rule).into());
    }
    let hits = nearest.top.into_sorted().into_iter();
    let hits = hits.map(|hit| VectorHit { key: hit.key, similarity: hit.score, vector: hit.item });
    let statistics = CollectionStatistics::default();
    Ok(Found { hits: hits.collect(), statistics, tail_rows: scanned.rows })
}

/// The nearest vectors, compared in full.
struct Nearest<'a> {
    filter: &'a Filter<'a>,
    query: &'a VectorQuery,
    top: Top<Vec<f32>>,
    same_length: bool,
}

impl Nearest<'_> {
    fn compare(&mut self, key: u64, vector: &[f32]) {
        self.same_length &= vector.len() == self.query.vector.len();
        let similarity = product(vector, &self.query.vector);
        if similarity >= self.top.least() {
            self.top.put(similarity, key, vector.to_vec());
        }
    }
}

impl Visitor<VectorTailBuffer> for Nearest<'_> {
    fn row(&mut self, row: &VectorRow<'_>) {
        let admitted = row.generation == self.query.generation
            && self.filter.admits_content(row.content_type)
            && self.filter.admits_message(row.role, row.ts)
            && self.filter.admits_session(row.session);
        if admitted {
            self.compare(row.key, row.vector);
        }
    }

    fn buffer(&mut self, buffer: &VectorTailBuffer, only: Option<&HashSet<u64>>) {
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
fn segments_of<'a>(part: &'a VectorPart, query: &VectorQuery) -> impl Iterator<Item = &'a LazySegment> {
    let generation = query.generation;
    part.segments.iter().map(Arc::as_ref).filter(move |segment| segment.entry.kind.generation == generation)
}

/// The keys of the nearest vectors in the index, by their codes.
fn candidates(
    part: &VectorPart,
    filter: &Filter<'_>,
    masked: &HashSet<u64>,
    query: &VectorQuery,
) -> Result<Vec<u64>, PartError> {
    let codes = QueryCodes::new(&query.vector);
    let wanted = query.limit.saturating_add(SPARE);
    let segments: Vec<&LazySegment> = segments_of(part, query).collect();
    let mut places = nearest_by_coarse_codes(&segments, wanted.saturating_mul(COARSE), |top| Scan {
        filter,
        masked,
        codes: &codes,
        top,
        products: Vec::new(),
    })?;
    if places.len() <= wanted {
        return Ok(places.into_iter().map(|place| place.key).collect());
    }
    places.sort_unstable_by_key(|place| (place.item.segment, place.item.row));
    let mut top = Top::new(wanted);
    for in_segment in places.chunk_by(|a, b| a.item.segment == b.item.segment) {
        compare_fine_codes(&segments, in_segment, &codes, &mut top)?;
    }
    Ok(top.into_sorted().into_iter().map(|candidate| candidate.key).collect())
}

/// The `limit` rows with the most similar coarse codes, in any order.
fn nearest_by_coarse_codes<'a>(
    segments: &[&LazySegment],
    limit: usize,
    scan: impl Fn(Top<Place>) -> Scan<'a> + Sync,
) -> Result<Vec<Ranked<Place>>, PartError> {
    let none = || Top::new(limit);
    let nearest_in = |(number, segment): (usize, &&LazySegment)| -> Result<Top<Place>, PartError> {
        let mut scan = scan(none());
        if let Some(table) = segment.table() {
            let stretches = admitted_stretches(table, scan.filter);
            segment
                .each_stretch(&stretches, &mut |first, codes| scan.compare(number, table, first, codes))?;
        }
        Ok(scan.top)
    };
    let merge = |a: Top<Place>, b: Top<Place>| Ok(a.merge(b));
    let top = match segments.iter().map(|segment| segment.entry.code_bytes()).sum::<u64>() {
        ..ON_ONE_CORE => {
            segments.iter().enumerate().map(nearest_in).try_fold(none(), |top, found| merge(top, found?))
        }
        _ => segments.par_iter().enumerate().map(nearest_in).try_reduce(none, merge),
    };
    top.map(Top::into_vec)
}

/// Compares rows of one segment, which ascend, by coarse and fine codes.
fn compare_fine_codes(
    segments: &[&LazySegment],
    places: &[Ranked<Place>],
    codes: &QueryCodes,
    top: &mut Top<()>,
) -> Result<(), PartError> {
    let segment = places.first().and_then(|place| segments.get(place.item.segment));
    let Some((segment, table)) = segment.and_then(|segment| Some((segment, segment.table()?))) else {
        return Ok(());
    };
    let rows: Vec<usize> = places.iter().map(|place| place.item.row).collect();
    let (mut fine_codes, mut products) = (Vec::new(), Vec::new());
    segment.fine_codes(&rows, &mut |fine| fine_codes.extend_from_slice(fine))?;
    codes.products(&fine_codes, &mut products);
    for (Ranked { key, item, .. }, product) in places.iter().zip(products) {
        if let Some(scales) = table.scales(item.row) {
            top.put(codes.similarity(item.coarse_product, product, scales), *key, ());
        }
    }
    Ok(())
}

/// The rows of the sessions that a filter admits. Adjacent ones are joined into one range.
fn admitted_stretches(table: &Table, filter: &Filter<'_>) -> Vec<Range<usize>> {
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
struct Place {
    /// The index of its segment among those that are searched.
    segment: usize,
    row: usize,
    coarse_product: i32,
}

struct Scan<'a> {
    filter: &'a Filter<'a>,
    masked: &'a HashSet<u64>,
    codes: &'a QueryCodes,
    top: Top<Place>,
    /// A buffer.
    products: Vec<i32>,
}

impl Scan<'_> {
    /// Compares consecutive rows of a segment, which all belong to admitted sessions.
    fn compare(&mut self, segment: usize, table: &Table, first: usize, codes: &[u8]) {
        let all = self.filter.admits_all_messages() && self.filter.admits_all_vectors();
        self.codes.products(codes, &mut self.products);
        for (row, product) in (first..).zip(&self.products) {
            let Some(scales) = table.scales(row) else { continue };
            let similarity = self.codes.coarse_similarity(*product, scales);
            if similarity >= self.top.least()
                && (all || self.admits(table, row))
                && let Some(key) = table.keys.get(row)
                && !self.masked.contains(key)
            {
                self.top.put(similarity, *key, Place { segment, row, coarse_product: *product });
            }
        }
    }

    fn admits(&self, table: &Table, row: usize) -> bool {
        table.row(row).is_some_and(|row| {
            self.filter.admits_content(row.content_type) && self.filter.admits_message(row.role, row.ts)
        })
    }
}
