//! From an event line to its fields, its summary and the stored form of its payload.

mod envelope;
mod payload;
mod summary;

pub(crate) use envelope::normalised_type;
pub use envelope::{EventFields, parse_event_line};
pub use payload::{CHUNK_BYTES, CHUNKED_ABOVE, COMPRESSED_ABOVE, MAX_LINE_BYTES, assemble, store};
