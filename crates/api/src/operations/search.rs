//! Finds messages.

use std::collections::HashMap;

use amplifier_session_core::{
    Scope,
    model::{DamagedRow, SessionId, SessionKey, UserId},
    search::{SearchExplanation, SearchFilter, SearchMode, SearchOptions, SearchResult, SearchResults},
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use super::is_zero;
use crate::{
    Api, ApiAnswer, ApiError, FoundKind, NearestMessage, Notice, Reach,
    budget::{AnswerLimits, Items, Portion},
    cut::{self, Truncated},
    groups::{self, HITS},
    incomplete::IncompleteReason,
    names::{ResultNames, key_of, names},
    query::{QueryRequest, ReadQuery, ResolvedQuery},
};

pub use crate::groups::FoundSession;

/// A search for messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchRequest {
    /// The query and its filters.
    #[serde(flatten)]
    pub query: QueryRequest,
    /// Maximum number of results, 1 to 1000; of sessions, if the results are grouped.
    pub limit: usize,
    /// The number of the best results that an earlier response had, and that this one does not have; of sessions, if the
    /// results are grouped. With `limit`, at most 1000.
    #[serde(skip_serializing_if = "is_zero")]
    pub skip: usize,
    /// Whether to group the results by session.
    pub by_session: bool,
    /// Maximum number of results of each session, if they are grouped.
    pub per_session: usize,
    /// Balance of relevance and diversity, 0 to 1; 1 is relevance only.
    pub mmr_lambda: f32,
    /// Minimum similarity of results found by meaning, -1 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_similarity: Option<f32>,
    /// Whether to explain the rank of each result.
    pub explain: bool,
    /// Whether results have complete messages.
    pub full: bool,
    /// The length of snippets in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet_chars: Option<usize>,
}

impl Default for SearchRequest {
    fn default() -> Self {
        let SearchOptions { limit, mmr_lambda, min_similarity, .. } = SearchOptions::new("");
        Self {
            query: QueryRequest::default(),
            limit,
            skip: 0,
            by_session: false,
            per_session: HITS,
            mmr_lambda,
            min_similarity,
            explain: false,
            full: false,
            snippet_chars: None,
        }
    }
}

