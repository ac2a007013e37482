//! `search`.

use std::collections::BTreeSet;

use amplifier_session_api::{
    ApiAnswer, Notice,
    budget::{AnswerLimits, Items, Portion},
    dates,
    filter::RequestFilter,
    groups::FoundSession,
    operations::{
        search::{FoundMessage, SearchRequest, SearchResponse},
        search_turns::{FoundTurn, TurnsResponse},
    },
    query::QueryRequest,
};
use amplifier_session_core::{
    model::{ContentType, Timestamp},
    search::{MatchKind, SearchMode, SearchResult, TurnResult},
    text::counted,
};
use jiff::Zoned;
use serde::Serialize;
use serde_json::Value;

use super::{all, all_remarks, given, remark_lines};
use crate::{
    OpenedSessions,
    answer::{AnswerShape, ToolAnswer},
    failure::CallFailure,
    parameters::{Count, SearchParameters, UnitParameter},
    quoted,
};

/// Sessions by default.
const LIMIT: usize = 10;
/// The most sessions.
const MOST: usize = 100;
/// The length of a snippet in characters.
const SNIPPET_CHARS: usize = 300;
/// Titles are cut after this many characters.
const TITLE_CHARS: usize = 120;
/// CommaList of a query that a message has.
const WORDS: usize = 5;

/// A search that was asked for.
#[derive(Debug)]
pub(crate) struct SearchCall {
    shape: AnswerShape,
    request: SearchRequest,
    /// The most sessions of the answer: the request has one more, to know whether there are more.
    limit: usize,
    finds_turns: bool,
}

/// Reads the parameters.
pub(crate) fn request(
    parameters: SearchParameters,
    current: Option<&str>,
) -> Result<SearchCall, CallFailure> {
    let shape = AnswerShape::new(parameters.budget, parameters.format)?;
    let Some(query) = given(parameters.query) else {
        return Err(CallFailure::of_parameter("query", "is required: a question or words"));
    };
    let limit = parameters.limit.map_or(LIMIT, |Count(limit)| limit.min(MOST));
    if limit == 0 {
        return Err(CallFailure::of_parameter("limit", "must be at least 1"));
    }
    let skip = parameters.after.map_or(0, |Count(after)| after);
    if limit + 1 + skip > 1_000 {
        return Err(CallFailure::of_parameter("after", "a search finds at most 1000 sessions; narrow it"));
    }
    let query = QueryRequest {
        query,
        not_sessions: all(parameters.not_session),
        current_session: current.map(str::to_owned),
        without_own_calls: true,
        mode: parameters.mode.map_or_else(SearchMode::default, Into::into),
        content_types: all(parameters.types),
        filter: RequestFilter {
            project: given(parameters.project),
            since: given(parameters.since),
            until: given(parameters.until),
            ..RequestFilter::default()
        },
        session: given(parameters.session),
        ..QueryRequest::default()
    };
    let request = SearchRequest {
        query,
        limit: limit + 1,
        skip,
        by_session: true,
        snippet_chars: Some(SNIPPET_CHARS),
        ..SearchRequest::default()
    };
    Ok(SearchCall { shape, request, limit, finds_turns: parameters.unit == Some(UnitParameter::Turn) })
}

impl SearchCall {
    /// Whether the search needs the embedding model.
    pub(crate) fn embeds(&self) -> bool {
        self.request.query.mode != SearchMode::FullText
    }

    /// Answers the call.
    pub(crate) async fn answer(mut self, opened: &OpenedSessions) -> Result<ToolAnswer, CallFailure> {
        self.request.query.scope = opened.reach();
        // A search in one session shows more of it than its best messages.
        self.request.by_session = self.request.query.session.is_none();
        let failed = |error| CallFailure::of_operation(error, "session");
        if self.finds_turns {
            let ApiAnswer { response, notices } =
                opened.api().search_turns(&self.request).await.map_err(failed)?;
            let count = response.count();
            let found = FoundTurns { response };
            return self.fitted(opened, &found, count, &notices);
        }
        let ApiAnswer { response, notices } = opened.api().search(&self.request).await.map_err(failed)?;
        let count = response.items().count;
        self.fitted(opened, &FoundMessages { response }, count, &notices)
    }

