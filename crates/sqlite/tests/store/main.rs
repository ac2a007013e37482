//! Tests that are specific to stores in a SQLite file: erasure, sessions to and from another file, a full disk, damaged pages, the log, and stores of earlier builds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod changes;
mod erasure;
mod exchange;
mod full_disk;
mod layout;
mod log;
mod pages;
mod support;
