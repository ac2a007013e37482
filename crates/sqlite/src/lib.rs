//! The embedded default backend: rows in one SQLite file, search through the derived index beside it.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `schema.rs` | tables, and what makes a file ours |
//! | `pool.rs` | connections: one that writes, several that read |
//! | `write.rs` | the one transaction that writes a session |
//! | `sessions.rs`, `messages.rs`, `vectors.rs`, `events.rs` | reading and writing the rows of each table |
//! | `rows.rs`, `search.rs` | what the search index reads, and what it answers |
//! | `folding.rs` | when the search index is brought up to the rows |
//! | `error.rs` | SQLite's errors as ours |
//!
//! Many processes may use one file: readers see the last committed state, writers take turns.

mod backend;
mod error;
mod events;
mod folding;
mod messages;
mod pool;
mod rows;
mod schema;
mod search;
mod sessions;
mod vectors;
mod write;

pub use backend::SqliteBackend;
