//! A stream of sessions that is being sent.

use std::io::{self, Write as _};

use amplifier_session_api::operations::write_rows::WriteRowsResponse;
use amplifier_session_core::{
    Error, ErrorKind, Result,
    storage::{ReceivedSession, RowSink, RowUpload},
};
use async_trait::async_trait;
use futures_util::stream;
use reqwest::Body;
use tokio::{sync::mpsc, task::JoinHandle};
use zstd::stream::write::Encoder;

use crate::http_store::{CONNECTION, HttpRequests};

/// The level of compression. Higher ones take longer than most networks.
const LEVEL: i32 = 3;
/// The size of a piece that is passed on.
const PIECE: usize = 64 * 1024;
/// The pieces that wait for the network. A slow network makes the sender wait.
const WAITING: usize = 4;

/// A piece of the body.
enum BodyPiece {
    Bytes(Vec<u8>),
    /// Nothing follows. Without it, the body is broken off, so that the server does not take a part for the whole.
    End,
}

/// A stream of sessions that is being sent. If it is dropped, the request is broken off.
pub(crate) struct HttpUpload {
    requests: HttpRequests,
    encoder: Encoder<'static, Vec<u8>>,
    pieces: mpsc::Sender<BodyPiece>,
    answering: JoinHandle<Result<Vec<ReceivedSession>>>,
}

impl HttpUpload {
    /// Begins a request.
    pub(crate) fn begin(requests: HttpRequests, include_deleted: bool) -> Result<Self> {
        let encoder = Encoder::new(Vec::new(), LEVEL).map_err(uncompressed)?;
        let (pieces, waiting) = mpsc::channel(WAITING);
        let answering = {
            let requests = requests.clone();
            tokio::spawn(async move {
                let response = requests.post_rows(body(waiting), include_deleted).await?;
                let answer: WriteRowsResponse = requests.decoded(response).await?;
                Ok(answer.sessions)
            })
        };
        Ok(Self { requests, encoder, pieces, answering })
    }

    /// Passes a piece on. If nobody takes it, the request has ended, and its answer has the reason.
    async fn pass_on(&self, piece: BodyPiece) -> Result<()> {
        self.pieces.send(piece).await.map_err(|_| {
            self.requests.named(Error::new(CONNECTION, "the server has ended the request").retryable())
        })
    }

    async fn end(&mut self) -> Result<()> {
        self.encoder.do_finish().map_err(uncompressed)?;
        let rest = std::mem::take(self.encoder.get_mut());
        self.pass_on(BodyPiece::Bytes(rest)).await?;
        self.pass_on(BodyPiece::End).await
    }
}

#[async_trait]
impl RowSink for HttpUpload {
    async fn put(&mut self, bytes: Vec<u8>) -> Result<()> {
        self.encoder.write_all(&bytes).map_err(uncompressed)?;
        if self.encoder.get_ref().len() < PIECE {
            return Ok(());
        }
        let piece = std::mem::take(self.encoder.get_mut());
        self.pass_on(BodyPiece::Bytes(piece)).await
    }
}

#[async_trait]
impl RowUpload for HttpUpload {
    async fn finish(mut self: Box<Self>) -> Result<Vec<ReceivedSession>> {
        let ended = self.end().await;
        let Self { pieces, answering, .. } = *self;
        drop(pieces);
        let answer = answering.await.unwrap_or_else(|source| {
            Err(Error::new(ErrorKind::StorageIo, "the request failed").with_source(source))
        })?;
        ended.map(|()| answer)
    }
}

/// The pieces as a body. It fails if they end without [`BodyPiece::End`].
fn body(pieces: mpsc::Receiver<BodyPiece>) -> Body {
    Body::wrap_stream(stream::unfold(Some(pieces), |pieces: Option<mpsc::Receiver<BodyPiece>>| async move {
        let mut pieces = pieces?;
        match pieces.recv().await {
            Some(BodyPiece::Bytes(bytes)) => Some((Ok(bytes), Some(pieces))),
            Some(BodyPiece::End) => None,
            None => Some((Err(io::Error::other("the stream was broken off")), None)),
        }
    }))
}

fn uncompressed(source: io::Error) -> Error {
    Error::new(ErrorKind::StorageIo, "the stream can't be compressed").with_source(source)
}
