//! The Model Context Protocol over HTTP: the tools of `amplifier_session_mcp`, for the caller of each request.
//!
//! Nothing is kept between requests, so the tools of a request have the access of its caller by construction.

use std::{sync::Arc, time::Duration};

use amplifier_session_mcp::{AccessError, OpenedSessions, SessionAccess, StoreUse, ToolServer, answer_http};
use async_trait::async_trait;
use axum::{
    body::Body,
    http::{Response, header},
};
use tokio::time::sleep;

use crate::{answer::HttpAnswer, call::HttpCall, problem::HttpProblem, routes::Answering};

/// The header with the id of the session in which an agent works: searches leave it out, and its parent.
const CURRENT_SESSION: &str = "amplifier-session";
/// The time that calls get to finish after the server was told to stop.
const LAST_CALLS: Duration = Duration::from_secs(10);

/// POST /mcp
pub(crate) fn mcp(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let request = call.take_request();
        let current = request.headers().get(CURRENT_SESSION).and_then(|value| value.to_str().ok());
        let current = current.map(str::to_owned).filter(|session| !session.is_empty());
        let (state, reach) = (call.state().clone(), call.signed_in().caller().reach());
        let server = ToolServer::new(Arc::new(CallerSessions(call)))
            .for_elsewhere()
            .with_reach(reach)
            .with_current_session(current);
        let stopping = async {
            state.stopped().await;
            sleep(LAST_CALLS).await;
        };
        tokio::select! {
            response = answer_http(server, request) => answered(response),
            // A call that is dropped is cancelled.
            () = stopping => Err(HttpProblem::busy("the server stops", 5)),
        }
    })
}

/// The answer; a problem, if the SDK refuses the request in words of its own.
fn answered(response: Response<Vec<u8>>) -> Result<HttpAnswer, HttpProblem> {
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if !response.status().is_client_error() || is_json {
        return Ok(HttpAnswer::Whole(response.map(Body::from)));
    }
    let detail = String::from_utf8_lossy(response.body()).into_owned();
    Err(HttpProblem::new(response.status(), "protocol", detail))
}

/// The sessions of a caller.
#[derive(Debug)]
struct CallerSessions(HttpCall);

#[async_trait]
impl SessionAccess for CallerSessions {
    async fn open(&self, needs: StoreUse) -> Result<OpenedSessions, AccessError> {
        let permit = if needs.searches {
            Some(self.0.state().limits.search().await.map_err(|_| busy())?)
        } else {
            None
        };
        Ok(self.0.sessions_for_agents()?.for_elsewhere().with_permit(permit))
    }
}

fn busy() -> AccessError {
    AccessError::new("too many searches are waiting; try again in a moment", None)
}
