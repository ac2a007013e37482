//! The bodies of answers.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::body::{Body, Bytes, Frame, SizeHint};

/// A body in one piece; or half of it, after which the connection ends.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: Option<Bytes>,
    /// The length that is announced.
    length: u64,
    cut: bool,
}

impl Piece {
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { length: bytes.len() as u64, bytes: Some(bytes).filter(|bytes| !bytes.is_empty()), cut: false }
    }

    pub(super) fn half(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let half = bytes.slice(..bytes.len() / 2);
        Self { length: bytes.len() as u64, bytes: Some(half), cut: true }
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
            None if self.cut => Some(Err(io::Error::other("cut as told"))),
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
