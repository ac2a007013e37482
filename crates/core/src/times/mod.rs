//! Derives when messages were written.
//!
//! Most transcript lines have no time. The time of a message is the first of these that is known:
//!
//! 1. its own time;
//! 2. the time of the event that belongs to it, see [`EventClock`];
//! 3. a time interpolated between the nearest messages with known times;
//! 4. the time when the session began or ended, from its metadata or else its first and last event;
//! 5. the modification time of its file when the line was first seen.
//!
//! [`resolve_all`] derives all times of a session at once, so that later data, such as an event log that arrives after the
//! transcript, corrects earlier estimates.

mod alignment;
mod clock;
mod cut;
mod line;
mod matching;
mod resolve;
mod seen;
mod settled;

#[cfg(test)]
mod settled_tests;
#[cfg(test)]
mod tests;

pub(crate) use clock::EventClock;
pub(crate) use cut::{Cut, cut};
pub(crate) use line::{LineTime, stated_time};
pub(crate) use resolve::Bounds;
#[cfg(test)]
use resolve::resolve;
pub(crate) use settled::{Resolved, Settled, Span, resolve_all};
