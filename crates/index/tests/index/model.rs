//! The naive search, and comparisons with it.

use amplifier_session_core::{
    Scope,
    backend::{TextQuery, VectorQuery},
    content::MessageLine,
    model::{ContentType, ContentTypes, RawJson, SessionSource},
    search::SearchFilter,
    text::{
        Analyzer, TermPhrase,
        bm25::{count_terms, score},
        query_terms,
    },
};
use amplifier_session_index::{IndexAnswer, SearchIndex, TextHit, VectorHit};

use super::store::{Place, State, Store};

/// Pseudorandom numbers, the same in every run.
pub(crate) struct Numbers(pub u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A text of `words` words, common ones more often than rare ones.
    pub(crate) fn text(&mut self, words: u64) -> String {
        let word = |numbers: &mut Self| {
            let bound = 1 + numbers.below(200);
            format!("w{}", numbers.below(bound))
        };
        (0..words).map(|_| word(self)).collect::<Vec<_>>().join(" ")
    }

    /// A vector of unit length.
    pub(crate) fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        let vector: Vec<f32> = (0..dimensions).map(|_| self.below(2_001) as f32 / 1_000.0 - 1.0).collect();
        unit(vector)
    }
}

pub(crate) fn unit(vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.iter().map(|x| x / length.max(f32::MIN_POSITIVE)).collect()
}

pub(crate) fn text_query(words: &str) -> TextQuery {
    TextQuery {
        scope: Scope::Everyone,
        filter: SearchFilter::default(),
        content_types: ContentType::ALL.into_iter().collect(),
        terms: query_terms(words),
        weights: Vec::new(),
        required: Vec::new(),
        phrases: Vec::new(),
        tools: Vec::new(),
        limit: 10_000,
    }
}

/// A query for texts with a phrase.
pub(crate) fn phrase_query(typed: &str) -> TextQuery {
    let mut query = text_query("");
    let (mut phrase, mut analyzer) = (TermPhrase::default(), Analyzer::new());
    let mut tokens = analyzer.query_tokens(typed);
    while tokens.advance() {
        let term = query.terms.iter().position(|term| term == tokens.term()).unwrap_or_else(|| {
            query.terms.push(tokens.term().to_owned());
            query.terms.len() - 1
        });
        phrase.push(term, tokens.place());
        query.required.push(vec![term]);
    }
    query.phrases.push(phrase);
    query
}

pub(crate) fn vector_query(vector: Vec<f32>) -> VectorQuery {
    VectorQuery {
        scope: Scope::Everyone,
        filter: SearchFilter::default(),
        content_types: ContentTypes::embedded(),
        tools: Vec::new(),
        turns: false,
        vector,
        generation: 0,
        limit: 10,
    }
}

fn admits(state: &State, scope: &Scope, filter: &SearchFilter, place: &Place) -> bool {
    let session = state.session(place);
    scope.allows(session) && filter.sessions.admits(session)
}

/// All matches of a text query, best first.
pub(crate) fn text_model(state: &State, query: &TextQuery) -> Vec<TextHit> {
    let mut analyzer = Analyzer::new();
    let mut statistics = query.no_statistics();
    let mut matches = Vec::new();
    for (key, message) in &state.messages {
        let raw = RawJson::new(message.raw.as_slice());
        for text in MessageLine::stored(&raw, message.role, SessionSource::default()).texts() {
            let counted = count_terms(&mut analyzer, &text.text, &query.terms);
            statistics.add_document(&counted);
            let admitted = admits(state, &query.scope, &query.filter, &message.place)
                && query.filter.admits_message(message.role, message.ts)
                && query.content_types.contains(text.content_type);
            if query.is_matched_by(&counted) && query.has_phrases_in(&mut analyzer, &text.text) && admitted {
                matches.push((*key, text.content_type, counted));
            }
        }
    }
    let hit =
        |(key, content_type, counted)| TextHit { key, content_type, score: score(&statistics, &counted) };
    let mut hits: Vec<_> = matches.into_iter().map(hit).collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
    hits.truncate(query.limit);
    hits
}

/// The nearest vectors, nearest first.
pub(crate) fn vector_model(state: &State, query: &VectorQuery) -> Vec<(u64, f32)> {
    let admitted = state.vectors_of(query.turns).iter().filter(|(_, vector)| {
        admits(state, &query.scope, &query.filter, &vector.place)
            && query.filter.admits_message(vector.role, vector.ts)
            && (query.turns || query.content_types.contains(vector.content_type))
    });
    let product = |vector: &[f32]| vector.iter().zip(&query.vector).map(|(a, b)| a * b).sum::<f32>();
    let mut hits: Vec<_> = admitted.map(|(key, vector)| (*key, product(&vector.vector))).collect();
    hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    hits.truncate(query.limit);
    hits
}

/// Searches and compares with the model: the same matches, descending scores, and if `scores`, the same scores.
pub(crate) fn check_text(
    index: &SearchIndex,
    store: &Store,
    query: &TextQuery,
    scores: bool,
) -> IndexAnswer<TextHit> {
    let answer = index.text_candidates(&mut store.rows(), query).unwrap();
    let expected = text_model(&store.state(), query);
    let matches = |hits: &[TextHit]| {
        let mut matches: Vec<_> = hits.iter().map(|hit| (hit.key, hit.content_type)).collect();
        matches.sort_unstable();
        matches
    };
    assert_eq!(matches(&answer.hits), matches(&expected), "{query:?}");
    assert!(answer.hits.is_sorted_by(|a, b| a.score >= b.score), "{:?}", answer.hits);
    if scores {
        for (hit, expected) in answer.hits.iter().zip(&expected) {
            assert!((hit.score - expected.score).abs() < expected.score * 1e-4, "{hit:?} {expected:?}");
        }
    }
    answer
}

/// Searches and compares with the model: the same similarities.
pub(crate) fn check_vectors(
    index: &SearchIndex,
    store: &Store,
    query: &VectorQuery,
) -> IndexAnswer<VectorHit> {
    let answer = index.vector_candidates(&mut store.rows(), query).unwrap();
    let expected = vector_model(&store.state(), query);
    assert_eq!(answer.hits.len(), expected.len(), "{query:?}");
    for (hit, (_, similarity)) in answer.hits.iter().zip(&expected) {
        assert!((hit.similarity - similarity).abs() < 1e-5, "{hit:?} {similarity}");
        assert_eq!(hit.vector, store.state().vectors_of(query.turns)[&hit.key].vector);
    }
    answer
}
