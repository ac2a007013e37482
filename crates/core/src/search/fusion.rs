//! Fusion: combines two lists of candidates into one ranking of messages.

use std::collections::HashMap;

use super::{SearchSource, TextCandidate, VectorCandidate, neighbours::lift_by_neighbours};
use crate::{
    embedding::ModelStrength,
    model::{ContentType, MessageRef},
};

/// The weights of the lists, by content type. All weights are here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FusionWeights {
    /// The weight of the text list.
    pub(crate) text: f32,
    /// The weight of the vector list for conversation (user, assistant, thinking).
    pub(crate) vectors: f32,
    /// The weight of the vector list for tool output, which is mostly code and data.
    pub(crate) tool_vectors: f32,
    /// The factor for tool output in both lists, and for tool calls.
    pub(crate) tool_output: f32,
}

impl FusionWeights {
    /// The weights for a provider's strength; the figures are in `docs/search-quality.md`.
    #[must_use]
    pub(crate) fn of(strength: ModelStrength) -> Self {
        match strength {
            ModelStrength::Static => Self { text: 1.0, vectors: 0.3, tool_vectors: 0.15, tool_output: 0.8 },
            ModelStrength::Contextual => {
                Self { text: 1.0, vectors: 0.6, tool_vectors: 0.5, tool_output: 0.8 }
            }
        }
    }
}

/// A message in one or both lists.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fused {
    /// The message.
    pub(crate) message_ref: MessageRef,
    /// The content type of its best text.
    pub(crate) content_type: ContentType,
    /// The chunk nearest to the query, if the message is in the vector list.
    pub(crate) span: Option<(u32, u32)>,
    /// The relevance, 0 to 1; the best is 1.
    pub(crate) relevance: f32,
    /// The list or lists that contain it.
    pub(crate) source: SearchSource,
    /// Its BM25 score.
    pub(crate) text_score: Option<f32>,
    /// Its similarity.
    pub(crate) similarity: Option<f32>,
    /// The vector of its nearest chunk, if it is in the vector list.
    pub(crate) vector: Option<Vec<f32>>,
}

/// Fuses both lists into one entry per message, best first.
///
/// The scores of each list are scaled to 0..1, weighted by content type, and added for each message. Up to a factor,
/// this is a convex combination, which performs better than reciprocal ranks (Bruch, Gai, Ingber: ACM TOIS 2023, and
/// our own measurements in `docs/search-quality.md`). BM25 scores are scaled from 0. Similarities are scaled from the
/// last one in the list, because the similarity of unrelated texts depends on the model. A message gains from its
/// neighbours (see `neighbours.rs`). The best is scaled to 1.
#[must_use]
pub(crate) fn fuse(
    text: Vec<TextCandidate>,
    vectors: Vec<VectorCandidate>,
    weights: &FusionWeights,
) -> Vec<Fused> {
    let mut fused: HashMap<MessageRef, Fused> = HashMap::new();
    let scale = Scale::of(text.iter().map(|candidate| candidate.score).chain([0.0]));
    for candidate in best_of_each(text, |c| (&c.message_ref, text_weight(c, weights) * c.score)) {
        let relevance = text_weight(&candidate, weights) * scale.apply(candidate.score);
        fused.insert(candidate.message_ref.clone(), Fused::from_text(candidate, relevance));
    }
    let scale = Scale::of(vectors.iter().map(|candidate| candidate.similarity));
    for candidate in best_of_each(vectors, |c| (&c.message_ref, vector_weight(c, weights) * c.similarity)) {
        let relevance = vector_weight(&candidate, weights) * scale.apply(candidate.similarity);
        match fused.get_mut(&candidate.message_ref) {
            Some(found) => found.add_vector(candidate, relevance),
            None => {
                fused.insert(candidate.message_ref.clone(), Fused::from_vector(candidate, relevance));
            }
        }
    }
    let mut fused: Vec<Fused> = fused.into_values().collect();
    lift_by_neighbours(&mut fused);
    sort_best_first(&mut fused);
    scale_to_one(&mut fused);
    fused
}

/// Scales the scores of a list to 0..1.
struct Scale {
    least: f32,
    range: f32,
}

impl Scale {
    fn of(scores: impl Iterator<Item = f32> + Clone) -> Self {
        let least = scores.clone().fold(f32::INFINITY, f32::min);
        Self { least, range: scores.fold(f32::NEG_INFINITY, f32::max) - least }
    }

    /// If all scores are equal, each is scaled to 1.
    fn apply(&self, score: f32) -> f32 {
        if self.range > 0.0 { (score - self.least) / self.range } else { 1.0 }
    }
}

/// Ranks only the text list: relevance is the weighted score, scaled so that the best is 1.
#[must_use]
pub(crate) fn rank_texts(text: Vec<TextCandidate>, weights: &FusionWeights) -> Vec<Fused> {
    let ranked = best_of_each(text, |c| (&c.message_ref, tool_factor(c.content_type, weights) * c.score));
    let mut fused: Vec<Fused> = ranked
        .map(|candidate| {
            let relevance = tool_factor(candidate.content_type, weights) * candidate.score;
            Fused::from_text(candidate, relevance)
        })
        .collect();
    scale_to_one(&mut fused);
    fused
}

/// Ranks only the vector list: relevance is the weighted similarity, or 0 if that is negative.
#[must_use]
pub(crate) fn rank_vectors(vectors: Vec<VectorCandidate>, weights: &FusionWeights) -> Vec<Fused> {
    let ranked =
        best_of_each(vectors, |c| (&c.message_ref, tool_factor(c.content_type, weights) * c.similarity));
    let mut fused: Vec<Fused> = ranked
        .map(|candidate| {
            let relevance = tool_factor(candidate.content_type, weights) * candidate.similarity.max(0.0);
            Fused::from_vector(candidate, relevance)
        })
        .collect();
    scale_to_one(&mut fused);
    fused
}