    /// What the answer has.
    fn unit(&self) -> &'static str {
        match (self.request.by_session, self.finds_turns) {
            (true, _) => "session",
            (false, false) => "message",
            (false, true) => "turn",
        }
    }

    fn fitted(
        &self,
        opened: &OpenedSessions,
        found: &impl FoundAnswer,
        count: usize,
        notices: &[Notice],
    ) -> Result<ToolAnswer, CallFailure> {
        let remarks = all_remarks(opened, notices, found.incomplete());
        let items = Items { count: count.min(self.limit), can_be_cut: found.can_be_cut() };
        // What does not fit is on the next page. A session of which only the best message fits says how many more it has.
        let next = |portion: Portion| (portion.items < count).then_some(self.request.skip + portion.items);
        let text = |portion: Portion| {
            let mut text = String::new();
            if count > 0 {
                let items = counted(portion.items as u64, self.unit());
                text = format!("{items}, best first ({} search)\n", found.mode().as_str());
            }
            text.push_str(&found.text(portion, self.request.skip, opened.now()));
            if let Some(next) = next(portion) {
                text.push_str(&format!("\nmore {}s: after: {next}\n", self.unit()));
            }
            if !remarks.is_empty() {
                text.push('\n');
                text.push_str(&remark_lines(&remarks));
            }
            text
        };
        let json = |portion: Portion| {
            let mut value = found.json(portion)?;
            if let Value::Object(fields) = &mut value {
                fields.insert("notices".to_owned(), remarks.clone().into());
                fields.insert("next".to_owned(), next(portion).into());
            }
            Ok(value)
        };
        self.shape.fit(items, text, json)
    }
}

/// Messages or turns that were found, by session.
trait FoundAnswer {
    fn mode(&self) -> SearchMode;
    fn incomplete(&self) -> &[amplifier_session_api::incomplete::IncompleteReason];
    fn can_be_cut(&self) -> bool;
    /// The sessions of a portion, numbered after `skip`.
    fn text(&self, portion: Portion, skip: usize, now: &Zoned) -> String;
    fn json(&self, portion: Portion) -> Result<Value, CallFailure>;
}

struct FoundMessages {
    response: SearchResponse,
}

struct FoundTurns {
    response: TurnsResponse,
}

impl FoundAnswer for FoundMessages {
    fn mode(&self) -> SearchMode {
        self.response.mode
    }

    fn incomplete(&self) -> &[amplifier_session_api::incomplete::IncompleteReason] {
        &self.response.incomplete
    }

    fn can_be_cut(&self) -> bool {
        true
    }

    fn text(&self, portion: Portion, skip: usize, now: &Zoned) -> String {
        let shown = self.response.portion(portion, AnswerLimits::default());
        listed(&shown.results, shown.groups.as_deref(), (skip, now), message)
    }

    fn json(&self, portion: Portion) -> Result<Value, CallFailure> {
        without_results(&self.response.portion(portion, AnswerLimits::default()))
    }
}

impl FoundAnswer for FoundTurns {
    fn mode(&self) -> SearchMode {
        self.response.mode
    }

    fn incomplete(&self) -> &[amplifier_session_api::incomplete::IncompleteReason] {
        &self.response.incomplete
    }

    fn can_be_cut(&self) -> bool {
        false
    }

    fn text(&self, portion: Portion, skip: usize, now: &Zoned) -> String {
        let shown = self.response.first(portion.items);
        listed(&shown.results, shown.groups.as_deref(), (skip, now), turn)
    }

    fn json(&self, portion: Portion) -> Result<Value, CallFailure> {
        without_results(&self.response.first(portion.items))
    }
}

/// The response without the list of results, if there are groups that have them too.
fn without_results(response: &impl Serialize) -> Result<Value, CallFailure> {
    let mut value = serde_json::to_value(response)?;
    if let Value::Object(fields) = &mut value
        && fields.contains_key("groups")
    {
        fields.shift_remove("results");
    }
    Ok(value)
}

