//! Answers of a server that are no success, as errors.

use std::time::Duration;

use amplifier_session_api::ApiError;
use amplifier_session_core::{Error, ErrorField, ErrorKind};
use reqwest::{
    StatusCode,
    header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER},
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The most characters of the server's words in an error.
const QUOTED: usize = 400;

/// What a server says about a request that failed (RFC 9457).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServerProblem {
    kind: String,
    detail: String,
    /// The id of the request, which is in the log of the server.
    instance: String,
    retryable: bool,
    /// The right that the token lacks.
    right: String,
    /// The error of the operation, if the request was for one.
    #[serde(deserialize_with = "known_error")]
    error: Option<ApiError>,
}

/// The error, if this version knows it.
fn known_error<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ApiError>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

/// The error for an answer with another status than 200, in the words of the server. Its cause is that of an operation.
pub(crate) fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
    let is_problem = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("application/problem+json"));
    let problem: Option<ServerProblem> = is_problem.then(|| serde_json::from_slice(body).ok()).flatten();
    let Some(problem) = problem else { return of_other_program(status, headers) };
    let error = error(status, &problem).with("status", status.as_u16());
    let error = match quoted(&problem.instance) {
        id if id.is_empty() => error,
        id => error.with("request", id),
    };
    let error = match problem.error {
        Some(cause) => error.with_source(cause),
        None => error,
    };
    let passes = problem.retryable || status == StatusCode::TOO_MANY_REQUESTS;
    if passes { retryable(error, headers) } else { error }
}

fn error(status: StatusCode, ServerProblem { kind, detail, right, .. }: &ServerProblem) -> Error {
    let detail = quoted(detail);
    match status.as_u16() {
        401 => Error::new(ErrorKind::Authentication, format!("the server does not know the token: {detail}"))
            .with_hint("`token list` on the server shows its tokens, and `token create` makes one"),
        403 if kind == "missing_right" => Error::new(ErrorKind::Authentication, detail).with_hint(format!(
            "`token create --rights {}` on the server makes a token with more rights",
            rights(right)
        )),
        403 => Error::new(ErrorKind::Authentication, detail),
        404 if kind == "session_not_found" => Error::new(ErrorKind::SessionNotFound, detail),
        404 | 405 => Error::new(
            ErrorKind::StorageConnection,
            "the server does not know this request: it may be too old",
        ),
        400 if kind == "validation" => Error::validation(ErrorField::Archive, detail),
        409 => Error::new(ErrorKind::Conflict, detail),
        429 | 502..=504 | 400 => Error::new(ErrorKind::StorageConnection, detail),
        _ => Error::new(ErrorKind::StorageIo, detail),
    }
}

/// The usual rights of a token that has also this one.
fn rights(right: &str) -> &'static str {
    match right {
        "delete" => "read,write,delete",
        "admin" => "read,write,delete,admin",
        _ => "read,write",
    }
}

/// The answer of something else at this address, such as a proxy whose server is down.
fn of_other_program(status: StatusCode, headers: &HeaderMap) -> Error {
    let error =
        Error::new(ErrorKind::StorageConnection, format!("the answer is {status}, not one of `serve`"))
            .with("status", status.as_u16());
    match status.as_u16() {
        429 | 502..=504 => retryable(error, headers),
        300..400 => error.with_hint("use the address to which it redirects: tokens do not follow redirects"),
        _ => error,
    }
}

fn retryable(error: Error, headers: &HeaderMap) -> Error {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    match seconds {
        Some(seconds) => error.retryable_after(Duration::from_secs(seconds)),
        None => error.retryable(),
    }
}

/// The words of a server on one line, shortened: it may be any server.
fn quoted(words: &str) -> String {
    let line: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(QUOTED).collect();
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(status: u16, kind: &str, retryable: bool, wait: Option<&'static str>) -> Error {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "application/problem+json".parse().unwrap());
        headers.extend(wait.map(|wait| (RETRY_AFTER, wait.parse().unwrap())));
        let body = json!({"kind": kind, "detail": "the\nreason", "instance": "x1", "retryable": retryable});
        refused(StatusCode::from_u16(status).unwrap(), &headers, body.to_string().as_bytes())
    }

    #[test]
    fn errors_have_the_words_of_the_server() {
        for (status, kind, expected) in [
            (401, "unauthenticated", ErrorKind::Authentication),
            (403, "missing_right", ErrorKind::Authentication),
            (404, "session_not_found", ErrorKind::SessionNotFound),
            (400, "validation", ErrorKind::Validation),
            (400, "unsupported_version", ErrorKind::StorageConnection),
            (409, "conflict", ErrorKind::Conflict),
            (413, "too_large", ErrorKind::StorageIo),
            (500, "internal", ErrorKind::StorageIo),
            (507, "storage_io", ErrorKind::StorageIo),
        ] {
            let error = of(status, kind, false, None);
            assert_eq!((error.kind(), error.is_retryable()), (expected, false), "{kind}");
            assert!(
                error.to_string().contains("the reason") && error.to_string().contains("request x1"),
                "{error}"
            );
        }
        assert!(of(404, "no_such_route", false, None).message().contains("too old"));
    }

    #[test]
    fn the_cause_is_the_error_of_the_operation() {
        let of = |error: Value| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, "application/problem+json".parse().unwrap());
            let body = json!({"kind": "session_not_found", "detail": "none", "error": error});
            let error = refused(StatusCode::NOT_FOUND, &headers, body.to_string().as_bytes());
            std::error::Error::source(&error).map(ToString::to_string)
        };
        let error = ApiError::Storage(Error::session_not_found("7f3c"));
        let data = serde_json::to_value(&error).unwrap();
        assert_eq!(of(data), Some(error.to_string()));
        assert_eq!((of(json!({"of_tomorrow": 1})), of(Value::Null)), (None, None));
    }

    #[test]
    fn what_passes_is_worth_another_attempt() {
        assert_eq!(of(503, "busy", true, Some("7")).retry_after(), Some(Duration::from_secs(7)));
        assert!(of(429, "too_many_requests", true, None).is_retryable());
        let proxy = refused(StatusCode::BAD_GATEWAY, &HeaderMap::new(), b"<html>");
        assert!(proxy.is_retryable() && proxy.message().contains("502 Bad Gateway"), "{proxy}");
        assert!(!refused(StatusCode::FOUND, &HeaderMap::new(), b"").is_retryable());
        assert!(!refused(StatusCode::OK, &HeaderMap::new(), b"").is_retryable());
    }
}
