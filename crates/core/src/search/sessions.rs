//! Relevance from the session.

use std::collections::HashMap;

use super::Fused;
use crate::model::{ContentType, SessionKey};

/// How many of the best candidates of a session count.
const BEST: usize = 4;

/// How much each further candidate of a session counts, relative to the one before.
const DECAY: f32 = 0.8;

/// How much the best session adds to the relevance of its candidates.
const SHARE: f32 = 0.5;

/// How much the session with the best tool call adds.
const CALLS: f32 = 0.2;

/// How much a session adds whose conversation has all words of the query.
const WORDS: f32 = 0.4;

/// The evidence for a session from its candidates.
#[derive(Debug, Default)]
struct SessionEvidence {
    /// The sum of its best candidates.
    sum: f32,
    /// Its best tool call.
    call: f32,
    /// The share of the words of the query that its conversation has.
    covered: f32,
}

/// Lets each candidate gain from its session. `covered` are the shares of the words of the query that the conversations
/// of sessions have.
///
/// A session that is about the query has several messages that match it; a single match elsewhere is more likely
/// chance. If its tool calls match too, the work was done there, and not only talked about. And its messages have all
/// words of the query between them. Thinking and tool output don't count for that: they are long, so they have many
/// words by chance. But an identifier of the query, or the whole query, counts as all words, wherever it is.
///
/// The first two are relative to the best session. Relevance must be between 0 and 1; afterwards, it is between 0 and
/// 2.1. The order of the candidates does not change, and neither does their order by relevance within a session.
pub(super) fn lift_by_sessions(candidates: &mut [Fused], covered: &HashMap<SessionKey, f32>) {
    let sessions = session_evidence(candidates, covered);
    let best = |of: fn(&SessionEvidence) -> f32| sessions.values().map(of).fold(0.0, f32::max);
    let (best_sum, best_call) = (best(|session| session.sum), best(|session| session.call));
    let share = |part: f32, best: f32| if best > 0.0 { part / best } else { 0.0 };
    for candidate in candidates {
        let Some(session) = sessions.get(&candidate.message_ref.session) else { continue };
        let lift = SHARE * share(session.sum, best_sum)
            + CALLS * share(session.call, best_call)
            + WORDS * session.covered;
        candidate.why.relevance += lift;
        candidate.why.session += lift;
    }
}

fn session_evidence(
    candidates: &[Fused],
    covered: &HashMap<SessionKey, f32>,
) -> HashMap<SessionKey, SessionEvidence> {
    let mut relevances: HashMap<&SessionKey, (Vec<f32>, f32)> = HashMap::new();
    for candidate in candidates {
        let (all, call) = relevances.entry(&candidate.message_ref.session).or_default();
        all.push(candidate.relevance());
        if candidate.content_type == ContentType::ToolCall {
            *call = call.max(candidate.relevance());
        }
    }
    let of_session = |(session, (all, call)): (&SessionKey, (Vec<f32>, f32))| {
        let covered = covered.get(session).copied().unwrap_or(0.0);
        (session.clone(), SessionEvidence { sum: decayed_sum(all), call, covered })
    };
    relevances.into_iter().map(of_session).collect()
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
        lifted_candidates(candidates.iter().map(of).collect(), &HashMap::new())
    }

    fn lifted_candidates(mut candidates: Vec<Fused>, covered: &HashMap<SessionKey, f32>) -> Vec<f32> {
        lift_by_sessions(&mut candidates, covered);
        candidates.iter().map(|candidate| candidate.relevance()).collect()
    }

    #[test]
    fn a_session_with_a_matching_tool_call_gains() {
        let call = Fused { content_type: ContentType::ToolCall, ..candidate("b", 1, 0.5) };
        let found = lifted_candidates(vec![candidate("a", 1, 0.5), call], &HashMap::new());
        assert!((found[1] - found[0] - CALLS).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_session_with_more_of_the_words_gains() {
        let covered = ["a", "b"].map(|session| candidate(session, 1, 0.0).message_ref.session);
        let covered = HashMap::from([(covered[0].clone(), 0.5), (covered[1].clone(), 1.0)]);
        let found = lifted_candidates(vec![candidate("a", 1, 0.5), candidate("b", 1, 0.5)], &covered);
        assert!((found[1] - found[0] - WORDS / 2.0).abs() < 1e-6, "{found:?}");
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
