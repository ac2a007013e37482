//! Fills chunks with atoms.

use std::{cmp::Reverse, ops::Range};

use super::{super::tokens, atoms::Atom, lines::CutQuality};
use crate::KnownPart;

/// Lengths in tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The maximum length of a chunk.
    pub target: usize,
    /// The maximum overlap with the previous chunk.
    pub overlap: usize,
    /// The minimum that a chunk should add to the previous one.
    pub min: usize,
}

/// A chunk with its length.
#[derive(Debug)]
pub(super) struct Packed {
    /// Its range in the text.
    pub bytes: Range<usize>,
    /// Its length in tokens.
    pub tokens: usize,
}

/// Places in a text are indices of atoms: place 3 is just before atom 3.
pub(super) struct Packer<'a> {
    text: &'a str,
    atoms: &'a [Atom],
    limits: Limits,
    end: usize,
}

impl<'a> Packer<'a> {
    /// For `text` and its atoms, including the empty one at the end.
    pub(super) fn new(text: &'a str, atoms: &'a [Atom], limits: Limits) -> Self {
        Self { text, atoms, limits, end: atoms.len().saturating_sub(1) }
    }

    /// The chunks of the text. Each begins after the beginning of the previous one, and ends after its end.
    pub(super) fn pack(&self) -> Vec<Packed> {
        let mut chunks = Vec::new();
        let mut fresh = self.content_from(0);
        let mut start = fresh;
        while fresh < self.end {
            let (chunk, places) = self.next_chunk(start, fresh);
            chunks.push(chunk);
            fresh = self.content_from(places.end);
            start = self.overlap_start(places, fresh);
        }
        chunks
    }

    /// A chunk that extends beyond `fresh`, the end of the previous chunks, and its places. It begins at `start`, or at
    /// `fresh` if there is no room for both.
    fn next_chunk(&self, start: usize, fresh: usize) -> (Packed, Range<usize>) {
        let target = self.limits.target;
        let mut limit = target;
        while let Some(end) = self.choose_end(start, fresh, limit) {
            let chunk = self.measured(start, end);
            if chunk.tokens <= target {
                return (chunk, start..end);
            }
            // Counts of atoms almost always add up. The step is at least a share of the target, so that even an
            // adversarial text is measured a bounded number of times.
            limit = limit.saturating_sub((chunk.tokens - target).max(target / 16));
        }
        let end = self.next_cut(fresh);
        (self.measured(fresh, end), fresh..end)
    }

    fn choose_end(&self, start: usize, fresh: usize, limit: usize) -> Option<usize> {
        let end = self.best_cut(start, fresh, limit)?;
        let rest = self.content_from(end);
        let Some(next) = self.last_cut(rest, self.limits.target) else { return Some(end) };
        if self.tokens(rest, self.content_before(next)) >= self.limits.min {
            return Some(end);
        }
        // The next chunk would be too small, because the text ends or a code block follows.
        let both = self.tokens(start, next);
        if both <= limit { Some(next) } else { self.best_cut(start, fresh, both.div_ceil(2)).or(Some(end)) }
    }

    /// The best place in the second half of the first `limit` tokens from `start`, the last of equally good ones. If
    /// there is none, the last place in the first half. Always after `fresh`.
    fn best_cut(&self, start: usize, fresh: usize, limit: usize) -> Option<usize> {
        let value = |place: usize| {
            if self.tokens(start, place) >= limit / 2 { self.cut(place) } else { CutQuality::Never }
        };
        self.cuts(fresh + 1..self.reach(start, limit) + 1).max_by_key(|place| (value(*place), *place))
    }

    /// The last place to cut within `limit` tokens from `start`, if there is one.
    fn last_cut(&self, start: usize, limit: usize) -> Option<usize> {
        self.cuts(start + 1..self.reach(start, limit) + 1).next_back()
    }

    /// The start of the chunk after the one with the places `previous`, if everything before `fresh` is covered. It is at
    /// a sentence or line if one begins among the last tokens of the previous chunk, or else at a word. It is within a
    /// word only if the previous chunk ends within one.
    fn overlap_start(&self, previous: Range<usize>, fresh: usize) -> usize {
        let Range { start, end } = previous;
        let required = self.next_cut(fresh);
        let earliest =
            self.reach_back(end, self.limits.overlap).max(self.reach_back(required, self.limits.target));
        let least = self.cut(end).min(CutQuality::Word);
        let places = (earliest.max(start + 1)..end).filter(|place| self.cut(*place) >= least);
        let best = places.min_by_key(|place| (Reverse(self.cut(*place).min(CutQuality::Sentence)), *place));
        best.map_or(fresh, |place| self.content_from(place))
    }

    fn measured(&self, start: usize, end: usize) -> Packed {
        let start = self.offset(start);
        let text = self.text.part(start..self.offset(end));
        let trimmed = text.trim_start();
        let start = start + (text.len() - trimmed.len());
        let trimmed = trimmed.trim_end();
        Packed { bytes: start..start + trimmed.len(), tokens: tokens::count(trimmed) }
    }

    /// The places among `places` where the text may be cut.
    fn cuts(&self, places: Range<usize>) -> impl DoubleEndedIterator<Item = usize> {
        places.filter(|place| self.cut(*place) != CutQuality::Never)
    }

    /// The first place after `place` where the text may be cut.
    fn next_cut(&self, place: usize) -> usize {
        self.cuts(place + 1..self.end).next().unwrap_or(self.end)
    }

    /// The first atom at or after `place` that is not blank, or the end.
    fn content_from(&self, place: usize) -> usize {
        let rest = self.atoms.part(place..);
        rest.iter().position(|atom| !atom.blank).map_or(self.end, |blanks| place + blanks)
    }

    /// The place after the last atom before `place` that is not blank.
    fn content_before(&self, place: usize) -> usize {
        let before = self.atoms.part(..place);
        before.iter().rposition(|atom| !atom.blank).map_or(0, |last| last + 1)
    }

    /// The last place within `limit` tokens after `start`.
    fn reach(&self, start: usize, limit: usize) -> usize {
        let most = self.tokens_before(start).saturating_add(limit);
        self.atoms.partition_point(|atom| atom.tokens_before <= most).saturating_sub(1)
    }

    /// The first place within `limit` tokens before `end`.
    fn reach_back(&self, end: usize, limit: usize) -> usize {
        let least = self.tokens_before(end).saturating_sub(limit);
        self.atoms.partition_point(|atom| atom.tokens_before < least)
    }

    fn tokens(&self, start: usize, end: usize) -> usize {
        self.tokens_before(end).saturating_sub(self.tokens_before(start))
    }

    fn tokens_before(&self, place: usize) -> usize {
        self.atoms.get(place).map_or(0, |atom| atom.tokens_before)
    }

    fn cut(&self, place: usize) -> CutQuality {
        self.atoms.get(place).map_or(CutQuality::End, |atom| atom.cut)
    }

    fn offset(&self, place: usize) -> usize {
        self.atoms.get(place).map_or(self.text.len(), |atom| atom.start)
    }
}
