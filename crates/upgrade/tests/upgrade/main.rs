//! Files of the Python library become stores.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[cfg(feature = "duckdb")]
mod duckdb;
mod filling;
mod in_place;
mod reading;
mod support;
