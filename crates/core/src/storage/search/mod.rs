//! Search: ranks, judges and diversifies the candidates of the backend, and reads the results.

mod all_words;
mod checked;
mod commands;
mod judging;
mod matches;
mod newest;
mod originals;
mod reading;
mod results;
mod text_plan;
mod titles;
mod touched;
mod turns;
mod vector_search;
mod vectors_of_texts;

pub use matches::AllMatches;
pub use touched::TouchedSessions;

use std::collections::HashSet;

use self::{
    checked::ConditionCheck,
    text_plan::{Correction, TextPlan, did_you_mean},
};
use super::{
    embed::{other_space, with_address},
    store::{StoredVectors, TranscriptSearch},
};
use crate::{
    Error, ErrorKind, Result, Scope,
    backend::{Candidates, TextCandidate, VectorCandidate, VectorQuery},
    embedding::{EmbeddingPurpose, ModelStrength},
    model::{ContentType, EmbeddingSpace, MessageRef, VectorText},
    search::{
        Fused, FusionWeights, MissingVectors, RankedText, SEARCH_OPERATION, SearchExplanation, SearchFilter,
        SearchMode, SearchOptions, SearchResults, SearchedTerm, diversify, fuse, most_relevant,
    },
    text::QueryWords,
};

use judging::Judged;
pub(super) use reading::ReadMessages;
pub(super) use results::{PlannedQuery, Shown};

/// Candidates to request from the backend per result: enough for diversification.
pub(super) const CANDIDATES_A_RESULT: usize = 5;
/// From this number of results on, the order of further ones matters less, and fewer candidates are requested for each.
const MANY_RESULTS: usize = 100;
/// Candidates to request per result beyond [`MANY_RESULTS`].
const CANDIDATES_A_FURTHER_RESULT: usize = 2;
/// The minimum number of candidates of each list. A session is known by several of its messages.
const LEAST_CANDIDATES: usize = 250;
/// The minimum number of texts with a phrase whose vectors are compared in a search by meaning.
const LEAST_COMPARED: usize = 2_000;
/// Candidates per result from which maximal marginal relevance chooses.
const POOL_A_RESULT: usize = 3;
/// The minimum number of candidates whose texts are read to judge them.
const LEAST_JUDGED: usize = 30;
/// The same, if the query contains an identifier.
const LEAST_JUDGED_FOR_IDENTIFIERS: usize = 100;

/// The vector of a query, and the generation of vectors to compare it with. Empty if there are no vectors to compare
/// with.
#[derive(Debug, Default)]
struct QueryVector {
    vector: Vec<f32>,
    generation: u32,
}

/// The text candidates, with the terms that they were found by.
struct Corrected {
    texts: Candidates<TextCandidate>,
    plan: TextPlan,
    corrections: Vec<Correction>,
}

