//! Searches for turns: the candidates of a search for messages, put together by turn, with summaries and the vectors of
//! turns.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{QueryVector, candidates_for, checked::ConditionCheck, is_about_vectors, judged_for};
use crate::{
    Result, Scope,
    backend::{Candidates, StorageBackendExt, SummaryQuery, TextCandidate, VectorCandidate, VectorQuery},
    model::{ContentType, ContentTypes, DamagedRow, Message, MessageRef, Role, SessionKey, TurnSummary},
    search::{
        EvidenceFinder, Fused, Judgements, MatchKind, RankedText, SEARCH_OPERATION, SearchFilter, SearchMode,
        SearchOptions, TurnResult, TurnResults, fuse,
    },
    storage::{
        search::text_plan::TextPlan,
        store::{StoreContext, StoredTurns, TranscriptSearch},
        turn_texts::TurnTexts,
        turns::Turn,
    },
    text::{
        Analyzer, QueryWords, Snippet, Snippets,
        bm25::{CollectionStatistics, count_terms, score},
    },
};

/// The texts of a turn that are searched.
const SIDES: [ContentType; 2] = [ContentType::UserQuery, ContentType::AssistantResponse];

/// A turn, by its session and its number.
type TurnKey = (SessionKey, u32);

/// What is known of a turn before its texts are read.
#[derive(Debug, Default)]
struct Candidate {
    /// The score of each message that matches.
    messages: BTreeMap<u32, f32>,
    /// The score of its summary.
    summary: Option<f32>,
    /// Its similarity, if it is in the vector list.
    similarity: Option<f32>,
}

impl Candidate {
    fn text_score(&self) -> f32 {
        self.messages.values().copied().fold(0.0, f32::max) + self.summary.unwrap_or_default()
    }
}

/// A turn whose texts were read.
struct ReadTurn {
    turn: Turn,
    message_ref: MessageRef,
    text_score: Option<f32>,
    similarity: Option<f32>,
}

