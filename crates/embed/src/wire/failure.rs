//! Errors from a service's responses.

use amplifier_session_core::{Error, ErrorField, ErrorKind, KnownPart};
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;

use super::wait;
use crate::Secret;

/// The maximum number of characters of a service's message that an error quotes.
const QUOTED_CHARACTERS: usize = 300;

/// The error for a response whose status is not 200.
///
/// | status | error |
/// | --- | --- |
/// | 401, 403 | `Authentication`, without the service's message: OpenAI quotes a part of the key in it |
/// | 400, 413, 422 | `Validation` if it is about one of the texts, otherwise `Embedding` |
/// | 408, 429, 5xx | `Embedding`, retryable, after the time that the service asks for |
/// | 429 for an exhausted quota, 501 | `Embedding` |
/// | others | `Embedding` |
///
/// A response with OpenAI's header `x-should-retry: false` is not retryable.
pub(super) fn refused(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    secret: Option<&Secret>,
) -> Error {
    let details = ErrorDetails::read(body, secret);
    let error = match status.as_u16() {
        401 | 403 => Error::new(
            ErrorKind::Authentication,
            details.without_words("the service rejects the credentials"),
        ),
        404 => permanent(&details, "the service has no such model, deployment or address"),
        429 if details.is_out_of_quota() => permanent(&details, "the account's quota is used up"),
        300..400 => permanent(&details, "the service redirects to another address; use its exact base URL"),
        501 => permanent(&details, "the service does not support embeddings"),
        413 => about_a_text(&details),
        400 | 422 | 500 if details.is_about_a_text(status) => about_a_text(&details),
        408 | 429 | 500.. => temporary(status, &details, headers),
        _ => permanent(&details, "the service rejects the request"),
    };
    with_request_id(error.with("status", status.as_u16()), headers, secret)
}

/// Adds the service's id of the request, which its support needs.
pub(super) fn with_request_id(error: Error, headers: &HeaderMap, secret: Option<&Secret>) -> Error {
    let names = ["x-request-id", "apim-request-id", "x-ms-request-id"];
    let id = names.into_iter().find_map(|name| headers.get(name)?.to_str().ok().filter(|id| is_plain(id)));
    match id {
        Some(id) => error.with("request", without(secret, id)),
        None => error,
    }
}

fn permanent(details: &ErrorDetails, message: &str) -> Error {
    Error::new(ErrorKind::Embedding, details.after(message))
}

fn about_a_text(details: &ErrorDetails) -> Error {
    Error::validation(ErrorField::Text, details.after("the service rejects a text"))
}

fn temporary(status: StatusCode, details: &ErrorDetails, headers: &HeaderMap) -> Error {
    let message = match status.as_u16() {
        429 => "too many requests",
        408 => "the service did not answer in time",
        _ => "the service failed",
    };
    let error = permanent(details, message);
    if headers.get("x-should-retry").is_some_and(|value| value == "false") {
        return error;
    }
    match wait::asked_for(headers) {
        Some(wait) => error.retryable_after(wait),
        None => error.retryable(),
    }
}

/// The content of an error response's body.
#[derive(Debug, Default)]
struct ErrorDetails {
    message: String,
    code: String,
    kind: String,
    param: String,
}

impl ErrorDetails {
    /// Reads the forms that OpenAI, Azure and compatible servers use: `{"error": {"message", "type", "param", "code"}}`,
    /// `{"error": "message"}` (Ollama), `{"statusCode", "message"}` (Azure's gateway), `{"detail": "message"}`, or plain
    /// text. The secret is removed.
    fn read(body: &[u8], secret: Option<&Secret>) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            let message = without(secret, &String::from_utf8_lossy(body));
            return Self { message, ..Self::default() };
        };
        let error = value.get("error").unwrap_or(&value);
        // A code may be a number, or null.
        let text = |name: &str| match error.get(name) {
            Some(Value::String(text)) => without(secret, text),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let message = match error.as_str() {
            Some(message) => without(secret, message),
            None => [text("message"), text("detail")]
                .into_iter()
                .find(|words| !words.is_empty())
                .unwrap_or_default(),
        };
        Self { message, code: text("code"), kind: text("type"), param: text("param") }
    }

    /// Whether the service rejects one of the texts and not the request as a whole, so that it may accept the other
    /// texts without that one. The code and the parameter decide, or else the words of the message.
    fn is_about_a_text(&self, status: StatusCode) -> bool {
        const CODES: [&str; 4] = [
            "content_filter",
            "context_length_exceeded",
            "max_tokens_per_request",
            "string_above_max_length",
        ];
        const WORDS: [&str; 6] =
            ["input", "context length", "too long", "too large", "exceed n_ctx", "content management policy"];
        const NOT_WORDS: [&str; 2] = ["dimensions", "encoding_format"];
        let message = self.message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            // This is how llama.cpp rejects a text longer than its batch.
            return message.contains("input") && message.contains("too large");
        }
        if CODES.contains(&self.code.as_str()) || self.param.starts_with("input") {
            return true;
        }
        self.param.is_empty() && says(&WORDS) && !says(&NOT_WORDS)
    }

    /// Whether waiting is useless: <https://platform.openai.com/docs/guides/error-codes>.
    fn is_out_of_quota(&self) -> bool {
        [&self.code, &self.kind]
            .into_iter()
            .any(|word| word == "insufficient_quota" || word == "billing_hard_limit_reached")
    }

    /// `message` followed by the service's message.
    fn after(&self, message: &str) -> String {
        let words = quoted(&self.message);
        if words.is_empty() { message.to_owned() } else { format!("{message}: {words}") }
    }

    /// `message` followed by the service's error code, if the code is a word.
    fn without_words(&self, message: &str) -> String {
        let is_name =
            self.code.len() > 3 && self.code.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        if is_name { format!("{message}: {}", self.code) } else { message.to_owned() }
    }
}

/// Removes the secret from `text`, in case a service repeats it.
fn without(secret: Option<&Secret>, text: &str) -> String {
    match secret.map(Secret::expose).filter(|secret| !secret.is_empty()) {
        Some(secret) => text.replace(secret, "***"),
        None => text.to_owned(),
    }
}

/// A service's message on one line, shortened.
fn quoted(words: &str) -> String {
    let mut line = words.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut text = line.next().unwrap_or_default().to_owned();
    for word in line {
        text.push(' ');
        text.push_str(word);
        if text.len() > 4 * QUOTED_CHARACTERS {
            break;
        }
    }
    match text.char_indices().nth(QUOTED_CHARACTERS) {
        Some((end, _)) => text.part(..end).to_owned() + "…",
        None => text,
    }
}

fn is_plain(id: &str) -> bool {
    (1..=128).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests;
