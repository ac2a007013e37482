//! Answers that are sent piece by piece: their client must read them at a least rate, and memory does not grow with those
//! that are written piece by piece.

use std::{
    io::{self, Write},
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use amplifier_session_core::{Error, ErrorKind, storage::RowSink};
use async_trait::async_trait;
use axum::body::{Body, Bytes};
use futures_util::stream;
use serde::Serialize;
use tokio::{
    runtime::Handle,
    sync::mpsc,
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};

use crate::problem::HttpProblem;

/// The size of a piece.
pub(crate) const PIECE: usize = 64 * 1024;
/// The pieces that wait for the client. A slow client makes the writer wait.
const WAITING: usize = 4;
/// The time between attempts to hand over a piece.
const PAUSE: Duration = Duration::from_millis(5);

/// A body with what `write` writes. The first piece, or the failure before it, is waited for, so that a failure has its
/// status. A later failure breaks the connection, so that the client does not take a part for the whole. The client has
/// `patience` to read each piece: one that never reads would otherwise keep a writer for ever.
pub(crate) async fn written<W>(patience: Duration, write: W) -> Result<Body, HttpProblem>
where
    W: AsyncFnOnce(&mut PieceWriter) -> Result<(), HttpProblem> + Send + 'static,
{
    let (sender, pieces) = sync_channel(WAITING);
    // A thread of its own, because the writer blocks it while the client is slow.
    let writing = spawn_blocking(move || {
        let mut writer = PieceWriter { sender, piece: Vec::new(), patience };
        Handle::current().block_on(async {
            write(&mut writer).await?;
            writer.flush().map_err(|error| HttpProblem::internal(error.to_string()))
        })
    });
    let (first, pieces) = next(pieces).await?;
    let Some(first) = first else {
        writing.await.map_err(|error| HttpProblem::internal(error.to_string()))??;
        return Ok(Body::empty());
    };
    let pieces = BodyPieces { first: Some(first), pieces: Some(pieces), writing: Some(writing) };
    Ok(Body::from_stream(stream::unfold(pieces, BodyPieces::next)))
}

/// A body with these bytes. `held` is dropped when they are sent, or when the client has not read a piece within `patience`.
pub(crate) fn sent(bytes: Vec<u8>, patience: Duration, held: impl Send + 'static) -> Body {
    let (sender, pieces) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        let held = held;
        let ends = bytes.chunks(PIECE).map(|piece| Some(Bytes::copy_from_slice(piece))).chain([None]);
        for piece in ends {
            // The client is gone, or does not read. The answer then lacks its end, which breaks the connection.
            let Ok(Ok(())) = timeout(patience, sender.send(piece)).await else { break };
        }
        drop((bytes, held));
    });
    Body::from_stream(stream::unfold(Some(pieces), |pieces: Option<mpsc::Receiver<Option<Bytes>>>| async {
        let mut pieces = pieces?;
        match pieces.recv().await {
            Some(Some(piece)) => Some((Ok(piece), Some(pieces))),
            Some(None) => None,
            None => Some((Err(io::Error::other("the client reads too slowly")), None)),
        }
    }))
}

/// The next piece, which is waited for on a thread for blocking work.
async fn next(pieces: Receiver<Bytes>) -> Result<(Option<Bytes>, Receiver<Bytes>), HttpProblem> {
    spawn_blocking(move || (pieces.recv().ok(), pieces))
        .await
        .map_err(|error| HttpProblem::internal(error.to_string()))
}

/// The rest of a body.
struct BodyPieces {
    first: Option<Bytes>,
    pieces: Option<Receiver<Bytes>>,
    writing: Option<JoinHandle<Result<(), HttpProblem>>>,
}

