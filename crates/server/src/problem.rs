//! The reasons why a request has no answer, as `application/problem+json` (RFC 9457).

use amplifier_session_api::{
    AccessRight, ApiError, InvalidRequest, releases::VERSION, remote::ERROR_FIELD, with_causes,
};
use amplifier_session_core::{CHANGED_SINCE, Error, ErrorField, ErrorKind, HELD_BY};
use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use serde_json::{Map, Value, json};

use crate::routes::{HttpRoute, fields_to_names};

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) struct HttpProblem(Box<ProblemParts>);

#[derive(Debug)]
struct ProblemParts {
    status: StatusCode,
    /// The end of the type, one word in `snake_case`.
    kind: &'static str,
    detail: String,
    /// The parameter that it is about.
    field: Option<String>,
    is_retryable: bool,
    /// Seconds.
    retry_after: Option<u64>,
    authenticate: Option<&'static str>,
    more: Map<String, Value>,
    /// For the log of the server only.
    logged: Option<String>,
}

impl HttpProblem {
    pub(crate) fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        Self(Box::new(ProblemParts {
            status,
            kind,
            detail: detail.into(),
            field: None,
            is_retryable: false,
            retry_after: None,
            authenticate: None,
            more: Map::new(),
            logged: None,
        }))
    }

    /// The request uses names that are not those of the server.
    pub(crate) fn foreign(detail: &str) -> Self {
        let hint =
            "use the address that `serve` prints, or start it with --public-url and the address that you use";
        Self::new(StatusCode::FORBIDDEN, "foreign_host", format!("{detail}; {hint}"))
    }

    /// The caller has not signed in.
    pub(crate) fn unauthenticated(detail: &str, authenticate: &'static str) -> Self {
        let mut problem = Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail);
        problem.0.authenticate = Some(authenticate);
        problem
    }

    /// The caller lacks a right.
    pub(crate) fn missing_right(right: AccessRight) -> Self {
        let detail = format!("the token has no right to {}", right.as_str());
        let problem = Self::new(StatusCode::FORBIDDEN, "missing_right", detail);
        problem.with("right", right.as_str())
    }

    /// The client has this version, which does not work with that of the server.
    pub(crate) fn other_version(client: &str) -> Self {
        let detail = format!(
            "the client has version {client:?} and this server {VERSION}, and they must be at most one release apart; \
             update the older one"
        );
        Self::new(StatusCode::BAD_REQUEST, "unsupported_version", detail)
            .with("client", client)
            .with("server", VERSION)
    }

    /// A parameter is wrong.
    pub(crate) fn of_parameter(name: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "validation", detail).about(name)
    }

    /// A part of the request is too large.
    pub(crate) fn too_large(what: &str, most: usize) -> Self {
        let detail = format!("{what} is larger than {most} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail).with("limit", most)
    }

    /// The session has changed since the client has seen it.
    pub(crate) fn changed() -> Self {
        let detail = "the session has changed since the version in If-Match; read it again";
        Self::new(StatusCode::PRECONDITION_FAILED, "changed", detail)
    }

    /// The request is no handshake of a WebSocket.
    pub(crate) fn no_socket(reason: &str) -> Self {
        let detail = format!("this route speaks WebSocket over HTTP/1.1: {reason}");
        Self::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", detail)
    }

    /// The server has too much to do.
    pub(crate) fn busy(detail: &str, seconds: u64) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).retry_after(seconds)
    }

    /// The caller sends too many requests.
    pub(crate) fn too_many(detail: &str, seconds: u64) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail).retry_after(seconds)
    }

    /// Something is wrong with the server. `logged` is only for its log.
    pub(crate) fn internal(logged: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", IN_LOG);
        problem.0.logged = Some(logged.into());
        problem
    }

    /// An error of an operation. It is about the parameters of `route`.
    pub(crate) fn of_operation(error: ApiError, route: &HttpRoute) -> Self {
        let mut problem = match error {
            ApiError::Invalid(invalid) => of_request(&invalid),
            ApiError::MissingRight(right) => Self::missing_right(right),
            ApiError::BeyondReach { requested, reach } => {
                let (requested, reach) = (requested.as_str(), reach.as_str());
                let detail = format!("the token reaches {reach} sessions, not {requested}");
                Self::new(StatusCode::FORBIDDEN, "beyond_reach", detail).about("scope").with("reach", reach)
            }
            ApiError::NotTheUser { .. } => {
                Self::new(StatusCode::FORBIDDEN, "not_the_user", "the store is another user's")
            }
            ApiError::OnlyOthersHaveSessions { .. } => session_not_found(),
            ApiError::Storage(error) => of_store(&error),
        };
        let field = problem.0.field.take();
        problem.0.field = field.map(|field| fields_to_names(route, &field));
        problem
    }

    /// As [`Self::of_operation`], with the error itself, unless it is about the server.
    pub(crate) fn with_error_of(error: ApiError, route: &HttpRoute) -> Self {
        let data = serde_json::to_value(&error);
        let problem = Self::of_operation(error, route);
        match data {
            Ok(data) if problem.0.logged.is_none() => problem.with(ERROR_FIELD, data),
            _ => problem,
        }
    }

    pub(crate) fn about(mut self, name: &str) -> Self {
        self.0.field = Some(name.to_owned());
        self
    }

    pub(crate) fn without_field(mut self) -> Self {
        self.0.field = None;
        self
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.more.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.0.is_retryable = true;
        self.0.retry_after = Some(seconds.max(1));
        self
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    #[cfg(test)]
    pub(crate) fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// The fields of the problem, without the id of the request.
    pub(crate) fn object(&self) -> Value {
        let mut object = json!({
            "type": format!("urn:amplifier-sessions:{}", self.0.kind),
            "title": self.0.status.canonical_reason().unwrap_or_default(),
            "status": self.0.status.as_u16(),
            "detail": self.0.detail,
            "kind": self.0.kind,
            "retryable": self.0.is_retryable,
        });
        if let Some(object) = object.as_object_mut() {
            object.extend(self.0.field.iter().map(|field| ("field".to_owned(), field.as_str().into())));
            object.extend(self.0.more.clone());
        }
        object
    }

    /// Writes what is only for the log of the server, with the id of the request.
    pub(crate) fn log(&self, request_id: &str) {
        if let Some(logged) = &self.0.logged {
            tracing::error!(request = request_id, error = logged.as_str(), "request failed");
        }
    }

    /// The response, for the request with this id.
    pub(crate) fn into_response(self, request_id: &str) -> Response {
        self.log(request_id);
        let mut object = self.object();
        object["instance"] = request_id.into();
        let mut response = Response::new(Body::from(object.to_string()));
        *response.status_mut() = self.0.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(authenticate) = self.0.authenticate {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(authenticate));
        }
        if let Some(seconds) = self.0.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.0.status == StatusCode::UPGRADE_REQUIRED {
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        }
        response
    }
}

