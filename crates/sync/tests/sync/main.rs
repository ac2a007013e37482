//! What a sync promises, one test a promise.

#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

mod damage;
mod deletion;
mod events;
mod fixture;
mod metadata;
mod refresh;
mod resilience;
mod selection;
mod times;
mod transcript;
mod vectors;
