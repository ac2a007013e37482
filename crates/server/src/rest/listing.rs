//! Lists and counts.

use amplifier_session_api::operations::{
    events::EventsRequest, gaps::GapsRequest, projects::ProjectsRequest, recent::RecentRequest,
    secrets::SecretsRequest, sessions::SessionsRequest, statistics::StatisticsRequest,
    store_status::StoreStatusRequest, superseded_events::SupersededEventsRequest,
    superseded_sessions::SupersededSessionsRequest, tags::TagsRequest, users::UsersRequest,
    vectors::VectorStatusRequest,
};
use serde_json::json;

use super::operations;
use crate::{answer::HttpAnswer, call::HttpCall, routes::Answering};

operations! {
    /// GET /v1/projects
    projects: ProjectsRequest => projects;
    /// GET /v1/projects/recent
    recent: RecentRequest => recent;
    /// GET /v1/users
    users: UsersRequest => users;
    /// GET /v1/tags
    tags: TagsRequest => tags;
    /// GET /v1/statistics and /v1/sessions/{id}/statistics
    statistics: StatisticsRequest => statistics;
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
        HttpAnswer::of(&answer)
    })
}

/// GET /v1/events
pub(crate) fn events(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        call.read_cursor()?;
        let request: EventsRequest = call.request()?;
        let mut answer = call.api().events(&request).await.map_err(|error| call.problem(error))?;
        answer.response.end.next = call.cursor(answer.response.end.next.take());
        HttpAnswer::of(&answer)
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

/// GET /v1/vectors
pub(crate) fn vectors(call: HttpCall) -> Answering {
    Box::pin(async move {
        let request: VectorStatusRequest = call.request()?;
        call.answer(call.api().vector_status(&request).await)
    })
}