impl TranscriptSearch<'_> {
    /// Finds messages.
    ///
    /// Without an embedding provider, or with vectors of another model in the store, a hybrid search runs as full text
    /// and says so in the notices. If nothing has the phrases of a query that has other words too, all its words are
    /// searched: a title in quotes is part of many questions.
    ///
    /// # Errors
    ///
    /// `Validation` if an option is out of range; `Unsupported` or `Embedding` if semantic search can't run; errors
    /// of the backend.
    pub async fn search_transcripts(self, scope: &Scope, options: &SearchOptions) -> Result<SearchResults> {
        options.validate()?;
        let found = self.search(scope, options).await?;
        let relaxed = options.without_phrases().filter(|_| found.results.is_empty());
        let Some(relaxed) = relaxed else { return Ok(found) };
        let mut found = self.search(scope, &relaxed).await?;
        let phrases = options.conditions.phrases.join("\", \"");
        found.notices.push(format!("no message contains \"{phrases}\"; searched for its words"));
        Ok(found)
    }

    async fn search(self, scope: &Scope, options: &SearchOptions) -> Result<SearchResults> {
        let words = QueryWords::of(&options.query);
        let plan = self.text_plan(options, &words).await?;
        let conditions = &options.conditions;
        if plan.is_scan {
            return self.search_newest(scope, options, plan).await;
        }
        if !conditions.is_empty() && conditions.are_mostly_met() {
            let mut reading = ReadMessages::checking(options);
            let planned = (&words, plan.clone(), ConditionCheck::WhenRead);
            let found = self.search_planned(scope, options, planned, &mut reading).await?;
            if found.results.len() >= options.limit || !reading.has_dropped_any() {
                return Ok(found);
            }
        }
        let planned = (&words, plan, ConditionCheck::First);
        self.search_planned(scope, options, planned, &mut ReadMessages::default()).await
    }

    async fn search_planned(
        self,
        scope: &Scope,
        options: &SearchOptions,
        (words, plan, checking): (&QueryWords, TextPlan, ConditionCheck),
        reading: &mut ReadMessages,
    ) -> Result<SearchResults> {
        let (texts, (mode, vector, mut vectors)) = tokio::try_join!(
            self.text_list(scope, options, &plan, checking),
            self.nearest_list(scope, options, checking)
        )?;
        let Corrected { mut texts, plan, corrections } =
            self.corrected(scope, options, (texts, plan), checking).await?;
        if !options.conditions.phrases.is_empty() {
            vectors.items = self.vectors_of_texts(&texts.items, &vector, options).await?;
        }
        if options.mode == SearchMode::Semantic && !options.is_about_words() {
            texts.items.clear();
        }
        let unreadable = self.unreadable_vectors(scope, options, &vector, &vectors).await?;
        let examined = texts.examined;
        let mut notices = self.notices(mode, vectors.notice, texts.notice);
        notices.extend(unreadable);
        notices.extend(plan.notices.iter().cloned());

        let explanation = options.explain.then(|| explanation(words, texts.items.len(), vectors.items.len()));
        let weights = self.fusion_weights();
        let ranked = texts.items.into_iter().map(RankedText::from).collect::<Vec<_>>();
        let leading = most_relevant(&ranked, &vectors.items, &weights, judged_for(options, words));
        let judging = self.judge(ranked, leading, words, &texts.statistics, reading);
        let (judged, missing) = tokio::join!(judging, self.missing_of(mode, scope));
        let mut judged = judged?;
        self.lift_commands(options, &mut judged, reading).await?;
        self.add_titled(scope, options, words, &mut judged, reading).await?;
        let Judged { mut texts, judgements, .. } = judged;
        texts.retain(|text| !reading.has_dropped(&text.candidate.message_ref));
        vectors.items.retain(|chunk| !reading.has_dropped(&chunk.message_ref));
        let mut ranked = fuse(texts, vectors.items, &weights, &judgements);
        let lambda = if mode == SearchMode::FullText { 1.0 } else { options.mmr_lambda };
        ranked.truncate(options.limit * POOL_A_RESULT);
        self.complete_vectors(&mut ranked, &vector).await?;
        let floor = options.min_similarity.or(weights.similarity_floor);
        let picked = diversify(ranked, lambda, options.limit * POOL_A_RESULT);
        let planned = PlannedQuery { words, terms: &plan.terms, floor, merges_repeats: true, options };
        let Shown { results, nearest } = self.show(picked, planned, reading).await?;
        let nearest = nearest.filter(|_| results.is_empty());
        notices.extend(did_you_mean(&corrections, &results));
        let damaged = std::mem::take(&mut reading.damaged);
        let missing_vectors = match missing {
            // Not what was searched for.
            Err(error) if error.kind() == ErrorKind::Damaged => {
                notices.push(format!("messages without vectors could not be counted: {error}"));
                None
            }
            counted => counted?,
        };
        Ok(SearchResults { mode, notices, missing_vectors, examined, results, nearest, explanation, damaged })
    }

    /// A notice if no vector was found although the store has some: they can't be read. Every vector is a candidate,
    /// however far it is, unless the search is restricted.
    async fn unreadable_vectors(
        self,
        scope: &Scope,
        options: &SearchOptions,
        asked: &QueryVector,
        found: &Candidates<VectorCandidate>,
    ) -> Result<Option<String>> {
        let has_all_types = ContentType::EMBEDDED.into_iter().all(|of| options.content_types.contains(of));
        let is_restricted = options.filter != SearchFilter::default()
            || !has_all_types
            || options.min_similarity.is_some()
            || !options.conditions.is_empty();
        let has_searched = asked.vector.iter().any(|x| *x != 0.0);
        if !found.items.is_empty() || found.notice.is_some() || is_restricted || !has_searched {
            return Ok(None);
        }
        let counted = match self.store.backend.count_vectors(scope).await {
            Err(error) if error.kind() == ErrorKind::Damaged => None,
            counts => {
                let stored = counts?.generations.get(&asked.generation).map_or(0, |counts| counts.vectors);
                if stored == 0 {
                    return Ok(None);
                }
                Some(stored)
            }
        };
        let vectors = counted.map_or_else(|| "the vectors".to_owned(), |count| format!("{count} vectors"));
        Ok(Some(format!("{vectors} can't be read: run `verify --repair`, or `salvage` if that fails")))
    }

    /// As [`Self::missing_vectors`], if the search uses vectors.
    async fn missing_of(self, mode: SearchMode, scope: &Scope) -> Result<Option<MissingVectors>> {
        match mode {
            SearchMode::FullText => Ok(None),
            SearchMode::Semantic | SearchMode::Hybrid => self.missing_vectors(scope).await,
        }
    }

    /// Notices for the user about how the results were found. Each cause gives one notice: a read-only store, or an
    /// index that was missing for both words and meaning.
    pub(super) fn notices(
        self,
        ran: SearchMode,
        of_vectors: Option<String>,
        of_texts: Option<String>,
    ) -> Vec<String> {
        let read_only =
            self.store.backend.info().read_only.map(|reason| format!("the store is read-only: {reason}"));
        let is_one = read_only.is_some() || ran == SearchMode::Hybrid;
        let notices: Vec<String> = read_only.into_iter().chain(of_vectors).chain(of_texts).collect();
        if is_one && notices.len() > 1 { vec![notices.join("; ")] } else { notices }
    }

    /// The number of messages in `scope` that a search by meaning can't find yet; `None` if it can find all.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn missing_vectors(self, scope: &Scope) -> Result<Option<MissingVectors>> {
        let missing = self.store.backend.missing_vectors(scope).await?;
        Ok((missing.messages > 0).then_some(missing))
    }

    /// The candidates by meaning, with the vector of the query and the mode that can run.
    async fn nearest_list(
        self,
        scope: &Scope,
        options: &SearchOptions,
        checking: ConditionCheck,
    ) -> Result<(SearchMode, QueryVector, Candidates<VectorCandidate>)> {
        let none = |notice| Candidates::new(Vec::new()).with_notice(notice);
        if options.is_about_words() {
            return Ok((SearchMode::FullText, QueryVector::default(), none(None)));
        }
        if options.query.trim().is_empty() {
            return Ok((options.mode, QueryVector::default(), none(None)));
        }
        match (self.query_vector(&options.query).await, options.mode) {
            (Ok(None), mode) => Ok((mode, QueryVector::default(), none(None))),
            (Ok(Some(vector)), mode) => {
                let list = self.vector_list(scope, options, &vector, checking).await?;
                Ok((mode, vector, list))
            }
            (Err(error), SearchMode::Hybrid) if is_about_vectors(&error) => {
                let notice = format!("searched by words only: {error}");
                Ok((SearchMode::FullText, QueryVector::default(), none(Some(notice))))
            }
            (Err(error), _) => Err(error.with_operation(SEARCH_OPERATION)),
        }
    }

    /// The vector of the query; `None` if the store has no vectors to compare with.
    async fn query_vector(self, query: &str) -> Result<Option<QueryVector>> {
        let Some(provider) = &self.store.embedding else {
            return Err(Error::new(ErrorKind::Unsupported, "there is no embedding provider"));
        };
        let generations = self.store.generations().await?;
        let Some(held) = &generations.current else { return Ok(None) };
        if held.space != *provider.space() {
            if generations.next.is_none() && !StoredVectors::new(self.store).has_vectors(&generations).await?
            {
                return Ok(None);
            }
            return Err(other_space(&generations, provider.space()));
        }
        let query = match self.store.redactor_for(provider.as_ref()) {
            Some(redactor) => redactor.mask(query)?.text.into_owned(),
            None => query.to_owned(),
        };
        let mut made = provider.embed(&[query], EmbeddingPurpose::Query).await?;
        match made.pop() {
            Some(vector) if made.is_empty() && is_of(&held.space, &vector) => {
                Ok(Some(QueryVector { vector, generation: held.number }))
            }
            _ => {
                let error =
                    Error::new(ErrorKind::Embedding, "the provider returned no usable vector for the query");
                Err(with_address(provider.as_ref(), error))
            }
        }
    }

    async fn text_list(
        self,
        scope: &Scope,
        options: &SearchOptions,
        plan: &TextPlan,
        checking: ConditionCheck,
    ) -> Result<Candidates<TextCandidate>> {
        if !options.needs_words() {
            return Ok(Candidates::new(Vec::new()));
        }
        let is_about_meaning = options.mode == SearchMode::Semantic && !options.is_about_words();
        let least = if is_about_meaning { LEAST_COMPARED } else { 0 };
        self.planned_texts(scope, options, plan, candidates_for(options).max(least), checking).await
    }

    /// If no text contains a word of the query, searches for words that differ by a typo.
    async fn corrected(
        self,
        scope: &Scope,
        options: &SearchOptions,
        (texts, plan): (Candidates<TextCandidate>, TextPlan),
        checking: ConditionCheck,
    ) -> Result<Corrected> {
        let as_typed = Corrected { texts, plan, corrections: Vec::new() };
        let is_about_meaning = options.mode == SearchMode::Semantic;
        if !as_typed.texts.items.is_empty() || is_about_meaning || options.conditions.exact.is_some() {
            return Ok(as_typed);
        }
        let corrections = self.corrections(&options.query).await?;
        if corrections.is_empty() {
            return Ok(as_typed);
        }
        let plan = as_typed.plan.clone().with_corrections(&corrections);
        let texts = self.text_list(scope, options, &plan, checking).await?;
        Ok(if texts.items.is_empty() { as_typed } else { Corrected { texts, plan, corrections } })
    }

    async fn vector_list(
        self,
        scope: &Scope,
        options: &SearchOptions,
        asked: &QueryVector,
        checking: ConditionCheck,
    ) -> Result<Candidates<VectorCandidate>> {
        // A vector of zeros: the model knows no word of the query, so nothing is near it. With phrases, those of the texts
        // that have them are compared.
        if asked.vector.iter().all(|x| *x == 0.0) || !options.conditions.phrases.is_empty() {
            return Ok(Candidates::new(Vec::new()));
        }
        let query = VectorQuery {
            scope: scope.clone(),
            filter: options.filter.clone(),
            content_types: options.content_types,
            tools: options.conditions.used_tools(),
            turns: false,
            vector: asked.vector.clone(),
            generation: asked.generation,
            limit: candidates_for(options),
        };
        // As many of the candidates as for few results: with more, several times as many chunks would be read.
        let most = query.limit * POOL_A_RESULT / CANDIDATES_A_RESULT;
        let messages = (options.limit * POOL_A_RESULT).min(most);
        match checking {
            ConditionCheck::First => self.checked_chunks(query, messages, options).await,
            ConditionCheck::WhenRead => self.nearest_chunks(query, messages, options.min_similarity).await,
        }
    }

    /// The chunks nearest to the vector of the query, from enough different messages if there are as many: chunks of a
    /// few long messages could fill the list.
    pub(super) async fn nearest_chunks(
        self,
        mut query: VectorQuery,
        messages: usize,
        min_similarity: Option<f32>,
    ) -> Result<Candidates<VectorCandidate>> {
        loop {
            let mut found = self.store.backend.vector_candidates(&query).await?;
            let too_far = |last: &VectorCandidate| min_similarity > Some(last.similarity);
            let complete = found.items.len() < query.limit || found.items.last().is_some_and(too_far);
            found.items.retain(|chunk| min_similarity.is_none_or(|least| chunk.similarity >= least));
            let different: HashSet<&MessageRef> =
                found.items.iter().map(|chunk| &chunk.message_ref).collect();
            if complete || different.len() >= messages {
                return Ok(found);
            }
            query.limit *= 4;
        }
    }

    fn fusion_weights(self) -> FusionWeights {
        let strength =
            self.store.embedding.as_ref().map_or(ModelStrength::Static, |provider| provider.strength());
        FusionWeights::of(strength)
    }

    /// Adds the vectors of candidates that are only in the text list, so that they can be compared.
    async fn complete_vectors(self, ranked: &mut [Fused], query: &QueryVector) -> Result<()> {
        let lacking: Vec<(MessageRef, VectorText)> = ranked
            .iter()
            .filter(|fused| fused.vector.is_none())
            .map(|fused| (fused.message_ref.clone(), fused.content_type.into()))
            .collect();
        let mut nearest = self.nearest_stored(lacking, query).await?;
        for fused in ranked.iter_mut().filter(|fused| fused.vector.is_none()) {
            if let Some((similarity, record)) = nearest.remove(&fused.message_ref) {
                fused.vector = Some(record.vector);
                fused.similarity = Some(similarity);
            }
        }
        Ok(())
    }
}

