//! The wire of the hook of Amplifier's context intelligence, which posts events as they happen.

use amplifier_session_api::operations::{post_event::PostEventRequest, session::SessionRequest};
use serde_json::json;

use crate::{answer::HttpAnswer, call::HttpCall, problem::HttpProblem, routes::Answering};

/// POST /events
pub(crate) fn post(call: HttpCall) -> Answering {
    Box::pin(async move {
        let wrong = |error: serde_json::Error| HttpProblem::of_parameter("body", error.to_string());
        let request: PostEventRequest = serde_json::from_slice(call.body()).map_err(wrong)?;
        call.check_quota(false).await?;
        call.answer(call.api().post_event(&request).await)
    })
}

/// GET /version
pub(crate) fn version(_: HttpCall) -> Answering {
    Box::pin(async { HttpAnswer::json(&json!({"version": env!("CARGO_PKG_VERSION")})) })
}

/// GET /status
pub(crate) fn status(call: HttpCall) -> Answering {
    Box::pin(async move {
        let answers = call.state().store().answers().await;
        HttpAnswer::json(&json!({"status": if answers { "ok" } else { "unavailable" }}))
    })
}

/// GET /blobs/{id}
pub(crate) fn blobs(call: HttpCall) -> Answering {
    Box::pin(async move {
        let request: SessionRequest = call.request()?;
        let answer = call.api().session(&request).await.map_err(|error| call.problem(error))?;
        let session = answer.response.session.session.session_id;
        // Large values stay in the events that they belong to.
        HttpAnswer::json(&json!({"session_id": session, "blobs": []}))
    })
}