impl Fused {
    fn from_text(candidate: TextCandidate, relevance: f32) -> Self {
        Self {
            message_ref: candidate.message_ref,
            content_type: candidate.content_type,
            span: None,
            relevance,
            source: SearchSource::FullText,
            text_score: Some(candidate.score),
            similarity: None,
            vector: None,
        }
    }

    pub(crate) fn from_vector(candidate: VectorCandidate, relevance: f32) -> Self {
        Self {
            message_ref: candidate.message_ref,
            content_type: candidate.content_type,
            span: Some((candidate.span_start, candidate.span_end)),
            relevance,
            source: SearchSource::Semantic,
            text_score: None,
            similarity: Some(candidate.similarity),
            vector: Some(candidate.vector),
        }
    }

    /// The text list decides which text of the message is shown, because its words can be highlighted.
    fn add_vector(&mut self, candidate: VectorCandidate, relevance: f32) {
        self.relevance += relevance;
        self.source = SearchSource::Both;
        self.similarity = Some(candidate.similarity);
        self.vector = Some(candidate.vector);
        if candidate.content_type == self.content_type {
            self.span = Some((candidate.span_start, candidate.span_end));
        }
    }
}

fn text_weight(candidate: &TextCandidate, weights: &FusionWeights) -> f32 {
    weights.text * tool_factor(candidate.content_type, weights)
}

fn vector_weight(candidate: &VectorCandidate, weights: &FusionWeights) -> f32 {
    if candidate.content_type.is_of_tools() {
        weights.tool_vectors * weights.tool_output
    } else {
        weights.vectors
    }
}

fn tool_factor(content_type: ContentType, weights: &FusionWeights) -> f32 {
    if content_type.is_of_tools() { weights.tool_output } else { 1.0 }
}

/// The best candidate of each message, best first.
fn best_of_each<T>(mut list: Vec<T>, key: impl Fn(&T) -> (&MessageRef, f32)) -> impl Iterator<Item = T> {
    list.sort_by(|a, b| {
        let ((place_a, score_a), (place_b, score_b)) = (key(a), key(b));
        score_b.total_cmp(&score_a).then_with(|| place_a.cmp(place_b))
    });
    let mut seen = std::collections::HashSet::new();
    list.retain(|candidate| seen.insert(key(candidate).0.clone()));
    list.into_iter()
}

fn sort_best_first(fused: &mut [Fused]) {
    fused.sort_by(|a, b| b.relevance.total_cmp(&a.relevance).then_with(|| a.message_ref.cmp(&b.message_ref)));
}

fn scale_to_one(fused: &mut [Fused]) {
    let best = fused.iter().map(|f| f.relevance).fold(0.0, f32::max);
    if best > 0.0 {
        fused.iter_mut().for_each(|f| f.relevance /= best);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::{SessionId, SessionKey, UserId};

    fn message_ref(session: &str, sequence: u32) -> MessageRef {
        let (user, session) = (UserId::new("u").unwrap(), SessionId::new(session).unwrap());
        MessageRef::new(SessionKey::new(user, session), sequence)
    }

    /// A candidate without a vector.
    pub(in crate::search) fn candidate(session: &str, sequence: u32, relevance: f32) -> Fused {
        let (message_ref, content_type) = (message_ref(session, sequence), ContentType::UserQuery);
        Fused::from_text(TextCandidate { message_ref, content_type, score: relevance }, relevance)
    }

    fn text(sequence: u32, content_type: ContentType, score: f32) -> TextCandidate {
        TextCandidate { message_ref: message_ref("s", sequence), content_type, score }
    }

    fn vector(sequence: u32, content_type: ContentType, similarity: f32) -> VectorCandidate {
        VectorCandidate {
            message_ref: message_ref("s", sequence),
            content_type,
            span_start: 0,
            span_end: 9,
            similarity,
            vector: vec![1.0],
        }
    }

    fn weights() -> FusionWeights {
        FusionWeights::of(ModelStrength::Static)
    }

    #[test]
    fn a_message_in_both_lists_ranks_above_those_in_one() {
        use ContentType::UserQuery;
        let fused = fuse(
            vec![text(1, UserQuery, 9.0), text(2, UserQuery, 8.0)],
            vec![vector(3, UserQuery, 0.9), vector(2, UserQuery, 0.8), vector(4, UserQuery, 0.3)],
            &weights(),
        );
        assert_eq!(fused.iter().map(|f| f.message_ref.sequence).collect::<Vec<_>>(), [2, 1, 3, 4]);
        assert_eq!(fused[0].relevance, 1.0);
        assert_eq!(fused[0].source, SearchSource::Both);
        assert!(fused.windows(2).all(|pair| pair[0].relevance >= pair[1].relevance));
    }

    #[test]
    fn a_message_appears_once_with_its_best_text() {
        use ContentType::{AssistantResponse, AssistantThinking};
        let fused =
            rank_texts(vec![text(1, AssistantThinking, 3.0), text(1, AssistantResponse, 5.0)], &weights());
        assert_eq!(fused.len(), 1);
        assert_eq!(fused[0].content_type, AssistantResponse);
    }

    #[test]
    fn tool_output_counts_less() {
        use ContentType::{ToolOutput, UserQuery};
        let fused = rank_vectors(vec![vector(1, ToolOutput, 0.8), vector(2, UserQuery, 0.7)], &weights());
        assert_eq!(fused[0].message_ref.sequence, 2);
    }

    #[test]
    fn no_candidates_give_no_results() {
        assert!(fuse(vec![], vec![], &weights()).is_empty());
    }
}