/// The number of candidates to request for each list: a candidate that is low in one may be high in the other.
fn candidates_for(options: &SearchOptions) -> usize {
    let few = options.limit.min(MANY_RESULTS) * CANDIDATES_A_RESULT;
    (few + options.limit.saturating_sub(MANY_RESULTS) * CANDIDATES_A_FURTHER_RESULT).max(LEAST_CANDIDATES)
}

/// The number of candidates to judge: those that may become results, and some that may move up when others move down.
/// The words of an identifier are common, so more texts contain them.
fn judged_for(options: &SearchOptions, words: &QueryWords) -> usize {
    let least = if words.identifiers().is_empty() { LEAST_JUDGED } else { LEAST_JUDGED_FOR_IDENTIFIERS };
    (options.limit + options.limit.min(MANY_RESULTS) / 2).max(least)
}

fn explanation(words: &QueryWords, texts: usize, chunks: usize) -> SearchExplanation {
    let terms = words.terms().iter().zip(words.weights());
    SearchExplanation {
        terms: terms.map(|(term, weight)| SearchedTerm { term: term.clone(), weight: *weight }).collect(),
        text_candidates: texts,
        vector_candidates: chunks,
    }
}

fn is_about_vectors(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Embedding | ErrorKind::Authentication)
}

/// Whether `vector` can be compared with vectors of `space`.
fn is_of(space: &EmbeddingSpace, vector: &[f32]) -> bool {
    vector.len() == space.dimensions && vector.iter().all(|x| x.is_finite())
}