impl TranscriptSearch<'_> {
    /// Finds turns: by words in the user's text, the assistant's last text and the summary, and by the vectors of
    /// turns. Both lists are fused as those of a search for messages.
    ///
    /// Without an embedding provider, or without vectors to compare with, a hybrid search runs as full text and says so
    /// in the notices. Options that are about single messages, such as `explain`, are ignored.
    ///
    /// # Errors
    ///
    /// As [`Self::search_transcripts`].
    pub async fn search_turns(self, scope: &Scope, options: &SearchOptions) -> Result<TurnResults> {
        options.validate()?;
        let sides: ContentTypes =
            SIDES.into_iter().filter(|side| options.content_types.contains(*side)).collect();
        // A turn has no other texts; the options are invalid if none is left.
        let options = options.clone().with_content_types(sides);
        options.validate()?;
        let words = QueryWords::of(&options.query);
        let plan = self.text_plan(&options, &words).await?;
        let (texts, (mode, vector, notice)) = tokio::try_join!(
            self.text_list(scope, &options, &plan, ConditionCheck::First),
            self.turn_query(&options)
        )?;
        let Candidates { items: nearest, notice: of_vectors, .. } =
            self.nearest_turns(scope, &options, &vector).await?;
        let mut notices = self.notices(mode, notice.or(of_vectors), texts.notice);
        notices.extend(plan.notices.iter().cloned());
        let summaries = match mode {
            SearchMode::Semantic => Vec::new(),
            _ => self.matching_summaries(scope, &options, &plan, &texts.statistics).await?,
        };
        if nearest.is_empty() && !vector.vector.is_empty() && mode != SearchMode::FullText {
            notices.push("no turn has a vector yet; run `embeddings backfill --turns`".to_owned());
        }
        let mut damaged = Vec::new();
        let candidates = self.by_turn(texts.items, nearest, summaries, &options.filter, &mut damaged).await?;
        let wanted = judged_for(&options, &words).max(3 * options.limit);
        let turns = self.read_turns_of(leading(candidates, wanted), &options).await?;
        let weights: Vec<f32> = (0..words.terms().len()).map(|term| texts.statistics.idf(term)).collect();
        let ranked = self.rank(&turns, &words, &weights);
        let floor = options.min_similarity.or(self.fusion_weights().similarity_floor);
        let results = shown(self.store, turns, ranked, &words, &plan, (&options, floor))?;
        Ok(TurnResults { mode, notices, results, damaged })
    }

    /// The vector of the query, with the mode that can run and the reason if it is not the requested one.
    async fn turn_query(self, options: &SearchOptions) -> Result<(SearchMode, QueryVector, Option<String>)> {
        if options.is_about_words() {
            return Ok((SearchMode::FullText, QueryVector::default(), None));
        }
        if options.query.trim().is_empty() {
            return Ok((options.mode, QueryVector::default(), None));
        }
        match (self.query_vector(&options.query).await, options.mode) {
            (Ok(vector), mode) => Ok((mode, vector.unwrap_or_default(), None)),
            (Err(error), SearchMode::Hybrid) if is_about_vectors(&error) => {
                let notice = format!("searched by words only: {error}");
                Ok((SearchMode::FullText, QueryVector::default(), Some(notice)))
            }
            (Err(error), _) => Err(error.with_operation(SEARCH_OPERATION)),
        }
    }

    async fn nearest_turns(
        self,
        scope: &Scope,
        options: &SearchOptions,
        asked: &QueryVector,
    ) -> Result<Candidates<VectorCandidate>> {
        // What a condition asks can be compared only with the words of a turn. A vector of zeros is near to nothing.
        if !options.conditions.is_empty() || asked.vector.iter().all(|x| *x == 0.0) {
            return Ok(Candidates::new(Vec::new()));
        }
        let query = VectorQuery {
            scope: scope.clone(),
            filter: SearchFilter { role: None, ..options.filter.clone() },
            content_types: ContentTypes::NONE,
            tools: Vec::new(),
            turns: true,
            vector: asked.vector.clone(),
            generation: asked.generation,
            limit: candidates_for(options),
        };
        let mut found = self.store.backend.vector_candidates(&query).await?;
        // The text of a turn without words that the model knows has a vector of zeros too.
        found.items.retain(|turn| turn.vector.iter().any(|x| *x != 0.0));
        Ok(found)
    }

    /// The summaries that match, with their BM25 scores by the statistics of all texts.
    async fn matching_summaries(
        self,
        scope: &Scope,
        options: &SearchOptions,
        plan: &TextPlan,
        statistics: &CollectionStatistics,
    ) -> Result<Vec<(TurnSummary, f32)>> {
        if plan.terms.is_empty() || !options.conditions.is_empty() {
            return Ok(Vec::new());
        }
        let mut statistics = statistics.clone();
        statistics.weights.clone_from(&plan.weights);
        let mut analyzer = Analyzer::looking_for(&plan.terms);
        let mut query = SummaryQuery::new(scope.clone()).with_filter(options.filter.sessions.clone());
        let mut found = Vec::new();
        loop {
            let page = self.store.backend.list_summaries(&query).await?;
            let Some(last) = page.last() else { return Ok(found) };
            query.after = Some(last.message_ref());
            for summary in page {
                let terms = count_terms(&mut analyzer, &summary.text, &plan.terms);
                if terms.matches() {
                    let score = score(&statistics, &terms);
                    found.push((summary, score));
                }
            }
        }
    }

    /// Puts the candidates of all lists together by turn.
    async fn by_turn(
        self,
        texts: Vec<TextCandidate>,
        nearest: Vec<VectorCandidate>,
        summaries: Vec<(TurnSummary, f32)>,
        filter: &SearchFilter,
        damaged: &mut Vec<DamagedRow>,
    ) -> Result<HashMap<TurnKey, Candidate>> {
        let of_texts = texts.iter().map(|text| text.message_ref.clone());
        let of_turns = nearest.iter().map(|turn| turn.message_ref.clone());
        let of_summaries = summaries.iter().map(|(summary, _)| summary.message_ref());
        let places: BTreeSet<MessageRef> = of_texts.chain(of_turns).chain(of_summaries).collect();
        let read = self.store.readable_messages_at(places.into_iter().collect()).await?;
        damaged.extend(read.damaged);
        let messages: HashMap<MessageRef, Message> =
            read.rows.into_iter().map(|message| (message.message_ref(), message)).collect();
        let turn_of = |message: &Message| Some((message.message_ref().session, message.turn?));
        let mut turns: HashMap<TurnKey, Candidate> = HashMap::new();
        for TextCandidate { message_ref, score, .. } in texts {
            let Some(key) = messages.get(&message_ref).and_then(turn_of) else { continue };
            let best = turns.entry(key).or_default().messages.entry(message_ref.sequence).or_default();
            *best = best.max(score);
        }
        for VectorCandidate { message_ref, similarity, .. } in nearest {
            let Some(key) = messages.get(&message_ref).and_then(turn_of) else { continue };
            // The nearest come first.
            turns.entry(key).or_default().similarity.get_or_insert(similarity);
        }
        for (summary, score) in summaries {
            let Some(message) = messages.get(&summary.message_ref()) else { continue };
            if filter.admits_message(message.role, message.ts)
                && message.digest == summary.digest
                && let Some(key) = turn_of(message)
            {
                turns.entry(key).or_default().summary = Some(score);
            }
        }
        Ok(turns)
    }

    /// Reads the texts of turns. Only the two sides and the summary of a turn count: a turn of which other messages
    /// match is left out, unless its vector is near.
    async fn read_turns_of(
        self,
        mut candidates: BTreeMap<SessionKey, BTreeMap<u32, Candidate>>,
        options: &SearchOptions,
    ) -> Result<Vec<ReadTurn>> {
        let mut summaries = HashMap::new();
        for key in candidates.keys() {
            summaries.insert(key.clone(), self.store.summaries_of(key).await?);
        }
        let numbers = candidates.iter().map(|(key, of)| (key.clone(), of.keys().copied().collect()));
        let texts = StoredTurns::new(self.store).texts_of_turns(numbers.collect::<Vec<_>>()).await?;
        let mut read = Vec::new();
        for texts in texts {
            let TurnTexts { user, assistant, .. } = &texts;
            let key = user.message_ref().session;
            let candidate = candidates.get_mut(&key).zip(user.turn).and_then(|(of, turn)| of.remove(&turn));
            let (Some(candidate), Some(summaries)) = (candidate, summaries.get(&key)) else { continue };
            let assistant = assistant.as_ref().and_then(|(of, _)| candidate.messages.get(&of.sequence));
            let scores = [candidate.messages.get(&user.sequence), assistant, candidate.summary.as_ref()];
            let text_score = scores.into_iter().flatten().copied().reduce(|sum, score| sum + score);
            let is_near = candidate
                .similarity
                .is_some_and(|similarity| options.min_similarity.is_none_or(|least| similarity >= least));
            let message_ref = user.message_ref();
            let summary = summaries.get(&user.sequence);
            let Some(turn) = Turn::new(texts, summary) else { continue };
            if text_score.is_some() || is_near {
                let similarity = candidate.similarity.filter(|_| is_near);
                read.push(ReadTurn { turn, message_ref, text_score, similarity });
            }
        }
        Ok(read)
    }

    /// Fuses the two lists, as those of messages.
    fn rank(self, turns: &[ReadTurn], words: &QueryWords, weights: &[f32]) -> Vec<Fused> {
        let mut finder = EvidenceFinder::new(words);
        let (mut texts, mut nearest) = (Vec::new(), Vec::new());
        for ReadTurn { turn, message_ref, text_score, similarity } in turns {
            if let Some(text_score) = text_score {
                let evidence = finder.find(&whole(turn));
                texts.push(RankedText {
                    candidate: TextCandidate {
                        message_ref: message_ref.clone(),
                        content_type: ContentType::UserQuery,
                        score: *text_score,
                    },
                    score: evidence.score(*text_score, weights),
                });
            }
            nearest.extend(similarity.map(|similarity| VectorCandidate {
                message_ref: message_ref.clone(),
                content_type: ContentType::UserQuery,
                span_start: 0,
                span_end: 0,
                similarity,
                vector: Vec::new(),
            }));
        }
        texts.sort_by(|a, b| b.score.total_cmp(&a.score));
        VectorCandidate::keep_nearest(&mut nearest, turns.len());
        fuse(texts, nearest, &self.fusion_weights(), &Judgements::default())
    }
}

