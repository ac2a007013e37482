//! Fusion: combines two lists of candidates into one ranking of messages.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use super::{
    Explanation, Lowered, SearchSource, TextCandidate, VectorCandidate, neighbours::lift_by_neighbours,
    sessions::lift_by_sessions,
};
use crate::{
    embedding::ModelStrength,
    model::{ContentType, MessageRef, SessionKey},
};

/// The gain of a session whose title contains all words of the query. It is large enough to put such sessions first.
const TITLE: f32 = 2.1;

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
    /// A text without a word of the query is a result only with at least this cosine similarity. `None` if it was not
    /// measured for this kind of model.
    pub(crate) similarity_floor: Option<f32>,
}

impl FusionWeights {
    /// The weights for a provider's strength; the figures are in `docs/search-quality.md`.
    #[must_use]
    pub(crate) fn of(strength: ModelStrength) -> Self {
        let (text, tool_output) = (1.0, 0.8);
        match strength {
            ModelStrength::Static => {
                let similarity_floor = Some(0.48);
                Self { text, vectors: 0.4, tool_vectors: 0.25, tool_output, similarity_floor }
            }
            ModelStrength::Contextual => {
                Self { text, vectors: 0.6, tool_vectors: 0.5, tool_output, similarity_floor: None }
            }
        }
    }
}

/// A text that matches, with the score that ranks it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankedText {
    pub(crate) candidate: TextCandidate,
    /// The BM25 score, or one that also counts other evidence.
    pub(crate) score: f32,
}

impl From<TextCandidate> for RankedText {
    fn from(candidate: TextCandidate) -> Self {
        Self { score: candidate.score, candidate }
    }
}

/// What is known about messages beyond their match.
#[derive(Debug, Default)]
pub(crate) struct Judgements {
    /// Messages that say nothing about their session, such as reminders.
    pub(crate) unrelated: HashMap<MessageRef, Lowered>,
    /// Messages that say something about their session, but are not what people look for: summaries, and questions that
    /// repeat the query.
    pub(crate) lowered: HashMap<MessageRef, Lowered>,
    /// The share of the words of the query that the conversation of a session has, in the messages that were read.
    pub(crate) covered: HashMap<SessionKey, f32>,
    /// Sessions whose title or description has all words of the query.
    pub(crate) titled: HashSet<SessionKey>,
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
    /// The relevance, 0 to 1, and what it consists of; the best is 1.
    pub(crate) why: Explanation,
    /// The list or lists that contain it.
    pub(crate) source: SearchSource,
    /// Its BM25 score.
    pub(crate) text_score: Option<f32>,
    /// Its similarity.
    pub(crate) similarity: Option<f32>,
    /// The vector of its nearest chunk, if it is in the vector list.
    pub(crate) vector: Option<Vec<f32>>,
}

/// Fuses the lists into one entry per message, best first. Either list may be empty.
///
/// The scores of each list are scaled to 0..1, weighted by content type, and added for each message. Up to a factor,
/// this is a convex combination, which performs better than reciprocal ranks (Bruch, Gai, Ingber: ACM TOIS 2023, and
/// our own measurements in `docs/search-quality.md`). BM25 scores are scaled from 0. Similarities are scaled from the
/// last one in the list, because the similarity of unrelated texts depends on the model. A message gains from its
/// neighbours (see `neighbours.rs`), from its session (see `sessions.rs`) and from the title of its session. The best is
/// scaled to 1.
#[must_use]
pub(crate) fn fuse(
    texts: Vec<RankedText>,
    vectors: Vec<VectorCandidate>,
    weights: &FusionWeights,
    judgements: &Judgements,
) -> Vec<Fused> {
    let mut fused: HashMap<MessageRef, Fused> = HashMap::new();
    let scale = Scale::of(texts.iter().map(|text| text.score).chain([0.0]));
    let texts = best_of_each(texts, |text| (&text.candidate.message_ref, weighted_text(text, weights)));
    for (before, text) in texts.enumerate() {
        let words = scale.apply(weighted_text(&text, weights));
        let mut found = Fused::from_text(text.candidate, words);
        found.why.text_rank = Some(before + 1);
        fused.insert(found.message_ref.clone(), found);
    }
    let scale = Scale::of(vectors.iter().map(|candidate| candidate.similarity));
    let vectors = best_of_each(vectors, |c| (&c.message_ref, vector_weight(c, weights) * c.similarity));
    for (before, candidate) in vectors.enumerate() {
        let meaning = vector_weight(&candidate, weights) * scale.apply(candidate.similarity);
        let found = match fused.entry(candidate.message_ref.clone()) {
            Entry::Occupied(found) => {
                let found = found.into_mut();
                found.add_vector(candidate, meaning);
                found
            }
            Entry::Vacant(place) => place.insert(Fused::from_vector(candidate, meaning)),
        };
        found.why.vector_rank = Some(before + 1);
    }
    let mut fused: Vec<Fused> = fused.into_values().collect();
    // Before the lifts, so that nothing else gains from them.
    lower(&mut fused, &judgements.unrelated);
    lift_by_neighbours(&mut fused);
    scale_to_one(&mut fused);
    lift_by_sessions(&mut fused, &judgements.covered);
    lift_by_titles(&mut fused, &judgements.titled);
    lower(&mut fused, &judgements.unrelated);
    lower(&mut fused, &judgements.lowered);
    sort_best_first(&mut fused);
    scale_to_one(&mut fused);
    fused
}

