//! What becomes of a write when the account, or the way to it, fails.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod broken_off;
mod limits;
mod one_batch;
mod races;
mod sign_in;
mod support;
mod throttling;