/// Sessions with their results, or the results of one session.
fn listed<Found>(
    results: &[Found],
    groups: Option<&[FoundSession<Found>]>,
    (skip, now): (usize, &Zoned),
    result: impl Fn(&Found, &Zoned) -> String,
) -> String {
    let Some(groups) = groups else {
        return results.iter().map(|found| format!("\n{}", result(found, now))).collect();
    };
    let session = |(rank, group): (usize, &FoundSession<Found>)| {
        let title = group.title.as_deref().map(|title| quoted::string(title, TITLE_CHARS));
        let known = [
            Some(group.session.clone()),
            group
                .updated
                .map(|updated| dates::about_minute(updated, group.dates_estimated == Some(true), now)),
            Some(quoted::name(group.project.as_str())),
            title,
        ];
        let known: Vec<String> = known.into_iter().flatten().collect();
        let mut text = format!("\n{}. {}\n", skip + rank + 1, known.join(" · "));
        group.results.iter().for_each(|found| text.push_str(&result(found, now)));
        if group.more > 0 {
            let more = counted(group.more as u64, "more message");
            text.push_str(&format!("{more}: the same search with session: \"{}\"\n", group.session));
        }
        text
    };
    groups.iter().enumerate().map(session).collect()
}

fn message(found: &FoundMessage, now: &Zoned) -> String {
    let FoundMessage { address, result, .. } = found;
    let mut known = vec![
        format!("{address} {}", kind(result.content_type)),
        dates::about_minute(result.ts, result.ts_estimated, now),
    ];
    known.extend(matched(result.match_kind, &result.words, result.similarity));
    known.extend(result.by_title.then(|| "by its title".to_owned()));
    known.extend(repeats(result));
    format!("{}\n{}", known.join(" · "), quoted::lines(&result.snippet))
}

fn turn(found: &FoundTurn, now: &Zoned) -> String {
    let TurnResult {
        turn, ts, ts_estimated, user, assistant, summary, match_kind, words, similarity, ..
    } = &found.result;
    let (ts, ts_estimated): (Timestamp, bool) = (*ts, *ts_estimated);
    let mut known =
        vec![format!("{} turn {turn}", found.address), dates::about_minute(ts, ts_estimated, now)];
    known.extend(matched(*match_kind, words, *similarity));
    let mut text = format!("{}\nuser:\n{}", known.join(" · "), quoted::lines(&user.text));
    if let Some(answer) = summary.as_ref().or(assistant.as_ref()) {
        let address = found.answer().unwrap_or_default();
        let kind = if summary.is_some() { "summary" } else { "answer" };
        text.push_str(&format!("{kind} {address}:\n{}", quoted::lines(&answer.text)));
    }
    text
}

/// What a result matched.
fn matched(kind: MatchKind, words: &[String], similarity: Option<f32>) -> Option<String> {
    if kind == MatchKind::Similar {
        return Some(similarity.map_or_else(|| "similar".to_owned(), |found| format!("similar {found:.2}")));
    }
    let words: Vec<String> = words.iter().take(WORDS).map(|word| quoted::name(word)).collect();
    (!words.is_empty()).then(|| format!("matches {}", words.join(", ")))
}

/// In how many other sessions the same text is.
fn repeats(result: &SearchResult) -> Option<String> {
    let others: BTreeSet<_> = result.also_in.iter().map(|repeat| &repeat.session_id).collect();
    let others = others.into_iter().filter(|other| **other != result.session_id).count();
    (others > 0).then(|| format!("also in {}", counted(others as u64, "other session")))
}

fn kind(content_type: ContentType) -> &'static str {
    match content_type {
        ContentType::UserQuery => "user",
        ContentType::AssistantResponse => "assistant",
        ContentType::AssistantThinking => "thinking",
        ContentType::ToolOutput => "tool output",
        ContentType::System => "system",
        ContentType::ToolCall => "tool call",
    }
}
