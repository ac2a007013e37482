//! Bodies of requests that are read piece by piece, so that memory does not grow with them.

use std::{fmt, io};

use axum::{
    body::{Body, Bytes},
    http::HeaderMap,
};
use http_body_util::BodyExt as _;
use zstd::stream::raw::{DParameter, Decoder, Operation as _};

use crate::{
    body::{check_type, is_compressed},
    pace::BodyPace,
    problem::HttpProblem,
    settings::ServerLimits,
};

/// The size of a piece of a body that is decompressed.
const PIECE: usize = 256 * 1024;
/// The most memory that a compressed body may ask for, as a power of two: 4 MB. That is enough for zstd's levels up to 15.
const WINDOW: u32 = 22;

/// The body of a request, read piece by piece.
pub(crate) struct BodyStream {
    body: Body,
    decompression: Option<Decompression>,
    pace: BodyPace,
    /// The most bytes, after decompression.
    most: usize,
    read: usize,
}

impl fmt::Debug for BodyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyStream").field("read", &self.read).finish_non_exhaustive()
    }
}

impl BodyStream {
    /// A body of this content type.
    pub(crate) fn new(
        content_type: &str,
        headers: &HeaderMap,
        body: Body,
        limits: &ServerLimits,
    ) -> Result<Self, HttpProblem> {
        check_type(headers, content_type)?;
        let decompression = if is_compressed(headers)? { Some(Decompression::new()?) } else { None };
        Ok(Self { body, decompression, pace: BodyPace::new(limits), most: limits.streamed_body, read: 0 })
    }

    /// The next piece, decompressed; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, HttpProblem> {
        let piece = match &mut self.decompression {
            None => received(&mut self.body, &mut self.pace).await?.map(Vec::from),
            Some(decompression) => decompression.next(&mut self.body, &mut self.pace).await?,
        };
        self.read += piece.as_ref().map_or(0, Vec::len);
        if self.read > self.most {
            return Err(HttpProblem::too_large("the body, decompressed,", self.most));
        }
        Ok(piece)
    }
}

/// The next bytes that come over the network, which are never none.
async fn received(body: &mut Body, pace: &mut BodyPace) -> Result<Option<Bytes>, HttpProblem> {
    loop {
        match pace.wait(body.frame()).await? {
            None => return Ok(None),
            Some(Err(error)) => {
                return Err(HttpProblem::of_parameter("body", format!("it ended too soon: {error}")));
            }
            // Trailers have no bytes.
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) if !bytes.is_empty() => {
                    pace.received(bytes.len());
                    return Ok(Some(bytes));
                }
                _ => {}
            },
        }
    }
}

/// Decompresses a body into pieces of a limited size, whatever it claims to be.
struct Decompression {
    decoder: Decoder<'static>,
    /// What has come and is not decompressed.
    compressed: Bytes,
    /// Whether the decoder may have more without more input.
    has_more: bool,
    /// Whether the body may end here.
    is_complete: bool,
}

impl Decompression {
    fn new() -> Result<Self, HttpProblem> {
        let failed = |error: io::Error| HttpProblem::internal(format!("zstd can't be used: {error}"));
        let mut decoder = Decoder::new().map_err(failed)?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW)).map_err(failed)?;
        Ok(Self { decoder, compressed: Bytes::new(), has_more: false, is_complete: false })
    }

    async fn next(&mut self, body: &mut Body, pace: &mut BodyPace) -> Result<Option<Vec<u8>>, HttpProblem> {
        loop {
            if self.compressed.is_empty() && !self.has_more {
                match received(body, pace).await? {
                    Some(bytes) => self.compressed = bytes,
                    None if self.is_complete => return Ok(None),
                    None => return Err(HttpProblem::of_parameter("body", "it ended too soon")),
                }
            }
            let piece = self.decompressed().map_err(|error| {
                HttpProblem::of_parameter("body", format!("it is not valid zstd: {error}"))
            })?;
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
    }

    fn decompressed(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = vec![0; PIECE];
        let done = self.decoder.run_on_buffers(&self.compressed, &mut piece)?;
        let _decompressed = self.compressed.split_to(done.bytes_read);
        self.has_more = done.bytes_written == piece.len();
        // A frame ends here, and another one may follow.
        self.is_complete = done.remaining == 0;
        piece.truncate(done.bytes_written);
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(encoding: Option<&'static str>, body: Vec<u8>) -> Result<Vec<u8>, u16> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/jsonl".parse().unwrap());
        if let Some(encoding) = encoding {
            headers.insert("content-encoding", encoding.parse().unwrap());
        }
        let limits = ServerLimits { streamed_body: 1_000_000, ..ServerLimits::default() };
        let status = |problem: HttpProblem| problem.status().as_u16();
        let mut stream =
            BodyStream::new("application/jsonl", &headers, Body::from(body), &limits).map_err(status)?;
        let mut whole = Vec::new();
        while let Some(piece) = stream.next().await.map_err(status)? {
            assert!(piece.len() <= PIECE || encoding.is_none());
            whole.extend(piece);
        }
        Ok(whole)
    }

    #[tokio::test]
    async fn bodies_are_read_with_and_without_compression() {
        let text = b"one line\n".repeat(80_000);
        assert_eq!(read(None, text.clone()).await.unwrap(), text);
        let frames =
            [zstd::encode_all(&text[..9], 3).unwrap(), zstd::encode_all(&text[9..], 3).unwrap()].concat();
        assert_eq!(read(Some("zstd"), frames).await.unwrap(), text);
        assert_eq!(read(Some("gzip"), text).await, Err(415));
    }

    #[tokio::test]
    async fn what_is_no_whole_body_is_refused() {
        let compressed = zstd::encode_all(&b"one line\n".repeat(80_000)[..], 3).unwrap();
        assert_eq!(read(Some("zstd"), compressed[..compressed.len() - 1].to_vec()).await, Err(400));
        assert_eq!(read(Some("zstd"), b"not zstd".to_vec()).await, Err(400));
        assert_eq!(read(Some("zstd"), Vec::new()).await, Err(400));
        assert_eq!(read(None, Vec::new()).await, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn a_bomb_is_refused_before_it_is_decompressed() {
        let bomb = zstd::encode_all(&vec![b'a'; 50_000_000][..], 3).unwrap();
        assert!(bomb.len() < 10_000);
        assert_eq!(read(Some("zstd"), bomb).await, Err(413));
        // This one asks for 128 MB of memory.
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(27).unwrap();
        std::io::Write::write_all(&mut encoder, b"line\n").unwrap();
        assert_eq!(read(Some("zstd"), encoder.finish().unwrap()).await, Err(400));
    }
}
