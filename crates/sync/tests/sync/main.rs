//! What a sync promises, one test a promise.

mod events;
mod fixture;
mod metadata;
mod resilience;
mod selection;
mod transcript;
mod vectors;
