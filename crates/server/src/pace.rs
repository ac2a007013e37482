//! The least rate of a body: a client that sends a byte now and then must not keep its place for hours.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use axum::http::StatusCode;
use tokio::time::timeout;

use crate::{problem::HttpProblem, settings::ServerLimits};

/// The bytes that must come in the time for a piece. Programs of this project send pieces of 64 KiB.
const LEAST: usize = 64_000;

/// The pace of a body. Only the time in which the server waits for the client counts.
#[derive(Debug)]
pub(crate) struct BodyPace {
    /// The time for [`LEAST`] bytes.
    window: Duration,
    left: Duration,
    received: usize,
}

impl BodyPace {
    pub(crate) fn new(limits: &ServerLimits) -> Self {
        Self::within(limits.piece)
    }

    /// A body of which [`LEAST`] bytes must come in this time.
    pub(crate) fn within(window: Duration) -> Self {
        Self { window, left: window, received: 0 }
    }

    /// Waits for the next bytes.
    pub(crate) async fn wait<T>(&mut self, next: impl Future<Output = T>) -> Result<T, HttpProblem> {
        let began = Instant::now();
        let next = timeout(self.left, next).await.map_err(|_| stalled())?;
        self.left = self.left.saturating_sub(began.elapsed());
        Ok(next)
    }

    /// Counts bytes that came.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.received += bytes;
        if self.received >= LEAST {
            *self = Self::within(self.window);
        }
    }
}

fn stalled() -> HttpProblem {
    let detail = "the body does not go on, or is too slow";
    HttpProblem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", detail).about("body")
}
