//! Relevance from neighbouring messages.

use super::Fused;

/// The maximum distance of a neighbour in messages: a question, a tool call, its output and the answer are this near to
/// each other.
const REACH: u32 = 2;

/// The share of its best neighbour's relevance that a candidate gains.
const SHARE: f32 = 0.2;

/// Lets each candidate gain from the best candidate near it in the same session.
///
/// Messages in a conversation are short and rarely repeat what was just said: an answer need not repeat the words of
/// the question. Several matches close to each other are more likely right than a single match elsewhere. No message
/// becomes a candidate only because of its neighbours, and the better one of two neighbours stays ahead. Only the best
/// neighbour counts, so a long run of weak matches gains no more than a pair.
///
/// The candidates, one per message, are returned in the order of their keys.
pub(super) fn lift_by_neighbours(candidates: &mut [Fused]) {
    candidates.sort_by(|a, b| a.message_ref.cmp(&b.message_ref));
    // At most this many candidates before and after a candidate can be near it.
    let reach = REACH as usize;
    let lifts: Vec<f32> = candidates
        .iter()
        .enumerate()
        .map(|(at, candidate)| {
            let around = candidates.iter().skip(at.saturating_sub(reach)).take(2 * reach + 1);
            let near = around.filter(|other| are_near(candidate, other));
            SHARE * near.map(|other| other.relevance()).fold(0.0, f32::max)
        })
        .collect();
    for (candidate, lift) in candidates.iter_mut().zip(lifts) {
        candidate.why.relevance += lift;
        candidate.why.neighbours += lift;
    }
}

/// Whether both are in one session and near each other, but not the same message.
fn are_near(a: &Fused, b: &Fused) -> bool {
    (1..=REACH).contains(&a.message_ref.sequence.abs_diff(b.message_ref.sequence))
        && a.message_ref.session == b.message_ref.session
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::fusion::tests::candidate;

    fn lifted(candidates: &[(&'static str, u32, f32)]) -> Vec<f32> {
        let of =
            |(session, sequence, relevance): &(&str, u32, f32)| candidate(session, *sequence, *relevance);
        let mut candidates: Vec<Fused> = candidates.iter().map(of).collect();
        lift_by_neighbours(&mut candidates);
        candidates.iter().map(|candidate| candidate.relevance()).collect()
    }

    fn same(found: &[f32], expected: &[f32]) -> bool {
        found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6)
    }

    #[test]
    fn a_candidate_gains_from_the_best_one_near_it() {
        let found = lifted(&[("s", 7, 0.5), ("s", 5, 1.0), ("s", 6, 0.1), ("s", 8, 0.3)]);
        // In the order of their sequences: 5, 6, 7, 8.
        assert!(same(&found, &[1.1, 0.3, 0.7, 0.4]), "{found:?}");
    }

    #[test]
    fn distant_messages_and_other_sessions_add_nothing() {
        let found = lifted(&[("a", 1, 1.0), ("a", 4, 0.5), ("b", 2, 0.5), ("b", 5, 0.4)]);
        assert!(same(&found, &[1.0, 0.5, 0.5, 0.4]), "{found:?}");
    }

    #[test]
    fn the_better_one_of_two_neighbours_stays_ahead() {
        let found = lifted(&[("s", 0, 0.51), ("s", 1, 0.5)]);
        assert!(found[0] > found[1], "{found:?}");
    }

    #[test]
    fn few_or_no_candidates_are_fine() {
        assert!(lifted(&[]).is_empty());
        assert!(same(&lifted(&[("s", u32::MAX, 0.4)]), &[0.4]));
    }
}
