//! Maps errors of the SDK to ours.

use std::time::Duration;

use amplifier_session_core::{Error, ErrorKind, Result};
use azure_data_cosmos::{CosmosError, SubStatusCode};

/// The error of an answer with this status code. `message` names the request.
pub(crate) fn of_status(code: u16, message: String, retry_after: Option<Duration>) -> Error {
    let kind = match code {
        401 | 403 => ErrorKind::Authentication,
        404 => ErrorKind::StorageConnection,
        409 | 412 | 449 => ErrorKind::Conflict,
        400 | 413 => ErrorKind::Validation,
        _ => ErrorKind::StorageIo,
    };
    let error = Error::new(kind, message).with("status", code);
    match retry_after {
        _ if !is_temporary(code) => error,
        Some(wait) => error.retryable_after(wait),
        None => error.retryable(),
    }
}

/// Whether the same request may succeed later: throttling, races, and an unavailable service.
fn is_temporary(code: u16) -> bool {
    matches!(code, 408 | 409 | 410 | 412 | 429 | 449) || code >= 500
}

pub(crate) fn status(error: &CosmosError) -> u16 {
    error.status().status_code().into()
}

/// Whether the service, or the network, was unavailable. Throttling does not count.
pub(crate) fn is_unavailable(error: &CosmosError) -> bool {
    let code = status(error);
    matches!(code, 408 | 410) || code >= 500
}

/// The error of a request. `request` names it, for example `reading a document`.
pub(crate) fn of_sdk(request: &'static str, source: CosmosError) -> Error {
    let (code, message) = (status(&source), describe(request, &source));
    let error = if is_unreachable(&source) {
        Error::new(ErrorKind::StorageConnection, message).with("status", code).retryable()
    } else {
        let wait = source.response().and_then(|response| response.headers().retry_after_ms);
        of_status(code, message, wait.map(Duration::from_millis))
    };
    error.with_source(source)
}

/// The SDK's own codes for a connection that could not be established: refused, unknown host, no HTTP/2.
const UNREACHABLE: [SubStatusCode; 3] =
    [SubStatusCode::new(20010), SubStatusCode::new(20012), SubStatusCode::new(20015)];

fn is_unreachable(error: &CosmosError) -> bool {
    error.status().sub_status().is_some_and(|code| UNREACHABLE.contains(&code))
}

/// A description of the error with its causes, which `Display` of the SDK's error leaves out. Avoids repetitions.
fn describe(request: &str, error: &CosmosError) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.fold(format!("{request} in Cosmos DB failed"), |text, cause| {
        let message = cause.to_string();
        // Further lines of a message are advice.
        let line = message.lines().next().unwrap_or_default();
        if text.contains(line) { text } else { format!("{text}: {line}") }
    })
}

/// The error for a document that cannot be read.
pub(crate) fn malformed(source: serde_json::Error) -> Error {
    Error::new(ErrorKind::StorageIo, format!("a document has an unexpected form: {source}"))
        .with_source(source)
}

/// The error for a write of another process in the meantime.
pub(crate) fn conflict() -> Error {
    Error::new(ErrorKind::Conflict, "another process wrote at the same time").retryable()
}

/// [`conflict`], unless `is_current`.
pub(crate) fn check(is_current: bool) -> Result<()> {
    if is_current { Ok(()) } else { Err(conflict()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_key_is_permanent_and_throttling_is_temporary() {
        let error = |code| of_status(code, String::new(), None);
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
