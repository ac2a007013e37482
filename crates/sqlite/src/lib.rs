//! The embedded default backend: rows in one SQLite file, search through the derived index beside it.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `tables.rs`, `schema.rs` | tables and indexes; what makes a file ours, and how an earlier layout is brought up |
//! | `pool.rs` | connections: one that writes, several that read |
//! | `connection.rs`, `columns.rs` | SQLite's dialect; a connection, a transaction and a row as `amplifier-session-sql` uses them |
//! | `lookups.rs`, `event_counts.rs` | reads that SQLite does in its own way |
//! | `functions.rs` | functions of the library that SQL calls |
//! | `read_only.rs` | files that can't be written |
//! | `python.rs` | files of the Python library |
//! | `factory.rs` | how a store is opened by its URL |
//! | `error.rs` | SQLite's errors as ours |
//!
//! Many processes may use one file: readers see the last committed state, writers take turns.

mod backend;
mod columns;
mod connection;
mod error;
mod event_counts;
mod factory;
mod functions;
mod lookups;
#[cfg(test)]
mod plans;
mod pool;
mod python;
mod read_only;
mod schema;
mod tables;

pub use backend::{Sqlite, SqliteBackend};
pub use factory::FACTORY;
pub use python::SqliteUpgrade;