/// Details of the server's own errors may contain paths and SQL.
const IN_LOG: &str = "the server can't answer; its log has the reason, with the id in `instance`";

/// The same for sessions of others and of nobody.
fn session_not_found() -> HttpProblem {
    HttpProblem::new(StatusCode::NOT_FOUND, "session_not_found", "no session in this scope has this address")
}

fn of_request(invalid: &InvalidRequest) -> HttpProblem {
    let field = match invalid {
        InvalidRequest::NotADate { .. } | InvalidRequest::EndsBeforeItBegins { .. } => Some("until"),
        InvalidRequest::UnknownTimeZone { .. } => Some("tz"),
        InvalidRequest::NoTurns { .. } => Some("max_turns"),
        InvalidRequest::NothingToList => Some("limit"),
        InvalidRequest::NotACursor { .. } => Some("after"),
        InvalidRequest::BudgetTooSmall { .. } => Some("budget"),
        InvalidRequest::AgeInTheFuture { .. } => Some("older_than"),
        InvalidRequest::NoRepository { .. } => Some("repo"),
        InvalidRequest::WrongSummary { .. } => Some("summaries"),
        InvalidRequest::NamesMessage { .. }
        | InvalidRequest::NamesEvent { .. }
        | InvalidRequest::PlaceNamedTwice { .. }
        | InvalidRequest::NoPlaceNamed { .. } => Some("session"),
        _ => None,
    };
    // A date can be the beginning or the end.
    let field = if matches!(invalid, InvalidRequest::NotADate { .. }) { None } else { field };
    let problem = HttpProblem::new(StatusCode::BAD_REQUEST, "validation", invalid.to_string());
    match field {
        Some(field) => problem.about(field),
        None => problem,
    }
}

