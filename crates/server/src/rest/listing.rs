//! Lists and counts.

use amplifier_session_api::operations::{
    events::EventsRequest, gaps::GapsRequest, projects::ProjectsRequest, recent::RecentRequest,
    secrets::SecretsRequest, sessions::SessionsRequest, statistics::StatisticsRequest,
    store_status::StoreStatusRequest, superseded_events::SupersededEventsRequest,
    superseded_sessions::SupersededSessionsRequest, tags::TagsRequest, users::UsersRequest,
    vectors::VectorStatusRequest,
};
use amplifier_session_core::storage::Breakdown;
use serde_json::json;

use super::operations;
use crate::{answer::HttpAnswer, call::HttpCall, problem::HttpProblem, routes::Answering};

operations! {
    /// GET /v1/projects
    projects: ProjectsRequest => projects;
    /// GET /v1/projects/recent
    recent: RecentRequest => recent;
    /// GET /v1/users
    users: UsersRequest => users;
    /// GET /v1/tags
    tags: TagsRequest => tags;
    /// GET /v1/gaps
    gaps: GapsRequest => gaps;
    /// GET /v1/status
    status: StoreStatusRequest => store_status;
    /// GET /v1/superseded
    superseded_sessions: SupersededSessionsRequest => superseded_sessions;
    /// GET /v1/superseded/events
    superseded_events: SupersededEventsRequest => superseded_events;
}

/// GET /v1/sessions
pub(crate) fn sessions(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        call.read_cursor()?;
        let request: SessionsRequest = call.request()?;
        let mut answer = call.api().sessions(&request).await.map_err(|error| call.problem(error))?;
        answer.response.next = call.cursor(answer.response.next.take());
        Ok(HttpAnswer::of(&answer)?.with_rows(answer.response.sessions.len() as u64))
    })
}

/// GET /v1/events
pub(crate) fn events(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        call.read_cursor()?;
        let request: EventsRequest = call.request()?;
        let mut answer = call.api().events(&request).await.map_err(|error| call.problem(error))?;
        answer.response.end.next = call.cursor(answer.response.end.next.take());
        Ok(HttpAnswer::of(&answer)?.with_rows(answer.response.events.len() as u64))
    })
}

/// GET /v1/secrets and /v1/sessions/{id}/secrets
pub(crate) fn secrets(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        if let Some(session) = call.take_text("session") {
            call.set("sessions", json!([session]));
        }
        let request: SecretsRequest = call.request()?;
        call.answer(call.api().secrets(&request, &mut |_, _| {}).await)
    })
}

/// GET /v1/statistics and /v1/sessions/{id}/statistics
pub(crate) fn statistics(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let by = call.take("by");
        let request: StatisticsRequest = call.request()?;
        let mut answer = call.api().statistics(&request).await.map_err(|error| call.problem(error))?;
        if let Some(by) = by {
            let by: Vec<Breakdown> = serde_json::from_value(by)
                .map_err(|error| HttpProblem::of_parameter("by", error.to_string()))?;
            answer.response.statistics.keep_only(&by);
        }
        HttpAnswer::of(&answer)
    })
}

/// GET /v1/vectors
pub(crate) fn vectors(call: HttpCall) -> Answering {
    Box::pin(async move {
        let request: VectorStatusRequest = call.request()?;
        call.answer(call.api().vector_status(&request).await)
    })
}
