//! From an event line to its fields, its summary and the stored form of its payload.

mod envelope;
mod fields;
mod payload;
mod summary;

pub(crate) use fields::normalised_type;
pub use fields::{EventFields, parse_event_line};
pub use payload::{CHUNK_BYTES, CHUNKED_ABOVE, COMPRESSED_ABOVE, MAX_LINE_BYTES, assemble, store};

/// Which rules [`parse_event_line`] follows. It grows whenever the summary of a stored event may come out otherwise than
/// before: the summaries in a store are then made anew.
pub const SUMMARIES: u32 = 3;
