//! Answers: JSON, or a stream of bytes.

use std::sync::Arc;

use amplifier_session_api::{ApiAnswer, Notice};
use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::{
    answer_meter::AnswerMeter,
    problem::HttpProblem,
    stream::{self, PIECE},
};

/// An answer of a handler.
#[derive(Debug)]
pub(crate) enum HttpAnswer {
    /// JSON.
    Json {
        /// The text.
        text: Vec<u8>,
        /// Its version for `If-None-Match`, if it is not that of the text.
        tag: Option<String>,
        /// The number of rows that it is about, for the audit log.
        rows: Option<u64>,
        /// The memory that it takes, until it is sent.
        meter: Option<Arc<AnswerMeter>>,
    },
    /// A stream, for a file with this name.
    Stream {
        /// The bytes.
        body: Body,
        /// The content type.
        content_type: &'static str,
        /// The name of the file.
        file: &'static str,
    },
    /// A response that is complete: that of another protocol.
    Whole(Response),
}

impl HttpAnswer {
    /// The object that the command line prints with `--json`, with remarks as data in its field `remarks`, if there are
    /// any.
    pub(crate) fn of<T: Serialize>(answer: &ApiAnswer<T>) -> Result<Self, HttpProblem> {
        let text = text(&answer.response)?;
        Ok(Self::Json { text: with_remarks(text, &answer.notices)?, tag: None, rows: None, meter: None })
    }

    /// An object.
    pub(crate) fn json(value: &impl Serialize) -> Result<Self, HttpProblem> {
        Ok(Self::Json { text: text(value)?, tag: None, rows: None, meter: None })
    }

    /// JSON that is already a text.
    pub(crate) fn text(text: Vec<u8>) -> Self {
        Self::Json { text, tag: None, rows: None, meter: None }
    }

    /// Sets the version.
    pub(crate) fn with_tag(self, version: Option<String>) -> Self {
        match self {
            Self::Json { text, rows, meter, .. } => Self::Json { text, tag: version, rows, meter },
            other => other,
        }
    }

    /// Sets the number of rows that were read or written, for the audit log; of sessions, if it lists or deletes them.
    pub(crate) fn with_rows(self, rows: u64) -> Self {
        match self {
            Self::Json { text, tag, meter, .. } => Self::Json { text, tag, rows: Some(rows), meter },
            other => other,
        }
    }

    /// Checks the size of the answer, and holds its memory until it is sent.
    pub(crate) fn metered(self, meter: Arc<AnswerMeter>) -> Result<Self, HttpProblem> {
        match self {
            Self::Json { text, tag, rows, .. } => {
                meter.count_text(text.len())?;
                Ok(Self::Json { text, tag, rows, meter: Some(meter) })
            }
            other => Ok(other),
        }
    }

    /// The number of rows, if it is known.
    pub(crate) fn rows(&self) -> Option<u64> {
        match self {
            Self::Json { rows, .. } => *rows,
            _ => None,
        }
    }

    /// The response, with this status unless it is that of another protocol. `is_kept` says whether clients may keep it to ask whether it has changed: `asked` are the headers
    /// of their request.
    pub(crate) fn into_response(self, status: StatusCode, is_kept: bool, asked: &HeaderMap) -> Response {
        match self {
            Self::Json { text, tag, meter, .. } => {
                let tag = is_kept.then(|| tag.unwrap_or_else(|| entity_tag(&text)));
                json_response(text, meter, tag, status, asked)
            }
            Self::Stream { body, content_type, file } => {
                let mut response = Response::new(body);
                *response.status_mut() = status;
                let headers = response.headers_mut();
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
                let disposition = format!("attachment; filename=\"{file}\"");
                if let Ok(disposition) = HeaderValue::try_from(disposition) {
                    headers.insert(header::CONTENT_DISPOSITION, disposition);
                }
                response
            }
            Self::Whole(response) => response,
        }
    }
}

fn json_response(
    text: Vec<u8>,
    meter: Option<Arc<AnswerMeter>>,
    tag: Option<String>,
    status: StatusCode,
    asked: &HeaderMap,
) -> Response {
    let mut response = match &tag {
        Some(tag) if names(asked.get(header::IF_NONE_MATCH), tag) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        _ => {
            let length = text.len();
            let body = match meter {
                Some(meter) if length > PIECE => stream::sent(text, meter.patience(), meter),
                _ => Body::from(text),
            };
            let mut response = Response::new(body);
            *response.status_mut() = status;
            response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
    };
    if let Some(tag) = tag.and_then(|tag| HeaderValue::try_from(tag).ok()) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// The tag of a text.
pub(crate) fn entity_tag(text: &[u8]) -> String {
    let mut tag = String::from("\"");
    for byte in Sha256::digest(text).iter().take(16) {
        tag.push_str(&format!("{byte:02x}"));
    }
    tag.push('"');
    tag
}

/// Whether the header lists the tag, or any with `*`.
pub(crate) fn names(header: Option<&HeaderValue>, tag: &str) -> bool {
    let Some(list) = header.and_then(|value| value.to_str().ok()) else { return false };
    list.split(',').map(str::trim).any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

fn text(value: &impl Serialize) -> Result<Vec<u8>, HttpProblem> {
    let unwritable = |error: serde_json::Error| HttpProblem::internal(format!("can't write JSON: {error}"));
    let text = serde_json::to_vec(value).map_err(unwritable)?;
    Ok(text)
}

/// The object `text` with another field.
fn with_remarks(mut text: Vec<u8>, remarks: &[Notice]) -> Result<Vec<u8>, HttpProblem> {
    if remarks.is_empty() || text.pop_if(|end| *end == b'}').is_none() {
        return Ok(text);
    }
    if text.last() != Some(&b'{') {
        text.push(b',');
    }
    text.extend_from_slice(b"\"remarks\":");
    text.append(&mut self::text(&remarks)?);
    text.push(b'}');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn remarks_are_a_field() {
        let notices = vec![Notice::TagNotFound { tag: "x".to_owned() }];
        for response in [json!({}), json!({"tags": []})] {
            let answer = ApiAnswer { response, notices: notices.clone() };
            let HttpAnswer::Json { text, .. } = HttpAnswer::of(&answer).unwrap() else { panic!("a stream") };
            let read: Value = serde_json::from_slice(&text).unwrap();
            assert_eq!(read["remarks"], json!([{"notice": "tag_not_found", "tag": "x"}]));
        }
    }

    #[test]
    fn what_has_not_changed_is_not_sent_again() {
        let asked = |tag: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, HeaderValue::try_from(tag).unwrap());
            let answer = HttpAnswer::json(&json!({"a": 1})).unwrap();
            answer.into_response(StatusCode::OK, true, &headers)
        };
        let tag = asked("\"x\"").headers()[header::ETAG].to_str().unwrap().to_owned();
        assert_eq!(asked("\"x\"").status(), StatusCode::OK);
        for same in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
            assert_eq!(asked(&same).status(), StatusCode::NOT_MODIFIED, "{same}");
        }
        let never = HttpAnswer::json(&json!({"a": 1})).unwrap().into_response(
            StatusCode::OK,
            false,
            &HeaderMap::new(),
        );
        assert!(!never.headers().contains_key(header::ETAG));
    }
}
