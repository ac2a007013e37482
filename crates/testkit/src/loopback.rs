//! Common parts of the local servers: connections, and bodies that can be cut off.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::{
    Request, Response,
    body::{Body, Bytes, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

/// Serves with `respond` until it is dropped, which closes all connections. An error of `respond` closes the connection
/// without a response.
pub(crate) async fn serve<R, A>(listener: TcpListener, respond: R)
where
    R: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = io::Result<Response<Piece>>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                // Otherwise, a response of several pieces would wait for the acknowledgement of the client.
                let _ = stream.set_nodelay(true);
                let service = service_fn(respond.clone());
                connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
            // Removes closed connections.
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Counts a call until it is dropped, in a number that others wait for. A call whose client is gone is completed, too.
pub(crate) struct Counted<'a>(&'a watch::Sender<usize>);

impl<'a> Counted<'a> {
    pub(crate) fn new(calls: &'a watch::Sender<usize>) -> Self {
        calls.send_modify(|calls| *calls += 1);
        Self(calls)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls = calls.saturating_sub(1));
    }
}

/// A body in one piece, or half of it before the connection is closed.
#[derive(Debug)]
pub(crate) struct Piece {
    bytes: Option<Bytes>,
    /// The announced length.
    length: u64,
    cut: bool,
}

impl Piece {
    pub(crate) fn new(bytes: impl Into<Bytes>, cut: bool) -> Self {
        let bytes = bytes.into();
        let length = bytes.len();
        let sent = bytes.slice(..if cut { length / 2 } else { length });
        Self { bytes: Some(sent).filter(|bytes| cut || !bytes.is_empty()), length: length as u64, cut }
    }
}

impl Body for Piece {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(match self.bytes.take() {
            Some(bytes) => Some(Ok(Frame::data(bytes))),
            None if self.cut => Some(Err(io::Error::other("connection closed as scripted"))),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none() && !self.cut
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
