//! Takes a request from its route to its handler: signs the caller in, checks limits and rights, and reads parameters.

use std::{io, net::IpAddr, sync::Arc, time::Instant};

use amplifier_session_api::{
    AccessRight,
    releases::{VERSION, VERSION_HEADER, work_together},
};
use axum::{
    body::{Body, Bytes, HttpBody as _},
    extract::{
        FromRequestParts as _, RawPathParams, Request, rejection::RawPathParamsRejection,
        ws::WebSocketUpgrade,
    },
    http::{HeaderMap, HeaderValue, StatusCode, request::Parts},
    response::Response,
};
use futures_util::StreamExt as _;
use tokio::time::timeout;

use crate::{
    answer::HttpAnswer,
    audit::AuditEntry,
    body,
    body_stream::BodyStream,
    call::CallParts,
    connection::{PeerAddress, RequestId},
    limits::RequestPlace,
    metrics::OPEN_METRICS,
    pace::BodyPace,
    problem::HttpProblem,
    query,
    routes::{HttpRoute, OpenPage, OpenRoute, RouteBody, RoutePace},
    sign_in::SignedIn,
    state::ServerState,
    trace::trace_of,
};

/// Answers a request for a route.
pub(crate) async fn answer(
    state: Arc<ServerState>,
    route: &'static HttpRoute,
    path: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
) -> Response {
    let began = Instant::now();
    let (parts, body) = request.into_parts();
    let RequestOrigin { id, peer } = RequestOrigin::of(&parts);
    let address = state.sign_in.client(&parts.headers, peer);
    let signed_in = sign_in(&state, &parts.headers, peer, address);
    let caller = signed_in.as_ref().ok().cloned();
    let session = path.as_ref().ok().and_then(|path| path.iter().find(|(name, _)| *name == "id"));
    let session = session.map(|(_, value)| value.to_owned());
    let headers = parts.headers.clone();
    let answer = match (signed_in, path) {
        (Ok(signed_in), Ok(path)) => answer_caller(&state, signed_in, route, &path, parts, body).await,
        (Ok(_), Err(rejection)) => Err(HttpProblem::of_parameter("path", rejection.body_text())),
        (Err(problem), _) => Err(problem),
    };
    let rows = answer.as_ref().ok().and_then(HttpAnswer::rows);
    let mut response = match answer {
        Ok(answer) => answer.into_response(route.status, route.is_kept(), &headers),
        Err(problem) => problem.into_response(&id),
    };
    if let Some(caller) = caller.clone() {
        response = response.map(|body| while_allowed(body, state.clone(), caller, route));
        response.headers_mut().insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
    }
    let took = began.elapsed();
    state.metrics.answered(route.name, response.status().as_u16(), took);
    record(
        &state,
        &AuditEntry {
            time: state.store().timestamp(),
            request: &id,
            token: caller.as_ref().map(SignedIn::by),
            user: caller.as_ref().map(|caller| caller.caller().user().as_str()),
            route: Some(route.name),
            session: session.as_deref(),
            rows,
            trace: trace_of(&headers),
            status: response.status().as_u16(),
            ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            address,
        },
    );
    response
}

/// The body, which breaks off when its caller has other rights than at the beginning, or none: a client may read a stream
/// as slowly as [`ServerLimits::piece`](crate::ServerLimits::piece) allows.
fn while_allowed(
    body: Body,
    state: Arc<ServerState>,
    signed_in: SignedIn,
    route: &'static HttpRoute,
) -> Body {
    if body.size_hint().exact().is_some() {
        return body;
    }
    Body::from_stream(body.into_data_stream().map(move |piece| {
        let again = state.again(&signed_in, route);
        match again.is_ok_and(|again| again.caller() == signed_in.caller()) {
            true => piece,
            false => Err(axum::Error::new(io::Error::other("the caller may not read any more"))),
        }
    }))
}

/// Where a request comes from.
struct RequestOrigin {
    id: String,
    peer: IpAddr,
}

impl RequestOrigin {
    fn of(parts: &Parts) -> Self {
        let id = parts.extensions.get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default();
        let peer = parts.extensions.get::<PeerAddress>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
        Self { id, peer }
    }
}

fn sign_in(
    state: &ServerState,
    headers: &HeaderMap,
    peer: IpAddr,
    address: IpAddr,
) -> Result<SignedIn, HttpProblem> {
    state
        .sign_in
        .caller(headers, peer, state.store().timestamp())
        .map_err(|failure| state.limits.failed_sign_in(address, failure))
}

