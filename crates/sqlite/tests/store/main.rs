//! Tests that are specific to stores in a SQLite file: erasure and stores of earlier builds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod erasure;
mod layout;
mod support;
