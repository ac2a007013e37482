//! The rules, against files from outside the project.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod outside;