/// The `count` most relevant messages of both lists, by their scores alone.
#[must_use]
pub(crate) fn most_relevant(
    texts: &[RankedText],
    vectors: &[VectorCandidate],
    weights: &FusionWeights,
    count: usize,
) -> Vec<MessageRef> {
    let of_texts = Scale::of(texts.iter().map(|text| text.score).chain([0.0]));
    let of_vectors = Scale::of(vectors.iter().map(|candidate| candidate.similarity));
    let mut relevance: HashMap<&MessageRef, (f32, f32)> = HashMap::new();
    for text in texts {
        let (best, _) = relevance.entry(&text.candidate.message_ref).or_default();
        *best = best.max(of_texts.apply(weighted_text(text, weights)));
    }
    for candidate in vectors {
        let (_, best) = relevance.entry(&candidate.message_ref).or_default();
        *best = best.max(vector_weight(candidate, weights) * of_vectors.apply(candidate.similarity));
    }
    let mut ranked: Vec<(&MessageRef, f32)> =
        relevance.into_iter().map(|(message_ref, (text, vector))| (message_ref, text + vector)).collect();
    ranked.sort_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| a.cmp(b)));
    ranked.into_iter().take(count).map(|(message_ref, _)| message_ref.clone()).collect()
}

fn lower(fused: &mut [Fused], reasons: &HashMap<MessageRef, Lowered>) {
    for found in fused {
        if let Some(lowered) = reasons.get(&found.message_ref) {
            found.why.lowered = Some(*lowered);
            found.why.scale(lowered.factor());
        }
    }
}

