//! Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998).

use std::{cmp::Ordering, collections::BinaryHeap};

use super::Fused;

/// At most this many picked candidates are compared with others. Nobody sees the diversity of results far down, and the time
/// grows with this number times that of the candidates.
const MOST_COMPARED: usize = 100;

/// From this similarity, messages of different sessions are nearly copies. Below it, they say something of their own
/// about the query: with less, the right session moves down because others are about the same subject.
const COPY: f32 = 0.9;

/// How much similarity counts between messages of one session.
const WITHIN: f32 = 0.5;

/// A candidate that is not picked yet. The greatest has the highest score; of equal ones, the first.
struct OpenCandidate {
    candidate: Fused,
    /// The position among all candidates.
    position: usize,
    /// The highest similarity to the first `compared` picked candidates.
    similarity: f32,
    compared: usize,
    score: f32,
}

impl Ord for OpenCandidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.position.cmp(&self.position))
    }
}

impl PartialOrd for OpenCandidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OpenCandidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for OpenCandidate {}

/// Picks up to `limit` candidates one by one, each with the best balance of relevance and dissimilarity to those
/// already picked, and returns them with their scores, best first.
///
/// The score is `lambda · relevance + (1 − lambda) · (1 − s)`, where `s` is how much it [repeats](repetition) any picked
/// candidate. This is the usual measure plus a constant, so that it is between 0 and 1. Relevance must be between 0 and
/// 1. A candidate without a vector is similar to nothing.
///
/// A score only falls while others are picked. So a candidate is compared with them only when it would be the next one,
/// and most pairs are never compared. Beyond the first [`MOST_COMPARED`], similarity to those counts.
#[must_use]
pub(crate) fn diversify(candidates: Vec<Fused>, lambda: f32, limit: usize) -> Vec<(Fused, f32)> {
    let score = |candidate: &Fused, similarity: f32| {
        lambda * candidate.relevance() + (1.0 - lambda) * (1.0 - similarity)
    };
    let open = candidates.into_iter().enumerate().map(|(position, candidate)| {
        let score = score(&candidate, 0.0);
        OpenCandidate { candidate, position, similarity: 0.0, compared: 0, score }
    });
    let mut open: BinaryHeap<OpenCandidate> = open.collect();
    let mut picked: Vec<(Fused, f32)> = Vec::with_capacity(limit.min(open.len()));
    while picked.len() < limit {
        let Some(mut best) = open.pop() else { break };
        let others = picked.len().min(MOST_COMPARED);
        if best.compared < others && lambda < 1.0 {
            let new = picked.iter().take(others).skip(best.compared);
            let similarities = new.map(|(other, _)| repetition(other, &best.candidate));
            best.similarity = similarities.fold(best.similarity, f32::max);
            best.compared = others;
            best.score = score(&best.candidate, best.similarity);
            open.push(best);
        } else {
            picked.push((best.candidate, best.score));
        }
    }
    picked
}

/// How much one candidate repeats another, 0 to 1: half of their similarity if they are in one session, and all of it if
/// one is nearly a copy of the other, for example in a fork of a session.
fn repetition(a: &Fused, b: &Fused) -> f32 {
    match cosine(a, b) {
        similarity if a.message_ref.session == b.message_ref.session => WITHIN * similarity,
        similarity if similarity >= COPY => similarity,
        _ => 0.0,
    }
}

/// Vectors are of unit length, so the dot product is the cosine.
fn cosine(a: &Fused, b: &Fused) -> f32 {
    match (&a.vector, &b.vector) {
        (Some(a), Some(b)) => dot(a, b).clamp(0.0, 1.0),
        _ => 0.0,
    }
}

/// The dot product. Several sums are made at once, because the order of additions is fixed within one.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let (whole_a, rest_a) = a.as_chunks::<LANES>();
    let (whole_b, rest_b) = b.as_chunks::<LANES>();
    let mut sums = [0.0_f32; LANES];
    for (a, b) in whole_a.iter().zip(whole_b) {
        for (sum, (x, y)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += x * y;
        }
    }
    let rest: f32 = rest_a.iter().zip(rest_b).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::fusion::tests;

    fn candidate(sequence: u32, relevance: f32, vector: Option<[f32; 2]>) -> Fused {
        Fused { vector: vector.map(|v| v.to_vec()), ..tests::candidate("s", sequence, relevance) }
    }

    fn order(picked: &[(Fused, f32)]) -> Vec<u32> {
        picked.iter().map(|(candidate, _)| candidate.message_ref.sequence).collect()
    }

    #[test]
    fn copies_of_picked_candidates_move_down() {
        let (x, y) = (Some([1.0, 0.0]), Some([0.0, 1.0]));
        let candidates = vec![candidate(1, 1.0, x), candidate(2, 0.95, x), candidate(3, 0.8, y)];
        let picked = diversify(candidates, 0.7, 10);
        assert_eq!(order(&picked), [1, 3, 2]);
        assert!(picked.windows(2).all(|pair| pair[0].1 >= pair[1].1), "{picked:?}");
    }

    #[test]
    fn the_highest_similarity_counts() {
        let (x, y) = (Some([1.0, 0.0]), Some([0.0, 1.0]));
        let candidates =
            vec![candidate(1, 1.0, x), candidate(2, 0.9, y), candidate(3, 0.85, x), candidate(4, 0.6, None)];
        assert_eq!(order(&diversify(candidates, 0.5, 10)), [1, 2, 4, 3]);
    }

    #[test]
    fn with_lambda_one_only_relevance_counts() {
        let x = Some([1.0, 0.0]);
        let candidates = vec![candidate(1, 1.0, x), candidate(2, 0.5, x), candidate(3, 0.2, x)];
        let picked = diversify(candidates, 1.0, 2);
        assert_eq!(order(&picked), [1, 2]);
        assert_eq!(picked[1].1, 0.5);
    }

    #[test]
    fn the_limit_is_observed() {
        assert!(diversify(vec![], 0.7, 5).is_empty());
        assert_eq!(diversify(vec![candidate(1, 1.0, None), candidate(2, 0.9, None)], 0.7, 1).len(), 1);
    }
}
