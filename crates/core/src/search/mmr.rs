//! Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998).

use super::Fused;

/// Picks up to `limit` candidates one by one, each with the best balance of relevance and dissimilarity to those
/// already picked, and returns them with their scores, best first.
///
/// The score is `lambda · relevance + (1 − lambda) · (1 − s)`, where `s` is the highest cosine similarity to any picked
/// candidate, or 0 if that is negative. This is the usual measure plus a constant, so that it is between 0 and 1.
/// Relevance must be between 0 and 1. A candidate without a vector is similar to nothing.
#[must_use]
pub(crate) fn diversify(candidates: Vec<Fused>, lambda: f32, limit: usize) -> Vec<(Fused, f32)> {
    let mut open: Vec<(Fused, f32)> = candidates.into_iter().map(|candidate| (candidate, 0.0)).collect();
    let score = |(candidate, similarity): &(Fused, f32)| {
        lambda * candidate.relevance() + (1.0 - lambda) * (1.0 - similarity)
    };
    let mut picked = Vec::with_capacity(limit.min(open.len()));
    while picked.len() < limit {
        // The first of equal candidates is picked, so relevance decides ties.
        let best = open.iter().map(&score).enumerate().reduce(|a, b| if b.1 > a.1 { b } else { a });
        let Some((index, score)) = best else { break };
        let (next, _) = open.remove(index);
        for (candidate, similarity) in &mut open {
            *similarity = similarity.max(cosine(&next, candidate));
        }
        picked.push((next, score));
    }
    picked
}

/// Vectors are of unit length, so the dot product is the cosine.
fn cosine(a: &Fused, b: &Fused) -> f32 {
    match (&a.vector, &b.vector) {
        (Some(a), Some(b)) => a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>().clamp(0.0, 1.0),
        _ => 0.0,
    }
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