/// The texts of a turn in one text.
fn whole(turn: &Turn) -> String {
    let assistant = turn.assistant.iter().map(|side| side.text.as_str());
    let parts: Vec<&str> =
        std::iter::once(turn.user.text.as_str()).chain(assistant).chain(turn.summary.as_deref()).collect();
    parts.join("\n\n")
}

/// The side with the most matched words. A summary stands for the answer.
fn best_side<'a>(
    user: &'a Snippet,
    summary: Option<&'a Snippet>,
    assistant: Option<&'a Snippet>,
) -> (ContentType, &'a Snippet) {
    let answers = [summary, assistant].into_iter().flatten();
    let answers = answers.map(|snippet| (ContentType::AssistantResponse, snippet));
    answers.fold((ContentType::UserQuery, user), |best, side| {
        if side.1.highlights.len() > best.1.highlights.len() { side } else { best }
    })
}

/// The best candidates of each list, by session.
fn leading(
    candidates: HashMap<TurnKey, Candidate>,
    wanted: usize,
) -> BTreeMap<SessionKey, BTreeMap<u32, Candidate>> {
    let mut by_words: Vec<(f32, &TurnKey)> =
        candidates.iter().map(|(key, of)| (of.text_score(), key)).filter(|(score, _)| *score > 0.0).collect();
    let mut by_meaning: Vec<(f32, &TurnKey)> =
        candidates.iter().filter_map(|(key, of)| Some((of.similarity?, key))).collect();
    for list in [&mut by_words, &mut by_meaning] {
        list.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.cmp(other)));
        list.truncate(wanted);
    }
    let chosen: std::collections::HashSet<TurnKey> =
        by_words.into_iter().chain(by_meaning).map(|(_, key)| key.clone()).collect();
    let mut leading: BTreeMap<SessionKey, BTreeMap<u32, Candidate>> = BTreeMap::new();
    for ((session, turn), candidate) in candidates.into_iter().filter(|(key, _)| chosen.contains(key)) {
        leading.entry(session).or_default().insert(turn, candidate);
    }
    leading
}