/// Checks the limits and the rights of a caller, reads the request, and calls the handler.
async fn answer_caller(
    state: &Arc<ServerState>,
    signed_in: SignedIn,
    route: &'static HttpRoute,
    path: &RawPathParams,
    mut parts: Parts,
    body: Body,
) -> Result<HttpAnswer, HttpProblem> {
    state.limits.request(signed_in.by(), route.pace)?;
    check_version(&parts.headers)?;
    signed_in.check_rights(route)?;
    let query = parts.uri.query().unwrap_or_default();
    let mut fields = query::fields_of_query(route, path.iter(), query)?;
    let answered = async {
        let most = match route.pace {
            // JSON takes several times its size in memory.
            RoutePace::Store if route.body != RouteBody::Json => state.sizes.stored_body,
            RoutePace::Agent => state.sizes.agent_body,
            RoutePace::Event => state.sizes.event_body,
            _ => state.sizes.body,
        };
        let by = signed_in.by().to_owned();
        let _place = place(state, route, &by, route.body.reserved(&parts.headers, most)).await?;
        let (body, stream) = match route.body {
            RouteBody::Stream(content_type) => {
                (Bytes::new(), Some(BodyStream::new(content_type, &parts.headers, body, &state.sizes)?))
            }
            kind => (body::read(kind, &parts.headers, body, most, BodyPace::new(&state.sizes)).await?, None),
        };
        // Reading the body may have taken long.
        let signed_in = state.again(&signed_in, route)?;
        if route.body == RouteBody::Json {
            query::add_fields_of_body(route, &body, &mut fields)?;
        }
        query::check_required(route, &fields)?;
        let upgrade = match route.body {
            RouteBody::Socket => Some(upgrade(&mut parts).await?),
            _ => None,
        };
        let call = CallParts { route, headers: parts.headers, fields, body, upgrade, stream };
        let mut call = call.of(signed_in, state.clone());
        call.choose_owner()?;
        let _permit = match route.pace {
            RoutePace::Search => Some(state.limits.search().await?),
            _ => None,
        };
        let meter = call.meter().clone();
        let answer = (route.handler)(call).await;
        let answer = match meter.take_refusal() {
            Some(refusal) => Err(refusal),
            None => answer.and_then(|answer| answer.metered(meter)),
        };
        if route.right != AccessRight::Read {
            state.store().note_change();
        }
        answer
    };
    let late = |_| HttpProblem::busy("the answer takes too long; narrow the request", 5);
    timeout(route.pace.limit(), answered).await.map_err(late)?
}

/// The place of a request that stores `bytes`, or reads everything, until it is answered.
async fn place(
    state: &ServerState,
    route: &HttpRoute,
    by: &str,
    bytes: usize,
) -> Result<Option<RequestPlace>, HttpProblem> {
    Ok(match (route.pace, route.body) {
        (RoutePace::Scan, _) => Some(state.limits.scan(by)?),
        (RoutePace::Store, RouteBody::Stream(_)) => Some(state.limits.stream(by).await),
        (RoutePace::Store | RoutePace::Event, RouteBody::Bytes(_)) => {
            Some(state.limits.body(by, bytes).await?)
        }
        _ => None,
    })
}

/// The handshake of a WebSocket.
async fn upgrade(parts: &mut Parts) -> Result<WebSocketUpgrade, HttpProblem> {
    WebSocketUpgrade::from_request_parts(parts, &())
        .await
        .map_err(|rejection| HttpProblem::no_socket(&rejection.body_text()))
}

/// Refuses a client that is too old or too new. One that does not say its version is no program of ours.
fn check_version(headers: &HeaderMap) -> Result<(), HttpProblem> {
    let Some(client) = headers.get(VERSION_HEADER) else { return Ok(()) };
    let client = client.to_str().unwrap_or("?");
    if work_together(VERSION, client) { Ok(()) } else { Err(HttpProblem::other_version(client)) }
}

fn record(state: &ServerState, entry: &AuditEntry<'_>) {
    tracing::info!(
        request = entry.request,
        trace = entry.trace,
        route = entry.route.unwrap_or_default(),
        status = entry.status,
        ms = entry.ms,
        "answered"
    );
    if let Some(audit) = &state.audit {
        audit.add(entry);
    }
}

/// Answers a request for a route for everyone.
pub(crate) async fn answer_everyone(state: Arc<ServerState>, route: &'static OpenRoute) -> Response {
    let (status, body) = match route.page {
        OpenPage::Health => (StatusCode::OK, Body::from("ok\n")),
        OpenPage::Readiness if state.is_ready().await => (StatusCode::OK, Body::from("ready\n")),
        OpenPage::Readiness => (StatusCode::SERVICE_UNAVAILABLE, Body::from("not ready\n")),
        OpenPage::Description => (StatusCode::OK, Body::from(state.documentation.description())),
        OpenPage::Documentation => (StatusCode::OK, Body::from(state.documentation.page())),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(axum::http::header::CONTENT_TYPE, axum::http::HeaderValue::from_static(route.response));
    response
}

/// Answers a request for metrics on their own address.
pub(crate) async fn answer_metrics(state: Arc<ServerState>) -> Response {
    match state.metrics.text(&state).await {
        Ok(text) => {
            let mut response = Response::new(Body::from(text));
            let content_type = HeaderValue::from_static(OPEN_METRICS);
            response.headers_mut().insert(axum::http::header::CONTENT_TYPE, content_type);
            response
        }
        Err(problem) => problem.into_response(""),
    }
}

/// Answers a request for no route, or with a method that the route does not have. Who has not signed in does not learn
/// which routes there are.
pub(crate) async fn answer_unknown(
    state: Arc<ServerState>,
    request: Request,
    status: StatusCode,
) -> Response {
    let (parts, _) = request.into_parts();
    let RequestOrigin { id, peer } = RequestOrigin::of(&parts);
    let address = state.sign_in.client(&parts.headers, peer);
    let problem = match sign_in(&state, &parts.headers, peer, address) {
        Err(problem) => problem,
        Ok(_) if status == StatusCode::METHOD_NOT_ALLOWED => {
            HttpProblem::new(status, "method_not_allowed", "this path has no such method; /docs lists all")
        }
        Ok(_) => HttpProblem::new(status, "no_such_route", "there is nothing at this path; /docs lists all"),
    };
    problem.into_response(&id)
}
