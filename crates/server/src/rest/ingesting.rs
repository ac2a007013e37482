//! Lines of sessions that producers send, in any language.

use amplifier_session_api::{
    ApiAnswer, ApiError,
    operations::{
        ingest::{IngestRequest, IngestResponse, SentFile, SentLines},
        session::SessionRequest,
    },
};
use amplifier_session_core::{ErrorField, ErrorKind, model::LineKind};
use axum::http::StatusCode;
use serde_json::json;

use crate::{answer::HttpAnswer, call::HttpCall, problem::HttpProblem, routes::Answering};

/// PUT /v1/sessions/{id}/transcript
pub(crate) fn transcript(call: HttpCall) -> Answering {
    Box::pin(lines(call, LineKind::Message))
}

/// PUT /v1/sessions/{id}/events
pub(crate) fn events(call: HttpCall) -> Answering {
    Box::pin(lines(call, LineKind::Event))
}

/// PUT /v1/sessions/{id}/metadata
pub(crate) fn metadata(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let text = std::str::from_utf8(call.body())
            .map_err(|_| HttpProblem::of_parameter("body", "it is not UTF-8"))?;
        let file = SentFile { name: "metadata.json".to_owned(), text: text.to_owned() };
        let request = IngestRequest { metadata_files: vec![file], ..session_of(&mut call).await? };
        let answer = call.api().ingest(&request).await;
        stored_lines(&call, answer)
    })
}

async fn lines(mut call: HttpCall, kind: LineKind) -> Result<HttpAnswer, HttpProblem> {
    let start = call.take_count("start").unwrap_or_default();
    let start = u32::try_from(start).map_err(|_| HttpProblem::of_parameter("from", "it is too large"))?;
    let whole = call.take_flag("whole");
    let sent = SentLines { start, whole, lines: split(call.body())? };
    let mut request = session_of(&mut call).await?;
    match kind {
        LineKind::Message => request.messages = Some(sent),
        LineKind::Event => request.events = Some(sent),
    }
    let answer = call.api().ingest(&request).await;
    let begins_late = answer.as_ref().is_err_and(|error| {
        matches!(error, ApiError::Storage(error)
            if error.kind() == ErrorKind::Validation && error.field() == Some(ErrorField::StartSequence))
    });
    if !begins_late {
        return stored_lines(&call, answer);
    }
    let stored = stored(&call, &request, kind).await;
    let detail = format!("the lines begin after the {stored} stored ones; send those from {stored} on");
    Err(HttpProblem::new(StatusCode::CONFLICT, "begins_late", detail).about("from").with("stored", stored))
}

fn stored_lines(
    call: &HttpCall,
    answer: Result<ApiAnswer<IngestResponse>, ApiError>,
) -> Result<HttpAnswer, HttpProblem> {
    let answer = answer.map_err(|error| call.problem(error))?;
    let IngestResponse { messages, events, .. } = &answer.response;
    let rows = messages.written + events.written;
    Ok(HttpAnswer::of(&answer)?.with_rows(rows))
}

/// The lines of a body, without their ends. The last one needs none.
fn split(body: &[u8]) -> Result<Vec<String>, HttpProblem> {
    let body = body.strip_suffix(b"\n").unwrap_or(body);
    if body.is_empty() {
        return Ok(Vec::new());
    }
    let text = |(number, line): (usize, &[u8])| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // The stored bytes must be those that were sent.
        String::from_utf8(line.to_vec())
            .map_err(|_| HttpProblem::of_parameter("body", format!("line {} is not UTF-8", number + 1)))
    };
    body.split(|byte| *byte == b'\n').enumerate().map(text).collect()
}

/// The request without its lines. Fields that it leaves out keep their stored values.
async fn session_of(call: &mut HttpCall) -> Result<IngestRequest, HttpProblem> {
    let id = call.take_text("session").unwrap_or_default();
    let stored = stored_session(call, &id).await;
    call.check_quota(stored.is_none()).await?;
    if !["project_slug", "host_id"].iter().all(|field| call.has(field)) {
        let stored = stored.ok_or_else(|| {
            HttpProblem::of_parameter("project", "the session is new, so `project` and `host` are needed")
        })?;
        call.set_default("project_slug", stored.project_slug.as_str());
        call.set_default("host_id", stored.host_id.as_str());
    }
    call.set("session_id", id);
    call.request()
}

async fn stored_session(call: &HttpCall, id: &str) -> Option<amplifier_session_core::model::Session> {
    let request: SessionRequest = serde_json::from_value(json!({"session": id})).ok()?;
    let session = call.api().session(&request).await.ok()?.response.session.session;
    // The address of another session may begin with the id.
    (session.session_id.as_str() == id).then_some(session)
}

/// The number of stored lines.
async fn stored(call: &HttpCall, request: &IngestRequest, kind: LineKind) -> u32 {
    let session = stored_session(call, request.session_id.as_str()).await;
    session.map_or(0, |session| match kind {
        LineKind::Message => session.message_count,
        LineKind::Event => session.event_count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_and_kept_as_they_are() {
        assert_eq!(split(b"").unwrap(), Vec::<String>::new());
        assert_eq!(split(b"\n").unwrap(), Vec::<String>::new());
        assert_eq!(split(b"{\"a\":1}\r\n\n{\"b\": 2 }").unwrap(), ["{\"a\":1}", "", "{\"b\": 2 }"]);
        assert_eq!(split(b"a\n\xff\n").unwrap_err().field(), Some("body"));
    }
}
