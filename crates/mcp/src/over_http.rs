//! Answers one request of the streamable HTTP transport.
//!
//! There are no sessions between requests: a session that its client never ends would stay in memory. So each request has a
//! [`ToolServer`] of its own, whose access is that of the caller, and no request can meet the access of another.

use std::{convert::Infallible, io::Cursor, sync::Arc};

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};

use crate::ToolServer;

/// Answers a request whose host, origin and size were checked. Tools send nothing before their result, so the answer is
/// one JSON text and no stream. Dropping the future cancels the call.
#[crate::compiled_here]
pub async fn answer_http(server: ToolServer, request: Request<Vec<u8>>) -> Response<Vec<u8>> {
    let most = request.body().len();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        // The server that received the request has checked both, for all of its routes.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(most);
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    let (parts, body) = service.handle(request.map(|body| Full::new(Cursor::new(body)))).await.into_parts();
    let collected = body.collect().await.unwrap_or_else(|never: Infallible| match never {});
    Response::from_parts(parts, collected.to_bytes().to_vec())
}