impl BodyPieces {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        if let Some(first) = self.first.take() {
            return Some((Ok(first), self));
        }
        let (piece, pieces) = next(self.pieces.take()?).await.ok()?;
        if let Some(piece) = piece {
            self.pieces = Some(pieces);
            return Some((Ok(piece), self));
        }
        match self.writing.take()?.await {
            Ok(Ok(())) => None,
            _ => Some((Err(io::Error::other("the answer could not be completed")), self)),
        }
    }
}

/// Writes an object on a line.
pub(crate) fn put_json(out: &mut PieceWriter, object: &impl Serialize) -> Result<(), HttpProblem> {
    let line = serde_json::to_string(object).map_err(|error| HttpProblem::internal(error.to_string()))?;
    writeln!(out, "{line}").map_err(|error| HttpProblem::internal(error.to_string()))
}

/// Writes pieces of a body. Fails if the client is gone, or does not read.
#[derive(Debug)]
pub(crate) struct PieceWriter {
    sender: SyncSender<Bytes>,
    piece: Vec<u8>,
    patience: Duration,
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let mut piece = Bytes::from(std::mem::take(&mut self.piece));
        let began = Instant::now();
        loop {
            piece = match self.sender.try_send(piece) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(piece)) if began.elapsed() < self.patience => piece,
                Err(TrySendError::Full(_)) => return Err(io::ErrorKind::TimedOut.into()),
                Err(TrySendError::Disconnected(_)) => return Err(io::ErrorKind::BrokenPipe.into()),
            };
            // The channel can't wait with a limit, and a client that is slow waits for far longer anyway.
            thread::sleep(PAUSE);
        }
    }
}

#[async_trait]
impl RowSink for PieceWriter {
    async fn put(&mut self, bytes: Vec<u8>) -> Result<(), Error> {
        self.write_all(&bytes)
            .map_err(|source| Error::new(ErrorKind::StorageIo, "the client is gone").with_source(source))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn what_is_written_arrives() {
        let body = written(PATIENCE, async |writer| {
            (0..50_000)
                .try_for_each(|line| writeln!(writer, "{line}"))
                .map_err(|_| HttpProblem::internal("closed"))
        });
        let bytes = body.await.unwrap().collect().await.unwrap().to_bytes();
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 50_000);
        let empty = written(PATIENCE, async |_| Ok(())).await.unwrap();
        assert!(empty.collect().await.unwrap().to_bytes().is_empty());
    }

    #[tokio::test]
    async fn a_failure_has_its_status_or_breaks_the_body() {
        let failed = written(PATIENCE, async |_| Err(HttpProblem::busy("x", 1))).await;
        assert_eq!(failed.unwrap_err().status().as_u16(), 503);
        let broken = written(PATIENCE, async |writer| {
            writer.write_all(&[b'x'; 2 * PIECE]).map_err(|_| HttpProblem::internal("closed"))?;
            Err(HttpProblem::busy("x", 1))
        });
        assert!(broken.await.unwrap().collect().await.is_err());
    }

    #[tokio::test]
    async fn the_writer_ends_when_the_client_is_gone() {
        let (ended, has_ended) = tokio::sync::oneshot::channel();
        let body = written(PATIENCE, async move |writer| {
            let written = (0..).try_for_each(|_| writer.write_all(&[b'x'; PIECE]));
            ended.send(written.is_err()).unwrap();
            Ok(())
        });
        drop(body.await.unwrap());
        assert!(has_ended.await.unwrap());
    }

    #[tokio::test]
    async fn bytes_are_sent_and_what_is_held_is_freed() {
        let held = std::sync::Arc::new(());
        let bytes = vec![b'x'; 10 * PIECE + 1];
        let body = sent(bytes.clone(), PATIENCE, held.clone());
        assert_eq!(body.collect().await.unwrap().to_bytes(), bytes);
        // A client that does not read: the body is broken, and keeps nothing.
        let body = sent(bytes.clone(), Duration::from_millis(1), held.clone());
        while std::sync::Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
        assert!(body.collect().await.is_err());
    }
}
