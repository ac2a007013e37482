//! Relevance from the session.

use std::collections::HashMap;

use super::Fused;
use crate::model::SessionKey;

/// How many of the best candidates of a session count.
const BEST: usize = 4;

/// How much each further candidate of a session counts, relative to the one before.
const DECAY: f32 = 0.8;

/// How much the best session adds to the relevance of its candidates.
const SHARE: f32 = 0.5;

/// Lets each candidate gain from its session: from the sum of the session's best candidates, relative to that of the
/// best session.
///
/// A session that is about the query has several messages that match it. A single match elsewhere is more likely
/// chance. Relevance must be between 0 and 1; afterwards, it is between 0 and 1.5. The order of the candidates does not
/// change, and neither does their order by relevance within a session.
pub(super) fn lift_by_sessions(candidates: &mut [Fused]) {
    let mut relevances: HashMap<SessionKey, Vec<f32>> = HashMap::new();
    for candidate in candidates.iter() {
        relevances.entry(candidate.message_ref.session.clone()).or_default().push(candidate.relevance());
    }
    let sums: HashMap<SessionKey, f32> =
        relevances.into_iter().map(|(session, relevances)| (session, decayed_sum(relevances))).collect();
    let best = sums.values().copied().fold(0.0, f32::max);
    if best <= 0.0 {
        return;
    }
    for candidate in candidates {
        let of_session = sums.get(&candidate.message_ref.session).copied().unwrap_or(0.0);
        let lift = SHARE * of_session / best;
        candidate.why.relevance += lift;
        candidate.why.session += lift;
    }
}

fn decayed_sum(mut relevances: Vec<f32>) -> f32 {
    relevances.sort_by(|a, b| b.total_cmp(a));
    relevances.truncate(BEST);
    relevances.into_iter().rev().fold(0.0, |sum, relevance| relevance + DECAY * sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::fusion::tests::candidate;

    fn lifted(candidates: &[(&'static str, u32, f32)]) -> Vec<f32> {
        let of =
            |(session, sequence, relevance): &(&str, u32, f32)| candidate(session, *sequence, *relevance);
        let mut candidates: Vec<Fused> = candidates.iter().map(of).collect();
        lift_by_sessions(&mut candidates);
        candidates.iter().map(|candidate| candidate.relevance()).collect()
    }

    #[test]
    fn a_session_with_several_matches_gains_more_than_one_with_a_single_match() {
        let found = lifted(&[("a", 1, 1.0), ("b", 1, 0.9), ("b", 9, 0.9)]);
        assert!(found[1] > found[0], "{found:?}");
        // 0.9 + 0.8 · 0.9 is the best session.
        assert!((found[1] - 1.4).abs() < 1e-6 && (found[0] - (1.0 + 0.5 / 1.62)).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn only_the_best_of_a_session_count() {
        let few: Vec<_> = (0..4).map(|sequence| ("a", sequence, 0.5)).collect();
        let many: Vec<_> = (0..90).map(|sequence| ("b", sequence, 0.5)).collect();
        let found = lifted(&[few, many].concat());
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{found:?}");
    }

    #[test]
    fn without_relevance_nothing_changes() {
        assert!(lifted(&[]).is_empty());
        assert_eq!(lifted(&[("a", 1, 0.0)]), [0.0]);
    }
}
