//! Writes during failures of the account or the network.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod broken_off;
mod limits;
mod one_batch;
mod races;
mod sign_in;
mod support;
mod throttling;
