//! `events`.

use amplifier_session_api::{
    ApiAnswer,
    budget::{Items, Portion},
    dates,
    filter::RequestFilter,
    operations::events::EventsRequest,
    views::EventView,
};
use amplifier_session_core::model::Level;
use jiff::Zoned;
use serde_json::Value;

use super::{all_remarks, given, remark_lines};
use crate::{
    OpenedSessions,
    answer::{AnswerShape, ToolAnswer},
    failure::CallFailure,
    messages,
    parameters::{Count, EventsParameters, LevelParameter},
    quoted,
};

/// Events by default.
const LIMIT: usize = 50;
/// The most events.
const MOST: usize = 1_000;

/// Events that were asked for.
#[derive(Debug)]
pub(crate) struct EventsCall {
    shape: AnswerShape,
    request: EventsRequest,
}

/// Reads the parameters.
pub(crate) fn request(parameters: EventsParameters) -> Result<EventsCall, CallFailure> {
    let limit = parameters.limit.map_or(LIMIT, |Count(limit)| limit.min(MOST));
    if limit == 0 {
        return Err(CallFailure::of_parameter("limit", "must be at least 1"));
    }
    let request = EventsRequest {
        session: given(parameters.session),
        event_type: given(parameters.event_type),
        tool: given(parameters.tool),
        level: parameters.level.map(Level::from),
        text: given(parameters.text),
        filter: RequestFilter {
            project: given(parameters.project),
            since: given(parameters.since),
            until: given(parameters.until),
            ..RequestFilter::default()
        },
        limit,
        after: given(parameters.after),
        ..EventsRequest::default()
    };
    Ok(EventsCall { shape: AnswerShape::new(parameters.budget, parameters.format)?, request })
}

impl From<LevelParameter> for Level {
    fn from(level: LevelParameter) -> Self {
        match level {
            LevelParameter::Debug => Self::Debug,
            LevelParameter::Info => Self::Info,
            LevelParameter::Warn => Self::Warn,
            LevelParameter::Error => Self::Error,
        }
    }
}

impl EventsCall {
    /// Answers the call.
    pub(crate) async fn answer(mut self, opened: &OpenedSessions) -> Result<ToolAnswer, CallFailure> {
        self.request.scope = opened.reach();
        let answer = opened.api().events(&self.request).await;
        let ApiAnswer { response, notices } =
            answer.map_err(|error| CallFailure::of_operation(error, "session"))?;
        let remarks = all_remarks(opened, &notices, &response.end.incomplete);
        let items = Items { count: response.events.len(), can_be_cut: false };
        let text = |portion: Portion| {
            let shown = response.first(portion.items);
            let mut text: String = shown.events.iter().map(|view| line(view, opened.now())).collect();
            if let Some(next) = &shown.end.next {
                text.push_str(&format!("more events: after: {}\n", Value::String(next.clone())));
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

fn line(view: &EventView, now: &Zoned) -> String {
    let event = &view.event;
    let mut known = vec![
        view.address.clone(),
        dates::second(event.ts, now),
        event.level.as_str().to_owned(),
        quoted::name(&event.event_type),
    ];
    known.extend(event.tool_name.as_deref().or(event.model.as_deref()).map(quoted::name));
    known.extend(event.error_type.as_deref().map(quoted::name));
    known.extend(Some(messages::summary(&event.summary)).filter(|summary| !summary.is_empty()));
    format!("{}\n", known.join(" · "))
}