/// Lets the best candidate of each titled session gain.
fn lift_by_titles(fused: &mut [Fused], titled: &HashSet<SessionKey>) {
    if titled.is_empty() {
        return;
    }
    let mut left = titled.clone();
    sort_best_first(fused);
    for found in fused {
        if left.remove(&found.message_ref.session) {
            found.why.relevance += TITLE;
            found.why.title += TITLE;
        }
    }
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

impl Fused {
    pub(crate) fn relevance(&self) -> f32 {
        self.why.relevance
    }

    fn from_text(candidate: TextCandidate, words: f32) -> Self {
        Self {
            message_ref: candidate.message_ref,
            content_type: candidate.content_type,
            span: None,
            why: Explanation { relevance: words, words, ..Explanation::default() },
            source: SearchSource::FullText,
            text_score: Some(candidate.score),
            similarity: None,
            vector: None,
        }
    }

    /// A text that only its score ranks.
    pub(crate) fn in_order(candidate: TextCandidate) -> Self {
        let why = Explanation { relevance: candidate.score, ..Explanation::default() };
        Self { why, ..Self::from_text(candidate, 0.0) }
    }

    pub(crate) fn from_vector(candidate: VectorCandidate, meaning: f32) -> Self {
        Self {
            message_ref: candidate.message_ref,
            content_type: candidate.content_type,
            span: Some((candidate.span_start, candidate.span_end)),
            why: Explanation { relevance: meaning, meaning, ..Explanation::default() },
            source: SearchSource::Semantic,
            text_score: None,
            similarity: Some(candidate.similarity),
            vector: Some(candidate.vector),
        }
    }

    /// The text list decides which text of the message is shown, because its words can be highlighted.
    fn add_vector(&mut self, candidate: VectorCandidate, meaning: f32) {
        self.why.relevance += meaning;
        self.why.meaning = meaning;
        self.source = SearchSource::Both;
        self.similarity = Some(candidate.similarity);
        self.vector = Some(candidate.vector);
        if candidate.content_type == self.content_type {
            self.span = Some((candidate.span_start, candidate.span_end));
        }
    }
}

fn weighted_text(text: &RankedText, weights: &FusionWeights) -> f32 {
    weights.text * tool_factor(text.candidate.content_type, weights) * text.score
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
    let mut seen = HashSet::new();
    list.retain(|candidate| seen.insert(key(candidate).0.clone()));
    list.into_iter()
}

fn sort_best_first(fused: &mut [Fused]) {
    fused.sort_by(|a, b| {
        b.relevance().total_cmp(&a.relevance()).then_with(|| a.message_ref.cmp(&b.message_ref))
    });
}

fn scale_to_one(fused: &mut [Fused]) {
    let best = fused.iter().map(Fused::relevance).fold(0.0, f32::max);
    if best > 0.0 {
        fused.iter_mut().for_each(|f| f.why.scale(1.0 / best));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::{SessionId, UserId};

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

    fn fused(texts: Vec<TextCandidate>, vectors: Vec<VectorCandidate>) -> Vec<Fused> {
        judged(texts, vectors, &Judgements::default())
    }

    fn judged(texts: Vec<TextCandidate>, vectors: Vec<VectorCandidate>, of: &Judgements) -> Vec<Fused> {
        let texts = texts.into_iter().map(RankedText::from).collect();
        fuse(texts, vectors, &FusionWeights::of(ModelStrength::Static), of)
    }

    fn order(fused: &[Fused]) -> Vec<u32> {
        fused.iter().map(|f| f.message_ref.sequence).collect()
    }

    #[test]
    fn a_message_in_both_lists_ranks_above_those_in_one() {
        use ContentType::UserQuery;
        let fused = fused(
            vec![text(10, UserQuery, 9.0), text(20, UserQuery, 8.0)],
            vec![vector(30, UserQuery, 0.9), vector(20, UserQuery, 0.8), vector(40, UserQuery, 0.3)],
        );
        assert_eq!(order(&fused), [20, 10, 30, 40]);
        assert_eq!(fused[0].relevance(), 1.0);
        assert_eq!(fused[0].source, SearchSource::Both);
        assert!(fused.windows(2).all(|pair| pair[0].relevance() >= pair[1].relevance()));
    }

    #[test]
    fn a_message_appears_once_with_its_best_text() {
        use ContentType::{AssistantResponse, AssistantThinking};
        let fused = fused(vec![text(1, AssistantThinking, 3.0), text(1, AssistantResponse, 5.0)], vec![]);
        assert_eq!(fused.len(), 1);
        assert_eq!(fused[0].content_type, AssistantResponse);
    }

    #[test]
    fn tool_output_counts_less() {
        use ContentType::{ToolOutput, UserQuery};
        let vectors =
            vec![vector(10, ToolOutput, 0.8), vector(20, UserQuery, 0.7), vector(30, UserQuery, 0.1)];
        assert_eq!(order(&fused(vec![], vectors)), [20, 10, 30]);
    }

    #[test]
    fn judgements_lower_the_relevance() {
        use ContentType::UserQuery;
        let texts = vec![text(10, UserQuery, 9.0), text(20, UserQuery, 8.0), text(30, UserQuery, 7.0)];
        let mut of = Judgements::default();
        of.unrelated.insert(message_ref("s", 10), Lowered::Inserted);
        of.lowered.insert(message_ref("s", 20), Lowered::RepeatedQuestion);
        let judged = judged(texts, vec![], &of);
        assert_eq!(order(&judged), [30, 20, 10]);
        let why = judged.iter().map(|fused| (fused.why.text_rank, fused.why.lowered));
        let expected =
            [(Some(3), None), (Some(2), Some(Lowered::RepeatedQuestion)), (Some(1), Some(Lowered::Inserted))];
        assert_eq!(why.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_most_relevant_messages_are_those_of_both_lists() {
        use ContentType::UserQuery;
        let texts = [text(10, UserQuery, 9.0), text(20, UserQuery, 8.0)].map(RankedText::from);
        let vectors = [vector(30, UserQuery, 0.9), vector(20, UserQuery, 0.8), vector(40, UserQuery, 0.3)];
        let found = most_relevant(&texts, &vectors, &FusionWeights::of(ModelStrength::Static), 3);
        assert_eq!(found.iter().map(|found| found.sequence).collect::<Vec<_>>(), [20, 10, 30]);
    }

    #[test]
    fn the_shares_of_an_explanation_add_up_to_the_relevance() {
        use ContentType::UserQuery;
        let texts = vec![text(10, UserQuery, 9.0), text(11, UserQuery, 8.0), text(30, UserQuery, 2.0)];
        let vectors =
            vec![vector(30, UserQuery, 0.9), vector(11, UserQuery, 0.8), vector(40, UserQuery, 0.3)];
        let mut of = Judgements::default();
        of.lowered.insert(message_ref("s", 11), Lowered::RepeatedQuestion);
        of.titled.insert(message_ref("s", 0).session);
        for Fused { why, .. } in judged(texts, vectors, &of) {
            let sum = why.words + why.meaning + why.neighbours + why.session + why.title;
            assert!((sum - why.relevance).abs() < 1e-6 && why.session > 0.0, "{why:?}");
        }
    }

    #[test]
    fn no_candidates_give_no_results() {
        assert!(fused(vec![], vec![]).is_empty());
    }
}
