//! What a sync promises: one test for each promise.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod appending;
mod copies;
mod damage;
mod deletion;
mod events;
mod faults;
mod fixture;
mod hosts;
mod metadata;
mod posted;
mod random_edits;
mod refresh;
mod repositories;
mod resilience;
mod restore;
mod rewind;
mod roots;
mod secrets;
mod selection;
mod superseded;
mod times;
mod transcript;
mod two_logs;
mod unreadable;
mod vectors;
mod verify;
#[cfg(feature = "watch")]
mod watch;
