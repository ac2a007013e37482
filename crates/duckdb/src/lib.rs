//! A backend for analytics: rows in one DuckDB file, search through the derived index beside it.
//!
//! | file | contents |
//! | --- | --- |
//! | `factory.rs` | opening a store by its URL; the settings of DuckDB stores |
//! | `backend.rs` | the database: opening it, and what DuckDB does in its own way |
//! | `tables.rs`, `schema.rs` | tables and views; recognising, creating and upgrading a file |
//! | `connect.rs` | opening and creating files |
//! | `pool.rs`, `open_files.rs` | connections: one that writes, several that read; one database per file and process |
//! | `connection.rs`, `columns.rs` | DuckDB's dialect, connections and rows, as `amplifier-session-sql` uses them |
//! | `vectors.rs` | the tables of vectors, and inserting into them in bulk |
//! | `hnsw` | an HNSW index over the vectors, in a file of its own |
//! | `sql` | SQL queries over a store |
//! | `lookups.rs`, `event_counts.rs` | reads that DuckDB does in its own way |
//! | `numbers.rs` | revisions and keys |
//! | `payloads.rs` | functions for SQL that read stored lines |
//! | `peek.rs` | opening a file to see what it is |
//! | `error.rs` | errors of DuckDB as ours |
//!
//! One process at a time may write a file; several may read it while none writes.

mod backend;
mod columns;
mod connect;
mod connection;
mod error;
mod event_counts;
mod factory;
mod hnsw;
mod lookups;
mod numbers;
mod open_files;
mod payloads;
mod peek;
mod pool;
mod schema;
pub mod sql;
mod tables;
mod vectors;

pub use backend::{DuckDb, DuckDbBackend};
pub use connect::Access;
pub use factory::FACTORY;
pub use hnsw::HnswOptions;
