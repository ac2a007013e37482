//! Bodies of requests: their content type, and their size before and after decompression.

use std::io::Read as _;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, StatusCode, header},
};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::task::spawn_blocking;

use crate::{pace::BodyPace, problem::HttpProblem, routes::RouteBody};

/// Reads the body of a request for a route, of at most `most` bytes, if it comes at this pace.
pub(crate) async fn read(
    kind: RouteBody,
    headers: &HeaderMap,
    body: Body,
    most: usize,
    pace: BodyPace,
) -> Result<Bytes, HttpProblem> {
    let expected = match kind {
        RouteBody::None | RouteBody::Socket => return Ok(Bytes::new()),
        RouteBody::Json => "application/json",
        RouteBody::Bytes(content_type) | RouteBody::Stream(content_type) => content_type,
    };
    let length =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > most) {
        return Err(HttpProblem::too_large("the body", most));
    }
    let bytes = collected(Limited::new(body, most), most, pace).await?;
    // A request without parameters needs no body.
    if !bytes.is_empty() || kind != RouteBody::Json {
        check_type(headers, expected)?;
    }
    if !is_compressed(headers)? {
        Ok(bytes)
    } else if kind == RouteBody::Json {
        Err(unsupported_encoding("zstd"))
    } else {
        decompressed(bytes, most).await
    }
}

/// A client that sends nothing more, or hardly anything, must not keep the memory for its body.
async fn collected(mut body: Limited<Body>, most: usize, mut pace: BodyPace) -> Result<Bytes, HttpProblem> {
    let mut bytes = Vec::new();
    while let Some(frame) = pace.wait(body.frame()).await? {
        let frame = frame.map_err(|error| {
            if error.is::<LengthLimitError>() {
                HttpProblem::too_large("the body", most)
            } else {
                HttpProblem::of_parameter("body", format!("it ended too soon: {error}"))
            }
        })?;
        // Trailers have no bytes.
        if let Ok(piece) = frame.into_data() {
            pace.received(piece.len());
            bytes.extend_from_slice(&piece);
        }
    }
    Ok(bytes.into())
}

/// Whether a body is compressed with zstd.
pub(crate) fn is_compressed(headers: &HeaderMap) -> Result<bool, HttpProblem> {
    match headers.get(header::CONTENT_ENCODING).map(|encoding| encoding.to_str().unwrap_or("?")) {
        None | Some("identity") => Ok(false),
        Some("zstd") => Ok(true),
        Some(other) => Err(unsupported_encoding(other)),
    }
}

fn unsupported_encoding(encoding: &str) -> HttpProblem {
    let detail = format!("the body is compressed with {encoding:?}, which is not read here");
    HttpProblem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_encoding", detail)
}

/// A form in a page of another site can send text, but no JSON.
pub(crate) fn check_type(headers: &HeaderMap, expected: &str) -> Result<(), HttpProblem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(expected) {
        return Ok(());
    }
    let detail = format!("the body must be {expected}, not {given:?}");
    Err(HttpProblem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_type", detail))
}

async fn decompressed(bytes: Bytes, most: usize) -> Result<Bytes, HttpProblem> {
    let read = move || {
        let wrong = |error: std::io::Error| {
            HttpProblem::of_parameter("body", format!("it is not valid zstd: {error}"))
        };
        let decoder = zstd::stream::read::Decoder::new(&*bytes).map_err(wrong)?;
        let mut text = Vec::new();
        // One byte more shows that there is more.
        decoder.take(most as u64 + 1).read_to_end(&mut text).map_err(wrong)?;
        if text.len() > most {
            return Err(HttpProblem::too_large("the decompressed body", most));
        }
        Ok(Bytes::from(text))
    };
    spawn_blocking(read).await.map_err(|error| HttpProblem::internal(error.to_string()))?
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LINES: RouteBody = RouteBody::Bytes("application/jsonl");

    async fn status(kind: RouteBody, headers: &[(&'static str, &'static str)], body: Vec<u8>) -> Option<u16> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let pace = BodyPace::within(Duration::from_secs(60));
        read(kind, &map, Body::from(body), 1_000, pace).await.err().map(|problem| problem.status().as_u16())
    }

    #[tokio::test]
    async fn bodies_have_their_type_and_at_most_their_size() {
        let json = &[("content-type", "application/json; charset=utf-8")][..];
        let lines = &[("content-type", "application/jsonl")][..];
        assert_eq!(status(RouteBody::Json, json, b"{}".to_vec()).await, None);
        assert_eq!(status(RouteBody::Json, &[], Vec::new()).await, None);
        assert_eq!(status(RouteBody::Json, &[], b"{}".to_vec()).await, Some(415));
        assert_eq!(
            status(RouteBody::Json, &[("content-type", "text/plain")], b"{}".to_vec()).await,
            Some(415)
        );
        assert_eq!(status(LINES, lines, vec![b'a'; 1_000]).await, None);
        assert_eq!(status(LINES, lines, vec![b'a'; 1_001]).await, Some(413));
    }

    #[tokio::test]
    async fn what_a_body_is_decompressed_to_is_counted() {
        let zstd = &[("content-type", "application/jsonl"), ("content-encoding", "zstd")][..];
        let compressed = |length: usize| zstd::encode_all(&vec![b'a'; length][..], 3).unwrap();
        assert_eq!(status(LINES, zstd, compressed(1_000)).await, None);
        let bomb = compressed(50_000_000);
        assert!(bomb.len() < 10_000);
        // It is refused before it is decompressed, or after 1,001 bytes.
        assert_eq!(status(LINES, zstd, bomb).await, Some(413));
        assert_eq!(status(LINES, zstd, compressed(1_001)).await, Some(413));
        assert_eq!(status(LINES, zstd, b"not zstd".to_vec()).await, Some(400));
        let gzip = &[("content-type", "application/jsonl"), ("content-encoding", "gzip")][..];
        assert_eq!(status(LINES, gzip, b"x".to_vec()).await, Some(415));
    }
}
