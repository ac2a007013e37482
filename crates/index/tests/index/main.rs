//! Compares the index with a naive search of the same rows: with an index, with a tail, with both, and with damage.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that can't go on panics")]

mod concurrency;
mod damage;
mod filters;
mod kill;
mod lag;
mod model;
mod random;
mod removal;
mod steps;
mod store;
mod text;
mod vectors;
