//! Parses event lines: fields, summary, and the stored form of the payload.

mod envelope;
mod fields;
mod identity;
mod payload;
mod summary;

pub use fields::{EventFields, parse_event_line};
pub(crate) use identity::{LoggedEvent, SAME_TIME, line_of_hook};
pub use payload::{CHUNK_BYTES, CHUNKED_ABOVE, COMPRESSED_ABOVE, MAX_LINE_BYTES, assemble, store, too_large};

/// The version of the rules of [`parse_event_line`]. It is incremented whenever the summary of a stored event may
/// change: stored summaries are then derived again.
pub const SUMMARIES: u32 = 5;