/// The results, best first. A turn without a word of the query counts only from this similarity on.
fn shown(
    store: &StoreContext,
    turns: Vec<ReadTurn>,
    ranked: Vec<Fused>,
    words: &QueryWords,
    plan: &TextPlan,
    (options, floor): (&SearchOptions, Option<f32>),
) -> Result<Vec<TurnResult>> {
    let mut turns: HashMap<MessageRef, ReadTurn> =
        turns.into_iter().map(|turn| (turn.message_ref.clone(), turn)).collect();
    let mut finder = EvidenceFinder::new(words);
    let mut snippets = Snippets::new(&plan.terms);
    let mut results = Vec::new();
    for fused in ranked {
        if results.len() >= options.limit {
            break;
        }
        let Some(ReadTurn { turn, text_score, similarity, .. }) = turns.remove(&fused.message_ref) else {
            continue;
        };
        let turn = store.masked_turn(turn)?;
        let evidence = finder.find(&whole(&turn));
        let match_kind = match evidence.kind() {
            // A word that a prefix or a mistyped word stands for.
            MatchKind::Similar if text_score.is_some() => MatchKind::Words,
            kind => kind,
        };
        let is_far = similarity.zip(floor).is_some_and(|(similarity, floor)| similarity < floor);
        if match_kind == MatchKind::Similar && is_far {
            continue;
        }
        let mut cut =
            |text: &str, of: ContentType| -> Snippet { snippets.cut(text, of, None, options.snippet_chars) };
        let mut answer = |text: &str| cut(text, ContentType::AssistantResponse);
        let assistant = turn.assistant.as_ref().map(|side| answer(&side.text));
        let summary = turn.summary.as_deref().map(&mut answer);
        let user = cut(&turn.user.text, ContentType::UserQuery);
        let (content_type, best) = best_side(&user, summary.as_ref(), assistant.as_ref());
        let Snippet { text: snippet, highlights } = best.clone();
        results.push(TurnResult {
            sequence: turn.user.sequence,
            turn: turn.turn,
            role: Role::User,
            content_type,
            user_message_id: turn.user.message_id,
            assistant_message_id: turn.assistant.map(|side| side.message_id),
            ts: turn.ts,
            ts_estimated: turn.ts_estimated,
            ts_source: turn.ts_source,
            score: fused.relevance(),
            match_kind,
            words: evidence.typed(words),
            source: fused.source,
            text_score,
            similarity,
            snippet,
            highlights,
            user,
            assistant,
            summary,
            user_id: turn.user_id,
            session_id: turn.session_id,
            project: turn.project,
        });
    }
    Ok(results)
}
