//! When messages were written.
//!
//! Most transcript lines state no time. A message's time is, in this order:
//!
//! 1. its own;
//! 2. that of the event that belongs to it, see [`EventClock`];
//! 3. interpolated between the nearest messages before and after it whose times are known;
//! 4. the time at which the session began or ended, as its metadata or else its first and last event state it;
//! 5. the modification time of its file when the line was first seen.
//!
//! [`resolve`] finds all times of a session at once: what is known later (an event log that arrives behind the transcript)
//! corrects what was estimated before.

mod alignment;
mod clock;
mod line;
mod matching;
mod resolve;

#[cfg(test)]
mod tests;

pub(crate) use clock::EventClock;
pub(crate) use line::{LineTime, stated_time};
pub(crate) use resolve::{Bounds, resolve};