fn of_store(error: &Error) -> HttpProblem {
    let kind = error.kind();
    if error.context(CHANGED_SINCE).is_some() {
        return HttpProblem::changed();
    }
    let status = match kind {
        ErrorKind::SessionNotFound => return session_not_found(),
        ErrorKind::Validation if is_about_request(error) => StatusCode::BAD_REQUEST,
        ErrorKind::SessionExists | ErrorKind::Conflict | ErrorKind::Rewind => StatusCode::CONFLICT,
        ErrorKind::EventTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        ErrorKind::StorageConnection | ErrorKind::Embedding => StatusCode::SERVICE_UNAVAILABLE,
        _ if is_full(error) => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let is_ours = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
    let detail = match status {
        StatusCode::INSUFFICIENT_STORAGE => {
            "the disk of the server is full; what is stored can still be read"
        }
        _ if is_ours => IN_LOG,
        _ => error.message(),
    };
    let mut problem = HttpProblem::new(status, kind.as_str(), detail);
    problem.0.is_retryable = error.is_retryable();
    problem.0.field = error.field().map(|field| field.as_str().to_owned());
    problem.0.logged = is_ours.then(|| with_causes(error));
    match status {
        StatusCode::SERVICE_UNAVAILABLE => {
            let seconds = error.retry_after().map_or(5, |wait| wait.as_secs());
            problem.retry_after(seconds)
        }
        _ if error.context(HELD_BY).is_some() => problem.retry_after(1),
        _ => problem,
    }
}

/// Whether an invalid value comes from the request, and not from the store or its configuration.
fn is_about_request(error: &Error) -> bool {
    error.field().is_some_and(|field| {
        field.is_argument()
            || matches!(
                field,
                ErrorField::Event
                    | ErrorField::HostId
                    | ErrorField::Line
                    | ErrorField::Lines
                    | ErrorField::MessageId
                    | ErrorField::Path
                    | ErrorField::Reason
                    | ErrorField::Role
                    | ErrorField::Seen
                    | ErrorField::Source
                    | ErrorField::StartSequence
                    | ErrorField::Text
                    | ErrorField::Texts
                    | ErrorField::Vector
                    | ErrorField::Visibility
                    | ErrorField::Archive
            )
    })
}

/// Whether the disk is full: the cause is an error of the system, or SQLite's words for it.
fn is_full(error: &Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let of_system = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        if of_system == Some(std::io::ErrorKind::StorageFull) || error.to_string().contains("disk is full") {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(error: Error) -> u16 {
        of_store(&error).0.status.as_u16()
    }

    #[test]
    fn kinds_of_errors_have_their_status() {
        assert_eq!(status(Error::session_not_found("x")), 404);
        assert_eq!(status(Error::validation(ErrorField::Tags, "too long")), 400);
        // The configuration of the server.
        assert_eq!(status(Error::validation(ErrorField::Dimensions, "differ")), 500);
        for (kind, expected) in [
            (ErrorKind::SessionExists, 409),
            (ErrorKind::Conflict, 409),
            (ErrorKind::Rewind, 409),
            (ErrorKind::EventTooLarge, 413),
            (ErrorKind::Unsupported, 501),
            (ErrorKind::StorageConnection, 503),
            (ErrorKind::Embedding, 503),
            (ErrorKind::StorageIo, 500),
            (ErrorKind::Damaged, 500),
            (ErrorKind::Authentication, 500),
        ] {
            assert_eq!(status(Error::new(kind, "x")), expected, "{kind}");
        }
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert_eq!(status(Error::new(ErrorKind::StorageIo, "can't write").with_source(full)), 507);
    }

    #[test]
    fn details_of_server_errors_are_not_sent() {
        let error = Error::new(ErrorKind::StorageIo, "/srv/store.sqlite: SELECT secret FROM t");
        let problem = of_store(&error);
        assert_eq!(problem.0.detail, IN_LOG);
        assert!(problem.0.logged.is_some_and(|logged| logged.contains("/srv/store.sqlite")));
    }

    #[test]
    fn errors_that_pass_say_when_to_try_again() {
        let problem = of_store(&Error::new(ErrorKind::StorageConnection, "down").retryable());
        assert_eq!((problem.0.retry_after, problem.0.is_retryable), (Some(5), true));
    }
}
