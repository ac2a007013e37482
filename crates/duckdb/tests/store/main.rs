//! Tests that are specific to stores in a DuckDB file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod changes;
mod damage;
mod erasure;
mod hnsw;
mod opening;
mod processes;
mod sql;
mod support;
mod tables;
