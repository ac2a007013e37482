//! Sessions, and what is in them.

use amplifier_session_api::operations::{
    context::ContextRequest,
    export::ExportRequest,
    files::FilesRequest,
    messages::MessagesRequest,
    session::{SessionRequest, SessionResponse},
    session_events::SessionEventsRequest,
    superseded_messages::SupersededMessagesRequest,
    turn::TurnRequest,
    vectors::SessionVectorsRequest,
};

use axum::http::StatusCode;

use super::{answer_limits, operations, within};
use crate::{
    answer::{HttpAnswer, entity_tag},
    call::HttpCall,
    problem::HttpProblem,
    routes::Answering,
    stream,
};

/// The content type of lines of JSON.
pub(crate) const JSON_LINES: &str = "application/jsonl";

/// The content type of what may be anything: browsers show it nowhere.
pub(crate) const BYTES: &str = "application/octet-stream";

operations! {
    /// GET /v1/sessions/{id}/turns/{n}
    turn: TurnRequest => turn;
    /// GET /v1/sessions/{id}/files
    files: FilesRequest => files;
    /// GET /v1/sessions/{id}/vectors
    session_vectors: SessionVectorsRequest => session_vectors;
    /// GET /v1/sessions/{id}/superseded
    superseded: SupersededMessagesRequest => superseded_messages;
}

/// GET /v1/sessions/{id}
pub(crate) fn session(call: HttpCall) -> Answering {
    Box::pin(async move {
        let request: SessionRequest = call.request()?;
        let answer = call.api().session(&request).await.map_err(|error| call.problem(error))?;
        let version = version_of(&answer.response)?;
        Ok(HttpAnswer::of(&answer)?.with_tag(Some(version)))
    })
}

/// The version of a session, for `ETag` and `If-Match`.
pub(super) fn version_of(session: &SessionResponse) -> Result<String, HttpProblem> {
    let text = serde_json::to_vec(session).map_err(|error| HttpProblem::internal(error.to_string()))?;
    Ok(entity_tag(&text))
}

/// GET /v1/sessions/{id}/messages
pub(crate) fn messages(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let limits = answer_limits(&mut call);
        let request: MessagesRequest = call.request()?;
        let answer = call.api().messages(&request).await.map_err(|error| call.problem(error))?;
        let items = answer.response.items();
        within(&call, &answer, limits, items, |response, portion| response.portion(portion, limits))
    })
}

/// GET /v1/sessions/{id}/messages/{n} and /v1/sessions/{id}/turns/{n}/context
pub(crate) fn context(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let limits = answer_limits(&mut call);
        let request: ContextRequest = call.request()?;
        let answer = call.api().context(&request).await.map_err(|error| call.problem(error))?;
        let items = answer.response.items();
        within(&call, &answer, limits, items, |response, portion| response.portion(portion, limits))
    })
}

/// GET /v1/sessions/{id}/events
pub(crate) fn session_events(call: HttpCall) -> Answering {
    Box::pin(async move {
        let request: SessionEventsRequest = call.request()?;
        call.answer(call.api().session_events(&request).await)
    })
}

/// GET /v1/sessions/{id}/events/{n}
pub(crate) fn event(mut call: HttpCall) -> Answering {
    call.set("limit", 1);
    if call.take_flag("line") { event_line(call) } else { session_events(call) }
}

/// The line of an event as it is stored.
fn event_line(mut call: HttpCall) -> Answering {
    call.set("full", true);
    Box::pin(async move {
        let request: SessionEventsRequest = call.request()?;
        let answer = call.api().session_events(&request).await.map_err(|error| call.problem(error))?;
        let line = answer.response.events.into_iter().next().and_then(|event| event.line);
        let line = line.ok_or_else(|| {
            HttpProblem::new(StatusCode::NOT_FOUND, "no_line", "there is no line of this event").about("n")
        })?;
        let meter = call.meter().clone();
        let body = stream::sent(line.0.as_bytes().to_vec(), meter.patience(), meter);
        Ok(HttpAnswer::Stream { body, content_type: BYTES, file: "event.json" })
    })
}

/// GET /v1/export and /v1/sessions/{id}/export
pub(crate) fn export(call: HttpCall) -> Answering {
    Box::pin(async move {
        let permit = call.begin_export()?;
        let request: ExportRequest = call.request()?;
        let patience = call.meter().patience();
        let write = async move |out: &mut stream::PieceWriter| -> Result<(), HttpProblem> {
            let _permit = permit;
            call.api().export(&request, out).await.map(drop).map_err(|error| call.problem(error))
        };
        let body = stream::written(patience, write).await?;
        Ok(HttpAnswer::Stream { body, content_type: JSON_LINES, file: "sessions.jsonl" })
    })
}
