//! Errors of the SDK become the project's.

use std::time::Duration;

use amplifier_session_core::{Error, ErrorKind};
use azure_data_cosmos::{CosmosError, SubStatusCode};

/// The error of an answer with this status code. `message` says what was asked for.
pub(crate) fn of_status(code: u16, message: String) -> Error {
    let kind = match code {
        401 | 403 => ErrorKind::Authentication,
        404 => ErrorKind::StorageConnection,
        409 | 412 | 449 => ErrorKind::Conflict,
        400 | 413 => ErrorKind::Validation,
        _ => ErrorKind::StorageIo,
    };
    let error = Error::new(kind, message).with("status", code);
    if is_temporary(code) { error.retryable() } else { error }
}

/// Whether the same request may succeed later: throttling, races, and a server that is away.
fn is_temporary(code: u16) -> bool {
    matches!(code, 408 | 409 | 410 | 412 | 429 | 449) || code >= 500
}

/// Whether the service was not there: it, or the way to it. Throttling is not that.
pub(crate) fn is_away(error: &CosmosError) -> bool {
    let code = u16::from(error.status().status_code());
    matches!(code, 408 | 410) || code >= 500
}

/// The error of a request that `doing` names, for example `reading a document`.
pub(crate) fn of_sdk(doing: &'static str, source: CosmosError) -> Error {
    let code = u16::from(source.status().status_code());
    let message = described(doing, &source);
    let error = match is_unreachable(&source) {
        true => Error::new(ErrorKind::StorageConnection, message).with("status", code).retryable(),
        false => of_status(code, message),
    };
    let error = match retry_after(&source) {
        Some(wait) if error.is_retryable() => error.retryable_after(wait),
        _ => error,
    };
    error.with_source(source)
}

/// The SDK's own sub-statuses for a connection that was not made: refused, no such host, no HTTP/2.
const UNREACHABLE: [SubStatusCode; 3] =
    [SubStatusCode::new(20010), SubStatusCode::new(20012), SubStatusCode::new(20015)];

fn is_unreachable(error: &CosmosError) -> bool {
    error.status().sub_status().is_some_and(|code| UNREACHABLE.contains(&code))
}

/// How long the service asks to wait (`x-ms-retry-after-ms`).
fn retry_after(error: &CosmosError) -> Option<Duration> {
    let headers = error.response()?.headers();
    headers.retry_after_ms.map(Duration::from_millis)
}

/// What went wrong with those of its causes that say something new: `Display` of the SDK's error leaves them out.
fn described(doing: &str, error: &CosmosError) -> String {
    let mut text = format!("{doing} in Cosmos DB failed");
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        let words = error.to_string();
        // Some go on with advice, in lines of their own.
        let line = words.lines().next().unwrap_or_default();
        if !text.contains(line) {
            text.push_str(": ");
            text.push_str(line);
        }
        cause = error.source();
    }
    text
}

/// A document that is not as we write them.
pub(crate) fn malformed(source: serde_json::Error) -> Error {
    Error::new(ErrorKind::StorageIo, format!("a document is not as this library writes them: {source}"))
        .with_source(source)
}

/// Somebody else wrote in between.
pub(crate) fn conflict() -> Error {
    Error::new(ErrorKind::Conflict, "the session was changed by somebody else").retryable()
}

/// A vector that can't be compared with those of the store.
pub(crate) fn other_dimensions(found: usize, held: usize) -> Error {
    Error::validation("vector", format!("has {found} dimensions, the store has {held}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_key_is_told_at_once_and_throttling_is_temporary() {
        let error = |code| of_status(code, String::new());
        for code in [401, 403] {
            assert!(error(code).kind() == ErrorKind::Authentication && !error(code).is_retryable());
        }
        for code in [429, 503, 408] {
            assert!(error(code).kind() == ErrorKind::StorageIo && error(code).is_retryable(), "{code}");
        }
        assert!(error(412).kind() == ErrorKind::Conflict && error(412).is_retryable());
        assert!(error(413).kind() == ErrorKind::Validation && !error(413).is_retryable());
    }
}
