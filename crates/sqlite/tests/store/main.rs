//! What only a store in a file promises: what it leaves behind, and stores of earlier builds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod erasure;
mod layout;
mod support;
mod upgrade;