impl SearchRequest {
    /// A search of the caller's own messages.
    #[must_use]
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: QueryRequest { query: query.into(), ..QueryRequest::default() }, ..Self::default() }
    }

    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`], or `Validation` for a value that is out of range.
    pub fn check(&self, now: &Zoned) -> Result<(), ApiError> {
        self.read(now, &mut Vec::new()).map(|_| ())
    }

    pub(crate) fn read(
        &self,
        now: &Zoned,
        notices: &mut Vec<Notice>,
    ) -> Result<(ReadQuery<'_>, SearchOptions), ApiError> {
        let mut read = ReadQuery::read(&self.query, now)?;
        let mut options = read
            .options(now, notices)?
            .with_limit(self.limit.saturating_add(self.skip))
            .with_mmr_lambda(self.mmr_lambda)
            .with_message(self.full)
            .with_explain(self.explain);
        options.min_similarity = self.min_similarity;
        if let Some(chars) = self.snippet_chars {
            options = options.with_snippet_chars(chars);
        }
        options.validate()?;
        Ok((read, options))
    }
}

/// Messages that were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchResponse {
    /// The mode of the search that was done.
    pub mode: SearchMode,
    /// Remarks in words. They are those of the notices that are about the search, so a face puts them in.
    pub notices: Vec<String>,
    /// The messages, best first. With `groups`, those that the groups contain.
    pub results: Vec<FoundMessage>,
    /// The same messages by session, if that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<FoundSession>>,
    /// If there are no results: the message nearest in meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<FoundMessage>,
    /// The terms and the number of candidates, if an explanation was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<SearchExplanation>,
    /// Results that do not fit into a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
    /// Messages that would be among the results, but can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
    /// Why something may be missing; empty if nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<IncompleteReason>,
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundMessage {
    /// Its address.
    pub address: String,
    /// The title of its session, if that can be read.
    pub title: Option<String>,
    /// The message, and why it was found.
    #[serde(flatten)]
    pub result: SearchResult,
    /// The part of the message's text that is shown, if it was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncated>,
}

impl Api<'_> {
    /// Finds messages by words, by meaning, or by both.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; errors of the store and the embedding provider.
    #[crate::compiled_here]
    pub async fn search(&self, request: &SearchRequest) -> Result<ApiAnswer<SearchResponse>, ApiError> {
        let mut notices = Vec::new();
        let query = self.resolved_query(request.read(self.now, &mut notices)?, &mut notices).await?;
        let ResolvedQuery { scope, options, .. } = &query;
        let mut counts = HashMap::new();
        let mut found = if request.by_session && options.lists_newest() {
            let found = self.newest_of_sessions(scope, options, request.per_session).await?;
            counts = self.counts_of_sessions(scope, options, &found.results).await?;
            found
        } else if request.by_session {
            self.messages_of_sessions(scope, options).await?
        } else {
            self.storage.search().search_transcripts(scope, options).await?
        };
        if request.by_session {
            notices.extend(groups::best_only(&found.results, options.limit));
        }
        if request.query.without_own_calls {
            let messages = self.leave_out_own_calls(scope, &mut found).await?;
            notices.extend((messages > 0).then_some(Notice::OwnCallsLeftOut { messages }));
        }
        self.remark(scope, options, &found, &mut notices).await?;
        let lacking = self.storage.search().words_not_together(scope, options, &found.results).await?;
        notices.extend(lacking.map(|words| Notice::NotTogether { words }));
        let shown = found.results.iter().chain(&found.nearest);
        let names = names(self.storage, scope, shown).await?;
        notices.extend(self.damaged_sessions(scope));
        let incomplete = IncompleteReason::of_results(options, &found);
        let mut response = self.response(request, (found, &counts), &names).await?;
        response.incomplete = incomplete;
        response.incomplete.extend(IncompleteReason::of_damage(&self.damaged_within(scope)));
        if response.results.is_empty() && response.damaged.is_empty() {
            let nearest = response.nearest.as_ref();
            let nearest = nearest.map(|found| NearestMessage::new(&found.result, found.address.clone()));
            self.found_nothing(&query, FoundKind::Message, nearest, &mut notices).await?;
        }
        Ok(ApiAnswer { response, notices })
    }

    /// The best messages of at least `options.limit` sessions, if they come from that many.
    async fn messages_of_sessions(
        &self,
        scope: &Scope,
        options: &SearchOptions,
    ) -> Result<SearchResults, ApiError> {
        let search = async |number| {
            let options = options.clone().with_limit(number);
            self.storage.search().search_transcripts(scope, &options).await
        };
        let [few, many] = groups::numbers(options.limit);
        let found = search(few).await?;
        if groups::are_enough(&found.results, few, options.limit) {
            return Ok(found);
        }
        Ok(search(many).await?)
    }

    /// The newest messages of the sessions that have the newest ones.
    async fn newest_of_sessions(
        &self,
        scope: &Scope,
        options: &SearchOptions,
        per_session: usize,
    ) -> Result<SearchResults, ApiError> {
        let (number, of_each) = groups::newest_numbers(options.limit, per_session);
        let options = options.clone().with_limit(number).with_most_of_session(of_each);
        Ok(self.storage.search().search_transcripts(scope, &options).await?)
    }

    /// How many messages match in each session of `results`.
    async fn counts_of_sessions(
        &self,
        scope: &Scope,
        options: &SearchOptions,
        results: &[SearchResult],
    ) -> Result<HashMap<SessionKey, usize>, ApiError> {
        let mut options = options.clone();
        options.filter.sessions.only = Some(results.iter().map(key_of).collect());
        let all = self.storage.search().all_matches(scope, &options).await?.unwrap_or_default();
        let mut counts = HashMap::new();
        for message in all.messages {
            *counts.entry(message.message_ref.session).or_default() += 1;
        }
        Ok(counts)
    }

    /// The options of a search, with everything that is looked up in the store: for a face that searches repeatedly.
    ///
    /// # Errors
    ///
    /// As [`Api::search`].
    #[crate::compiled_here]
    pub async fn search_options(
        &self,
        request: &SearchRequest,
    ) -> Result<ApiAnswer<SearchOptions>, ApiError> {
        let mut notices = Vec::new();
        let query = self.resolved_query(request.read(self.now, &mut notices)?, &mut notices).await?;
        Ok(ApiAnswer { response: query.options, notices })
    }

    /// Adds the notices of a search.
    pub(crate) async fn remark(
        &self,
        scope: &Scope,
        options: &SearchOptions,
        found: &SearchResults,
        notices: &mut Vec<Notice>,
    ) -> Result<(), ApiError> {
        notices.extend(found.notices.iter().map(|text| Notice::Search { text: text.clone() }));
        if let Some(missing) = found.missing_vectors {
            let is_filtered = options.filter != SearchFilter::default();
            // Vectors can be made only for the caller's own messages.
            let own = self.caller.scope(Reach::Own)?;
            let can_be_made = *scope == own || self.storage.search().missing_vectors(&own).await?.is_some();
            let (messages, of) = (missing.messages, missing.of);
            notices.push(Notice::MissingVectors { messages, of, is_filtered, can_be_made });
        }
        notices.extend(found.explanation.clone().map(|explanation| Notice::SearchedFor { explanation }));
        Ok(())
    }

    pub(super) async fn response(
        &self,
        request: &SearchRequest,
        (found, counts): (SearchResults, &HashMap<SessionKey, usize>),
        names: &ResultNames,
    ) -> Result<SearchResponse, ApiError> {
        let SearchResults { mode, results, nearest, explanation, damaged, .. } = found;
        let nearest = nearest.map(|nearest| FoundMessage::new(nearest, names));
        let mut response = SearchResponse {
            mode,
            notices: Vec::new(),
            results: Vec::new(),
            groups: None,
            nearest,
            explanation,
            left_out: None,
            damaged,
            incomplete: Vec::new(),
        };
        if request.by_session {
            let (results, groups) = self
                .by_session((&results, counts), request, names, |result| {
                    FoundMessage::new(result.clone(), names)
                })
                .await?;
            (response.results, response.groups) = (results, Some(groups));
        } else {
            response.results = results
                .into_iter()
                .skip(request.skip)
                .map(|result| FoundMessage::new(result, names))
                .collect();
        }
        Ok(response)
    }
}

impl SearchResponse {
    /// The items that a budget counts: the sessions if results are grouped, otherwise the messages.
    #[must_use]
    pub fn items(&self) -> Items {
        let count = self.groups.as_ref().map_or(self.results.len(), Vec::len);
        Items { count, can_be_cut: true }
    }

    /// A portion of the response within the limits. The last session has only its best message if it must be cut.
    #[must_use]
    pub fn portion(&self, portion: Portion, limits: AnswerLimits) -> Self {
        let left_out = limits.left_out(self.items().count, portion);
        let max_chars = |rank| portion.chars_of(rank, limits.max_chars);
        let last = |rank: usize| portion.last_chars.filter(|_| rank + 1 == portion.items);
        let nearest = self.nearest.as_ref().map(|nearest| nearest.cut(None, max_chars(0)));
        let Some(groups) = &self.groups else {
            let shown = self.results.iter().take(portion.items).enumerate();
            let results = shown.map(|(rank, result)| result.cut(last(rank), max_chars(rank))).collect();
            return Self { results, nearest, left_out, ..self.without_items() };
        };
        let shown = groups.iter().take(portion.items).enumerate();
        let groups: Vec<FoundSession> =
            shown.map(|(rank, group)| group.cut(last(rank), max_chars(rank))).collect();
        let by_place: HashMap<_, &FoundMessage> =
            groups.iter().flat_map(|group| &group.results).map(|found| (found.place(), found)).collect();
        let results = self.results.iter().filter_map(|found| by_place.get(&found.place()).copied().cloned());
        let results = results.collect();
        Self { results, groups: Some(groups), nearest, left_out, ..self.without_items() }
    }

    fn without_items(&self) -> Self {
        let Self { mode, notices, explanation, damaged, incomplete, .. } = self;
        Self {
            mode: *mode,
            notices: notices.clone(),
            results: Vec::new(),
            groups: None,
            nearest: None,
            explanation: explanation.clone(),
            left_out: None,
            damaged: damaged.clone(),
            incomplete: incomplete.clone(),
        }
    }
}

impl FoundMessage {
    /// The result, with the address and the title in `names`.
    #[must_use]
    pub fn new(result: SearchResult, names: &ResultNames) -> Self {
        let title = names.title(&result).map(str::to_owned);
        Self { address: names.address(&result), title, result, truncated: None }
    }

    /// The message with its snippet and its text cut to numbers of characters.
    fn cut(&self, snippet_chars: Option<usize>, max_chars: Option<usize>) -> Self {
        let mut found = self.clone();
        if let Some(chars) = snippet_chars {
            cut::snippet(&mut found.result, chars);
        }
        if let Some((most, message)) = max_chars.zip(found.result.message.as_mut()) {
            found.truncated = cut::value_to(message, most);
        }
        found
    }

    fn place(&self) -> (&UserId, &SessionId, u32) {
        (&self.result.user_id, &self.result.session_id, self.result.sequence)
    }
}

impl NearestMessage {
    pub(crate) fn new(result: &SearchResult, address: String) -> Self {
        Self { address, similarity: result.similarity, snippet: result.snippet.clone() }
    }
}

impl FoundSession {
    /// The session with its messages cut; if the snippets must be cut too, only with the best one.
    fn cut(&self, snippet_chars: Option<usize>, max_chars: Option<usize>) -> Self {
        let shown = if snippet_chars.is_some() { 1 } else { self.results.len() };
        let results: Vec<_> =
            self.results.iter().take(shown).map(|found| found.cut(snippet_chars, max_chars)).collect();
        Self { more: self.more + self.results.len() - results.len(), results, ..self.clone() }
    }
}
