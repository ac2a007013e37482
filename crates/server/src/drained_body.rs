//! Bodies of requests that are answered before they have come.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, Bytes, HttpBody};
use futures_util::{Stream, StreamExt as _};
use http_body_util::BodyDataStream;
use tokio::{runtime::Handle, time::timeout};

/// The body of a request. What is left of it after the answer is read and thrown away, for as long as `patience`. If the
/// connection was closed instead, a client that is still writing would see that it broke, and not the answer, and would
/// send the same again.
pub(crate) fn drained<B>(body: B, patience: Duration) -> Body
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<axum::BoxError>,
{
    if body.is_end_stream() {
        return Body::empty();
    }
    Body::from_stream(DrainedBody { pieces: Some(BodyDataStream::new(body)), patience })
}

/// A body that is read to its end when it is dropped.
struct DrainedBody<S: Stream + Send + Unpin + 'static> {
    /// `None` after the end.
    pieces: Option<S>,
    patience: Duration,
}

impl<S: Stream + Send + Unpin + 'static> Stream for DrainedBody<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let next = self.pieces.as_mut().map_or(Poll::Ready(None), |pieces| pieces.poll_next_unpin(context));
        if matches!(next, Poll::Ready(None)) {
            self.pieces = None;
        }
        next
    }
}

impl<S: Stream + Send + Unpin + 'static> Drop for DrainedBody<S> {
    fn drop(&mut self) {
        // Without a runtime, the server is ending.
        if let (Some(mut pieces), Ok(runtime)) = (self.pieces.take(), Handle::try_current()) {
            let rest = async move { while pieces.next().await.is_some() {} };
            runtime.spawn(timeout(self.patience, rest));
        }
    }
}
