//! Fuzz targets for everything that reads files and text from others.
//!
//! A [`Target`] is a function from bytes that panics when a promise is broken. The tests of this crate check the seeds of
//! each target and all files in `findings/`, then as many mutated seeds as fit into `FUZZ_SECONDS` (default: none).
//!
//! | file | contents |
//! | --- | --- |
//! | `targets/` | a file for each kind of input: its seeds, and what holds for every input |
//! | `target.rs` | runs a target, notices panics on all threads, and shortens and stores the input |
//! | `mutation.rs` | changes seeds |
//! | `workplace.rs` | the folders and stores that targets work in |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::missing_panics_doc,
    reason = "for tests: a broken promise is a panic"
)]

mod mutation;
mod target;
mod targets;
mod workplace;

pub use target::{Fuzzing, Target};
pub use targets::TARGETS;
