use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};

use super::*;

const KEY: &str = "sk-made-up-0123456789";

fn error(status: u16, body: &str) -> Error {
    error_with(status, body, &[])
}

fn error_with(status: u16, body: &str, headers: &[(&'static str, &'static str)]) -> Error {
    let headers = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    refused(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes(), Some(&Secret::new(KEY)))
}

fn said(message: &str, param: &str, code: &str) -> String {
    serde_json::json!({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})
        .to_string()
}

#[test]
fn a_rejected_text_is_a_validation_error() {
    let too_long = "This model's maximum context length is 8192 tokens, however you requested 8610 tokens";
    for (status, body) in [
        (400, said(too_long, "", "")),
        (400, said("Invalid 'input[3]': string too long", "input[3]", "string_above_max_length")),
        (400, said("'$.input' is invalid. Please check the API reference", "", "")),
        (400, said("The response was filtered", "prompt", "content_filter")),
        (400, r#"{"error":"the input length exceeds the context length"}"#.to_owned()),
        (413, "<html>413 Request Entity Too Large</html>".to_owned()),
        (422, r#"{"error":{"message":"inputs must have less than 512 tokens","code":422}}"#.to_owned()),
        (500, r#"{"error":{"code":500,"message":"input (992 tokens) is too large to process"}}"#.to_owned()),
    ] {
        let error = error(status, &body);
        assert_eq!(error.kind(), ErrorKind::Validation, "{status} {body}");
        assert!(!error.is_retryable());
    }
}

#[test]
fn a_rejected_request_is_not_a_validation_error() {
    for (status, body) in [
        (400, said("Invalid value for 'dimensions' = 4000", "dimensions", "")),
        (400, said("This model does not support specifying dimensions.", "", "")),
        (400, said("invalid model ID", "model", "")),
        (400, String::new()),
        (404, said("The model `x` does not exist or you do not have access to it.", "", "model_not_found")),
        (
            404,
            r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment does not exist."}}"#
                .to_owned(),
        ),
        (302, String::new()),
        (501, "This server does not support embeddings.".to_owned()),
        (204, String::new()),
    ] {
        let error = error(status, &body);
        assert_eq!(error.kind(), ErrorKind::Embedding, "{status} {body}");
        assert!(!error.is_retryable(), "{status} {body}");
        assert_eq!(error.context("status"), Some(status.to_string().as_str()));
    }
}

#[test]
fn temporary_failures_are_retryable_after_the_time_asked_for() {
    for status in [408, 429, 500, 502, 503, 504, 529] {
        let plain = error(status, "<html>busy</html>");
        assert_eq!((plain.kind(), plain.is_retryable()), (ErrorKind::Embedding, true), "{status}");
        assert_eq!(plain.retry_after(), None);
        let asked = error_with(status, "", &[("retry-after", "3")]);
        assert_eq!(asked.retry_after(), Some(Duration::from_secs(3)));
        assert!(!error_with(status, "", &[("x-should-retry", "false")]).is_retryable());
    }
}

#[test]
fn an_exhausted_quota_is_not_retryable() {
    let error = error_with(
        429,
        &said("You exceeded your current quota", "", "insufficient_quota"),
        &[("retry-after", "1")],
    );
    assert!(!error.is_retryable());
    assert!(error.to_string().contains("used up: You exceeded"), "{error}");
}

#[test]
fn errors_about_credentials_do_not_quote_the_service() {
    for status in [401, 403] {
        let body = said(&format!("Incorrect API key provided: {KEY}"), "", "invalid_api_key");
        let error = error(status, &body);
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Authentication, false));
        assert_eq!(
            error.to_string(),
            format!("the service rejects the credentials: invalid_api_key (status {status})")
        );
        let odd = error_with(status, &said("", "", KEY), &[]);
        assert!(!format!("{odd:?}").contains(KEY));
    }
}

#[test]
fn quoted_messages_are_shortened_and_contain_no_key() {
    let words = format!("bad\r\n\x1b[31m request with {KEY} {}", "é".repeat(5_000));
    let text = format!("{:?}", error(400, &said(&words, "user", "")));
    assert!(!text.contains(KEY) && !text.contains('\x1b'), "{text}");
    let shown = error(400, &said(&words, "user", ""));
    assert!(shown.message().chars().count() < QUOTED_CHARACTERS + 50);
    assert!(shown.message().ends_with('…'));
    assert!(error(503, &"x".repeat(100_000)).message().len() < 4 * QUOTED_CHARACTERS);
}

#[test]
fn errors_contain_the_request_id() {
    let error_of = |name, value| error_with(500, "", &[(name, value)]);
    assert_eq!(error_of("x-request-id", "req_12").context("request"), Some("req_12"));
    assert_eq!(error_of("apim-request-id", "a-1").context("request"), Some("a-1"));
    assert_eq!(error_of("x-request-id", "no such\u{9}id").context("request"), None);
}
