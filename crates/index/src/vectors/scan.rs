//! Finding the nearest vectors.

use std::{collections::HashSet, ops::Range};

use amplifier_session_core::{Error, Result, backend::VectorQuery};

use super::{
    VectorPart, VectorSource,
    codes::{code_product, product, quantise},
    segment::Segment,
};
use crate::{
    answer::VectorHit,
    filter::Filter,
    part::Look,
    rows::Rows,
    tail::Tail,
    top::Top,
};

/// How many more vectors are compared in full than are asked for: the order by codes is not quite the true one.
const SPARE: usize = 50;

/// The vectors nearest to the query's among those in the index and those newer than it, and how many are newer.
pub(crate) fn search(
    look: &Look<VectorPart>,
    tail: &Tail<VectorSource>,
    rows: &mut dyn Rows,
    query: &VectorQuery,
) -> Result<(Vec<VectorHit>, u64)> {
    let filter = Filter::from(query);
    let mut top = Top::new(query.limit);
    let mut same_length = true;
    let scanned = tail.scan(rows, look.after(), look.now, &mut |key, row| {
        same_length &= row.vector.len() == query.vector.len();
        if row.admitted_by(&filter) {
            let similarity = product(&row.vector, &query.vector);
            if similarity >= top.least() {
                top.put(similarity, key, row.vector.to_vec());
            }
        }
    })?;
    if let Some(part) = &look.part {
        same_length &= part.segments().all(|segment| segment.dimensions == query.vector.len());
        let candidates = candidates(part, &filter, &scanned.masked, query);
        rows.vectors(&candidates, &mut |key, vector| {
            top.put(product(vector, &query.vector), key, vector.to_vec());
            Ok(())
        })?;
    }
    if !same_length {
        return Err(Error::validation("vector", "has not as many dimensions as the vectors of the store"));
    }
    let hits = top.into_sorted().into_iter();
    let hits = hits.map(|hit| VectorHit { key: hit.key, similarity: hit.score, vector: hit.item });
    Ok((hits.collect(), scanned.rows))
}

/// Keys of the vectors in the index that are nearest by their codes.
fn candidates(part: &VectorPart, filter: &Filter<'_>, masked: &HashSet<u64>, query: &VectorQuery) -> Vec<u64> {
    let mut codes = Vec::with_capacity(query.vector.len());
    quantise(&query.vector, &mut codes);
    let mut scan = Scan { filter, masked, codes: &codes, top: Top::new(query.limit.saturating_add(SPARE)) };
    part.segments().for_each(|segment| scan.segment(segment));
    scan.top.into_sorted().into_iter().map(|candidate| candidate.key).collect()
}

struct Scan<'a> {
    filter: &'a Filter<'a>,
    masked: &'a HashSet<u64>,
    codes: &'a [u8],
    top: Top<()>,
}

impl Scan<'_> {
    fn segment(&mut self, segment: &Segment) {
        // Neighbouring sessions are scanned in one go.
        let mut stretch = 0..0;
        for (name, rows) in &segment.sessions {
            if !self.filter.admits_session(&name.user, &name.project, &name.session) {
                continue;
            }
            if stretch.end != rows.start {
                self.stretch(segment, stretch.clone());
                stretch.start = rows.start;
            }
            stretch.end = rows.end;
        }
        self.stretch(segment, stretch);
    }

    /// Compares the rows of a stretch, all of them of admitted sessions.
    fn stretch(&mut self, segment: &Segment, rows: Range<usize>) {
        let all = self.filter.admits_all_messages() && self.filter.admits_all_vectors();
        let codes = segment.codes_of(rows.clone()).chunks_exact(segment.dimensions.max(1));
        let scales = segment.scales.get(rows.clone()).unwrap_or_default();
        for ((row, codes), scale) in rows.zip(codes).zip(scales) {
            if !all && !self.admits(segment, row) {
                continue;
            }
            // The query's own scale is the same for all, so it changes no order.
            let similarity = code_product(codes, self.codes) as f32 * scale;
            if similarity >= self.top.least()
                && let Some(key) = segment.keys.get(row)
                && !self.masked.contains(key)
            {
                self.top.put(similarity, *key, ());
            }
        }
    }

    fn admits(&self, segment: &Segment, row: usize) -> bool {
        segment.row(row).is_some_and(|row| {
            self.filter.admits_content(row.content_type) && self.filter.admits_message(row.role, row.ts)
        })
    }
}
