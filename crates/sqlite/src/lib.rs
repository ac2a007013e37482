//! The embedded default backend: rows in one SQLite file, search through the derived index beside it.
//!
//! | file | contents |
//! | --- | --- |
//! | `tables.rs`, `schema.rs` | tables and indexes; recognising, creating and upgrading a file |
//! | `connect.rs` | opening and configuring connections |
//! | `pool.rs` | connections: one that writes, several that read |
//! | `connection.rs`, `columns.rs` | SQLite's dialect, connections and rows, as `amplifier-session-sql` uses them |
//! | `lookups.rs`, `event_counts.rs` | reads that SQLite does in its own way |
//! | `functions.rs` | functions for SQL |
//! | `indexes.rs` | comparing and rebuilding the indexes of the database |
//! | `read_only.rs` | files that can only be read |
//! | `room.rs` | room on the disk for the write-ahead log |
//! | `rights.rs` | rights of the files beside the database |
//! | `peek.rs` | opening a file to see what it is |
//! | `salvage/` | reading what is left of a damaged file |
//! | `factory.rs` | opening a store by its URL |
//! | `error.rs` | errors of SQLite as ours |
//!
//! Many processes may use one file: readers see the last committed state, and writers take turns.

mod backend;
mod columns;
mod connect;
mod connection;
mod error;
mod event_counts;
mod factory;
mod functions;
mod indexes;
mod lookups;
mod peek;
#[cfg(test)]
mod plans;
mod pool;
mod read_only;
mod rights;
mod room;
mod salvage;
mod schema;
mod tables;

pub use backend::{Sqlite, SqliteBackend};
pub use factory::FACTORY;
pub use functions::register_view_functions;
