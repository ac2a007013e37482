//! `list`.

use amplifier_session_api::{
    ApiAnswer,
    budget::{Items, Portion},
    dates,
    filter::RequestFilter,
    ids,
    operations::sessions::{ListedSession, SessionsRequest, SessionsResponse},
};
use amplifier_session_core::text::counted;
use jiff::Zoned;
use serde_json::Value;

use super::{all, all_remarks, given, remark_lines};
use crate::{
    OpenedSessions,
    answer::{AnswerShape, ToolAnswer},
    failure::CallFailure,
    parameters::{Count, ListParameters},
    quoted,
};

/// Sessions by default.
const LIMIT: usize = 20;
/// The most sessions.
const MOST: usize = 500;
/// Titles are cut after this many characters.
const TITLE_CHARS: usize = 120;

/// A list that was asked for.
#[derive(Debug)]
pub(crate) struct ListCall {
    shape: AnswerShape,
    request: SessionsRequest,
}

/// Reads the parameters.
pub(crate) fn request(parameters: ListParameters) -> Result<ListCall, CallFailure> {
    let request = SessionsRequest {
        text: given(parameters.text),
        parent: given(parameters.parent),
        filter: RequestFilter {
            project: given(parameters.project),
            since: given(parameters.since),
            until: given(parameters.until),
            tags: all(parameters.tag),
            ..RequestFilter::default()
        },
        limit: parameters.limit.map_or(LIMIT, |Count(limit)| limit.min(MOST)),
        after: given(parameters.after),
        short_ids: true,
        ..SessionsRequest::default()
    };
    Ok(ListCall { shape: AnswerShape::new(parameters.budget, parameters.format)?, request })
}

impl ListCall {
    /// Answers the call.
    pub(crate) async fn answer(mut self, opened: &OpenedSessions) -> Result<ToolAnswer, CallFailure> {
        self.request.scope = opened.reach();
        let answer = opened.api().sessions(&self.request).await;
        let ApiAnswer { response, notices } =
            answer.map_err(|error| CallFailure::of_operation(error, "parent"))?;
        let remarks = all_remarks(opened, &notices, &response.incomplete);
        let items = Items { count: response.sessions.len(), can_be_cut: false };
        let text = |portion: Portion| {
            let shown = response.first(portion.items);
            let lines = shown.sessions.iter().map(|listed| line(listed, &shown, opened.now()));
            let mut text: String = lines.collect();
            if let Some(next) = &shown.next {
                text.push_str(&format!("more sessions: after: {}\n", Value::String(next.clone())));
            }
            text + &remark_lines(&remarks)
        };
        let json = |portion: Portion| {
            let mut value = serde_json::to_value(response.first(portion.items))?;
            if let Value::Object(fields) = &mut value {
                fields.insert("notices".to_owned(), remarks.clone().into());
            }
            Ok(value)
        };
        self.shape.fit(items, text, json)
    }
}

fn line(listed: &ListedSession, shown: &SessionsResponse, now: &Zoned) -> String {
    let (view, session) = (&listed.session, &listed.session.session);
    let mut known = vec![
        ids::short(&shown.short_ids, &session.session_id).to_owned(),
        dates::about_minute(session.updated, view.is_estimated(), now),
        quoted::name(session.project_slug.as_str()),
        counted(session.message_count, "message"),
        quoted::string(&view.title, TITLE_CHARS),
    ];
    if let Some(parent) = &session.parent_id {
        known.push(format!("of {}", ids::short(&shown.short_ids, parent)));
    }
    if !session.tags.is_empty() {
        let tags: Vec<String> = session.tags.iter().map(|tag| quoted::name(tag)).collect();
        known.push(format!("tags {}", tags.join(", ")));
    }
    format!("{}\n", known.join(" · "))
}
