//! The embedded default backend: rows in one SQLite file, search through the derived index beside it.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `tables.rs`, `schema.rs` | tables and indexes; what makes a file ours, and how an earlier layout is brought up |
//! | `pool.rs` | connections: one that writes, several that read |
//! | `read_only.rs` | files that can't be written |
//! | `write.rs` | the one transaction that writes a session |
//! | `sessions.rs`, `messages.rs`, `vectors.rs`, `events.rs` | reading and writing the rows of each table |
//! | `conditions.rs`, `columns.rs` | how SQLite keeps what `amplifier-session-sql` asks for and reads |
//! | `event_counts.rs` | counting events |
//! | `python.rs` | files of the Python library: told from others, read, and upgraded |
//! | `functions.rs` | functions of the library that SQL calls |
//! | `rows.rs` | what the search index reads |
//! | `error.rs` | SQLite's errors as ours |
//!
//! Many processes may use one file: readers see the last committed state, writers take turns.

mod backend;
mod columns;
mod error;
mod event_counts;
mod events;
mod functions;
mod messages;
#[cfg(test)]
mod plans;
mod pool;
mod python;
mod read_only;
mod reader;
mod rows;
mod schema;
mod sessions;
mod tables;
mod vectors;
mod write;

pub use backend::{Sqlite, SqliteBackend};
pub use python::SqliteUpgrade;
